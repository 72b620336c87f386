//! Baseline of the benches: a minimal program that makes the same requests and runs the same commands.
//!
//! A plain socket, a growing list of messages, `sh -c` for each call; no journal, no events, no limits, no
//! retries. `cargo xtask bench` prints the cost of Fusee relative to it. Arguments: port, and the length of
//! the prelude (system prompt and tool schemas) in bytes, so that both send requests of the same size.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a minimal stand-alone program")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().ok_or("missing port")?.parse()?;
    let prelude: usize = args.next().ok_or("missing prelude length")?.parse()?;
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let mut incoming = BufReader::new(stream.try_clone()?);
    let mut messages = vec![
        json!({"role": "system", "content": "x".repeat(prelude)}),
        json!({"role": "user", "content": "Do the work."}),
    ];
    loop {
        let body = json!({"model": "scripted", "stream": true, "messages": messages}).to_string();
        let head =
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
        let (text, calls) = reply(&mut incoming)?;
        messages.push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
        if calls.is_empty() {
            println!("{text}");
            return Ok(());
        }
        for call in &calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let arguments: Value = serde_json::from_str(arguments)?;
            let command = arguments["command"].as_str().unwrap_or("true");
            let done = Command::new("sh").arg("-c").arg(command).output()?;
            let output = [done.stdout, done.stderr].concat();
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": String::from_utf8_lossy(&output)}));
        }
    }
}

/// Parses the text and the calls of one streamed reply.
fn reply(incoming: &mut BufReader<TcpStream>) -> Result<(String, Vec<Value>), Box<dyn Error>> {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        incoming.read_line(&mut line)?;
    }
    let mut body = Vec::new();
    loop {
        line.clear();
        incoming.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16)?;
        let old = body.len();
        body.resize(old + size + 2, 0);
        incoming.read_exact(&mut body[old..])?;
        body.truncate(old + size);
        if size == 0 {
            break;
        }
    }
    let (mut text, mut calls) = (String::new(), Vec::<Value>::new());
    for data in String::from_utf8(body)?.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(chunk) = serde_json::from_str::<Value>(data) else { continue };
        let delta = &chunk["choices"][0]["delta"];
        text.push_str(delta["content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let more = call["function"]["arguments"].as_str().unwrap_or_default();
            match calls.get_mut(usize::try_from(call["index"].as_u64().unwrap_or(0))?) {
                None => calls.push(call.clone()),
                Some(open) => {
                    let so_far = open["function"]["arguments"].as_str().unwrap_or_default();
                    open["function"]["arguments"] = json!(format!("{so_far}{more}"));
                }
            }
        }
    }
    Ok((text, calls))
}
