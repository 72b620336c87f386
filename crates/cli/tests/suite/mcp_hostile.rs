//! MCP servers that misbehave: each is bounded and reported, and nothing hangs.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::run_json;

/// A server that is well behaved except for what argv[1] says.
const SERVER: &str = r#"
import json, os, sys, time
how = sys.argv[1]
def line(text): sys.stdout.write(text + "\n"); sys.stdout.flush()
def send(**message): line(json.dumps(dict(message, jsonrpc="2.0")))
tool = {"name": "look", "inputSchema": {"type": "object"}}
for received in sys.stdin:
    message = json.loads(received)
    method, id = message.get("method"), message.get("id")
    if id is None or method is None: continue
    if method == "initialize":
        send(id=id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}})
    elif method == "tools/list":
        result = {"tools": [tool]}
        if how == "endless list": result["nextCursor"] = "more"
        if how == "many tools": result["tools"] = [dict(tool, name="t%d" % n) for n in range(10000)]
        if how == "names":
            names = ["look", "esc\x1b[31m", "x" * 10000, "", "a b/c", "a_b_c"]
            result["tools"] = [dict(tool, name=name) for name in names] + [{"title": "no name"}, 7]
        send(id=id, result=result)
    elif method == "tools/call":
        if how == "huge result": send(id=id, result={"content": [{"type": "text", "text": "x" * (8 << 20)}]})
        elif how == "huge message": sys.stdout.write("x" * (40 << 20)); sys.stdout.flush(); time.sleep(60)
        elif how == "wrong ids":
            for wrong in [id + 1000, str(id) + "x", None, -1, 1.5, [id], {"a": 1}]: send(id=wrong, result={"content": []})
            time.sleep(0.2); send(id=id, result={"content": [{"type": "text", "text": "right"}]})
        elif how == "garbage":
            for text in ["", "{", "null", "[]", "7", '"x"', '{"jsonrpc":"1.0","id":1,"result":{}}', "\x00\xff", "{}" * 1000]: line(text)
            half = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "whole"}]}})
            for piece in [half[:20], half[20:]]: sys.stdout.write(piece); sys.stdout.flush(); time.sleep(0.1)
            line("")
        elif how == "notifications":
            for n in range(20000): send(method="notifications/message", params={"level": "info", "data": "x" * 100})
            for n in range(20000): send(method="notifications/progress", params={"progressToken": n, "progress": n})
            send(id=id, result={"content": [{"type": "text", "text": "after all"}]})
        elif how == "flood":
            text = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 60000}}) + "\n"
            while True: sys.stdout.write(text * 20)
        elif how == "requests without reading":
            for n in range(20000): send(id="r%d" % n, method="ping")
            time.sleep(60)
        elif how == "never reads": time.sleep(60)
        elif how == "half": sys.stdout.write('{"jsonrpc": "2.0", "id"'); sys.stdout.flush(); os._exit(0)
        elif how == "other shape": send(id=id, result={"content": "text", "structuredContent": [1]})
        elif how == "partial error": send(id=id, error={"code": "x"})
    else: send(id=id, error={"code": -32601, "message": "what?"})
"#;

fn run(how: &str, timeout_s: u32, calls: usize) -> (Project, Outcome) {
    let project = Project::new().with("server.py", SERVER);
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = format!(
        "[mcp.bad]\ncommand = \"python3\"\nargs = [\"server.py\", \"{how}\"]\ntimeout_s = {timeout_s}\n"
    );
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let mut lines: Vec<Line> = (0..calls).map(|n| Line::call("bad_look", json!({ "n": n }))).collect();
    lines.push(Line::text("Done."));
    let script = project.script(&lines);
    let started = Instant::now();
    let ran = run_json(&project, &script).limit(Duration::from_secs(90)).run().exits(0);
    assert!(started.elapsed() < Duration::from_secs(45), "{how}: {:?}", started.elapsed());
    project.assert_no_process_left();
    (project, ran)
}

fn result(how: &str, timeout_s: u32) -> String {
    let (_project, ran) = run(how, timeout_s, 1);
    let results: Vec<Value> = of_type(&ran.events(), "tool_result").into_iter().cloned().collect();
    assert_eq!(results.len(), 1, "{how}");
    results[0]["content"].as_str().unwrap().to_owned()
}

#[test]
fn lists_without_end_and_names_of_any_kind_are_bounded_and_reported() {
    let (_project, ran) = run("endless list", 30, 0);
    assert!(ran.stderr.contains("the list of tools has more than 20 pages"), "{}", ran.stderr);
    let (_project, ran) = run("many tools", 30, 0);
    assert!(ran.stderr.contains("skipped further tools: it has more than 128"), "{}", ran.stderr);
    assert!(ran.stderr.len() < 2000, "{} bytes", ran.stderr.len());
    let (_project, ran) = run("names", 30, 0);
    for said in [
        r"skipped `esc\u{1b}[31m`: its name has control characters",
        "its name has 10000 bytes, more than 256",
        "`a_b_c`: another tool has the same name",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains('\u{1b}') && ran.stderr.len() < 2000, "{}", ran.stderr);
}

#[test]
fn messages_that_are_too_large_stop_the_server_or_are_cut() {
    let cut = result("huge result", 30);
    assert!(cut.len() < 100_000 && cut.ends_with("bytes cut …]"), "{} bytes", cut.len());
    let stopped = result("huge message", 30);
    assert!(stopped.contains("it sent a message of more than 16777216 bytes"), "{stopped}");
}

#[test]
fn answers_that_are_none_are_passed_over() {
    assert_eq!(result("wrong ids", 30), "right");
    assert_eq!(result("garbage", 30), "whole");
    assert_eq!(result("notifications", 30), "after all");
    assert_eq!(result("other shape", 30), "[1]");
}

#[test]
fn a_server_that_floods_is_stopped_and_one_that_does_not_read_is_given_its_time() {
    let stopped = result("flood", 30);
    assert!(
        stopped.contains("it sends messages faster than they can be read")
            || stopped.contains("no answer within"),
        "{stopped}"
    );
    for how in ["requests without reading", "never reads", "partial error"] {
        let silent = result(how, 2);
        assert!(silent.contains("no answer within 2 s"), "{how}: {silent}");
    }
    let ended = result("half", 30);
    assert!(ended.contains("it ended with code 0"), "{ended}");
}

#[test]
fn a_server_that_keeps_ending_is_given_up() {
    let (_project, ran) = run("half", 30, 6);
    let results: Vec<Value> = of_type(&ran.events(), "tool_result").into_iter().cloned().collect();
    let last = results[5]["content"].as_str().unwrap();
    assert!(last.contains("it has ended 5 times and is not started again"), "{last}");
}

/// An MCP server at an address of loopback, which answers a call with these bytes and then stays open without a word. The
/// flag is set once a request has come that carries the key of the other server.
fn serving(call: Vec<u8>) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Arc::new(AtomicBool::new(false));
    let sees = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (call, sees) = (call.clone(), Arc::clone(&sees));
            std::thread::spawn(move || while answer(&stream, &call, &sees).is_some() {});
        }
    });
    (url, seen)
}

/// Answers a request on the connection; `None` at its end.
fn answer(mut stream: &TcpStream, call: &[u8], sees: &AtomicBool) -> Option<()> {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    let message: Value = loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        sees.fetch_or(head.contains(SERVERS_KEY), Ordering::SeqCst);
        if !head.to_lowercase().contains("content-length") {
            break Value::Null;
        }
        if let Ok(message) = serde_json::from_str(body) {
            break message;
        }
    };
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}})
        }
        Some("tools/list") => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}),
        Some("tools/call") => {
            // The peer closes the connection when it has had enough.
            stream.write_all(call).ok()?;
            return stream.read(&mut piece).ok().filter(|read| *read > 0).map(drop);
        }
        _ => return stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").ok(),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()
}

const SERVERS_KEY: &str = "k-0123456789-of-the-server";

/// Result of a call that a server over HTTP answers with these bytes.
fn result_over_http(call: Vec<u8>) -> String {
    let (url, seen) = serving(call);
    let project = Project::new();
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings =
        format!("[mcp.bad]\nurl = \"{url}\"\nheaders = {{ X-Key = \"{SERVERS_KEY}\" }}\ntimeout_s = 2\n");
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let script = project.script(&[Line::call("bad_look", json!({})), Line::text("Done.")]);
    let started = Instant::now();
    let ran = run_json(&project, &script).limit(Duration::from_secs(90)).run().exits(0);
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());
    assert!(seen.load(Ordering::SeqCst), "the server was not asked");
    assert!(!ran.stdout.contains(SERVERS_KEY) && !ran.stderr.contains(SERVERS_KEY), "{ran:#?}");
    let results: Vec<Value> = of_type(&ran.events(), "tool_result").into_iter().cloned().collect();
    assert_eq!(results.len(), 1);
    results[0]["content"].as_str().unwrap().to_owned()
}

fn stream_of(body: &[u8]) -> Vec<u8> {
    [&b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"[..], body].concat()
}

#[test]
fn answers_over_http_that_do_not_end_are_bounded() {
    for (what, call) in [
        ("nothing", Vec::new()),
        ("half a head", b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec()),
        ("an open stream", stream_of(b"")),
        ("half an event", stream_of(b"event: message\ndata: {\"jsonrpc\"")),
        ("comments", stream_of(&b": ping\n\n".repeat(1000))),
    ] {
        let said = result_over_http(call);
        assert!(said.contains("no answer within 2 s"), "{what}: {said}");
    }
    let other = stream_of(b"data: {\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n\n");
    let said = result_over_http(other);
    assert!(said.contains("it closed the connection") || said.contains("no answer within 2 s"), "{said}");
    for (what, call) in [
        (
            "a document",
            [
                &b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"[..],
                vec![b'1'; 20 << 20].as_slice(),
            ]
            .concat(),
        ),
        ("an event", stream_of(&[&b"data: "[..], vec![b'x'; 20 << 20].as_slice()].concat())),
    ] {
        let said = result_over_http(call);
        let ends = ["more than 16777216 bytes", "no answer within 2 s", "it closed the connection"];
        assert!(ends.iter().any(|end| said.contains(end)), "{what}: {said}");
        assert!(said.len() < 1000, "{what}: {} bytes", said.len());
    }
}

#[test]
fn a_server_that_redirects_does_not_send_the_key_or_the_call_elsewhere() {
    let (elsewhere, seen) = serving(Vec::new());
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let said = result_over_http(
            format!("HTTP/1.1 {status}\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n").into_bytes(),
        );
        assert!(said.contains(&status[..3]), "{said}");
    }
    assert!(!seen.load(Ordering::SeqCst), "the key was sent to the other server");
}
