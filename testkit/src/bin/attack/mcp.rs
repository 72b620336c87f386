//! Hostile MCP servers, over stdio and HTTP: lists of tools, results and errors that a grammar generates, answers to
//! requests that nobody made, floods of notifications, ends in the middle, silence.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use fastrand::Rng;
use fusee_testkit::events::{self, Part};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::Finding;
use crate::arena::{Arena, KEY};
use crate::grammar;
use crate::http::{HostileServer, body};

/// The argument with which this program is an MCP server on stdio.
pub(crate) const SERVER: &str = "__mcp";

pub(crate) fn case(arena: &Arena, random: &mut Rng) -> Result<(), Finding> {
    let project = arena.project();
    let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let seed = random.u64(..);
    let server = HostileServer::start(seed, |random, request| {
        let start = memchr::memmem::find(request, b"\r\n\r\n").map_or(0, |at| at + 4);
        let messages = answers(&serde_json::from_slice(&request[start..]).unwrap_or_default(), random);
        let is_stream = random.bool();
        let text: String =
            messages
                .iter()
                .map(|message| {
                    if is_stream {
                        format!("event: message\ndata: {message}\n\n")
                    } else {
                        message.to_string()
                    }
                })
                .collect();
        body(text.as_bytes(), random)
    })?;
    let reach = if random.bool() {
        format!("command = {own:?}\nargs = [\"{SERVER}\", \"{seed}\"]")
    } else {
        format!("url = \"{}/mcp\"", server.url())
    };
    arena.settings(&project, &format!("[mcp.evil]\n{reach}\ntimeout_s = 2\n"))?;
    let model = project.script(&[
        Line::call("evil_say", json!({"text": "one"}))
            .and_call("evil_two", json!({"text": ["not", "a text"]})),
        Line::call("evil_say", json!({"text": "x"})),
        Line::text("Done."),
    ]);
    let ran = arena.run_secretly(&project, &["run", "x", "--json", "--model", &model, "--sandbox", "off"])?;
    if ran.code != Some(2) {
        events::read_checked(&ran.stdout, Part::Whole);
    }
    if ran.stdout.len() > 8 << 20 {
        return Err(format!("a hostile MCP server made fusee write {} bytes", ran.stdout.len()));
    }
    Ok(())
}

/// Serves on stdio until the input ends, or until it feels like ending.
pub(crate) fn serve(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let Ok(line) = line else { return };
        for message in answers(&serde_json::from_str(&line).unwrap_or_default(), &mut random) {
            let mut bytes = message.to_string().into_bytes();
            if random.u8(0..12) == 0 {
                bytes = grammar::corrupted(bytes, &mut random);
            }
            bytes.push(b'\n');
            if output.write_all(&bytes).and_then(|()| output.flush()).is_err() {
                return;
            }
        }
        match random.u8(0..24) {
            0 => return,
            1 => std::thread::sleep(Duration::from_secs(3)),
            _ => {}
        }
    }
}

/// What the server sends when it gets this message.
fn answers(message: &Value, random: &mut Rng) -> Vec<Value> {
    let id = message["id"].clone();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "evil", "version": "1"}})
        }
        Some("tools/list") => {
            let tool = |name: &str, random: &mut Rng| json!({"name": name, "description": grammar::text(random), "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}, "annotations": {"readOnlyHint": true}});
            json!({"tools": [tool("say", random), tool("two", random), tool("../say", random), tool("shell", random), tool("say", random)], "nextCursor": if random.u8(0..3) == 0 { json!("again") } else { Value::Null }})
        }
        Some("tools/call") => {
            json!({"content": [{"type": "text", "text": grammar::text(random)}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}], "isError": random.bool()})
        }
        _ => json!({}),
    };
    let mut messages = Vec::new();
    if !id.is_null() {
        let valid = json!({"jsonrpc": "2.0", "id": id, "result": result});
        messages.push(match random.u8(0..8) {
            0 => json!({"jsonrpc": "2.0", "id": id, "error": {"code": random.i64(..), "message": "x".repeat(random.usize(0..3_000_000))}}),
            1 | 2 => grammar::mutated(valid, random),
            _ => valid,
        });
    }
    match random.u8(0..10) {
        0 => messages.extend((0..random.usize(1..500)).map(|n| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"n": n}}))),
        1 => messages.insert(0, json!({"jsonrpc": "2.0", "id": 999_999, "result": {"content": []}})),
        2 => messages.push(json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": grammar::value(random, 2)})),
        3 => messages.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})),
        4 => messages.push(grammar::value(random, 3)),
        _ => {}
    }
    messages.into_iter().map(without_key).collect()
}

/// A server that was not given the key cannot repeat it.
fn without_key(message: Value) -> Value {
    serde_json::from_str(&message.to_string().replace(KEY, "[a key]")).unwrap_or_default()
}
