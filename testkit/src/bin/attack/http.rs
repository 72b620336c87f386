//! Hostile model servers in the three wire formats: heads, framing and streams that a grammar generates, redirects,
//! endless comments, cut and hanging connections, and answers that repeat the user's key.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use fusee_testkit::events::{self, Part};
use serde_json::{Value, json};

use crate::Finding;
use crate::arena::{Arena, KEY};
use crate::grammar;

/// How long a server stays silent at most. Longer than fusee waits for data.
const SILENCE: Duration = Duration::from_secs(4);

/// Formats: the value of `--api`, and a model.
const FORMATS: [(&str, &str); 3] =
    [("chat", "openai:m"), ("responses", "openai:m"), ("anthropic", "anthropic:m")];

pub(crate) fn case(arena: &Arena, random: &mut Rng) -> Result<(), Finding> {
    let (api, model) = FORMATS[random.usize(0..FORMATS.len())];
    let stranger = HostileServer::start(random.u64(..), |random, _| body(&stream("chat", random), random))?;
    let elsewhere = stranger.url();
    let server = HostileServer::start(random.u64(..), move |random, _| {
        if random.u8(0..12) == 0 {
            return format!(
                "HTTP/1.1 {} Moved\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n",
                301 + random.u16(0..8)
            )
            .into_bytes();
        }
        body(&stream(api, random), random)
    })?;
    let project = arena.project();
    let url = format!("{}/v1", server.url());
    let mut words = vec!["run", "x", "--model", model, "--api", api, "--base-url", &url];
    let is_json = random.u8(0..4) > 0;
    words.extend(is_json.then_some("--json"));
    let ran = arena.run_secretly(&project, &words)?;
    if is_json && ran.code != Some(2) {
        events::read_checked(&ran.stdout, Part::Whole);
    }
    let shown = arena.run(&project, &["show"])?;
    if shown.code != Some(0) && ran.code != Some(2) {
        return Err(shown.wrong("cannot show the run"));
    }
    if stranger.has_seen_key() {
        return Err(ran.wrong("sent the key to another server"));
    }
    Ok(())
}

/// A server on loopback that answers every request with bytes from a generator.
pub(crate) struct HostileServer {
    address: std::net::SocketAddr,
    stopping: Arc<AtomicBool>,
    key_seen: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl HostileServer {
    pub(crate) fn start(
        seed: u64,
        answer: impl Fn(&mut Rng, &[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Result<Self, Finding> {
        let fail = |error: std::io::Error| format!("a server on loopback: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let (stopping, key_seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stop, seen, answer) = (Arc::clone(&stopping), Arc::clone(&key_seen), Arc::new(answer));
        let connections = AtomicU64::new(seed);
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let mut random = Rng::with_seed(connections.fetch_add(1, Ordering::SeqCst));
                let (stop, seen, answer) = (Arc::clone(&stop), Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || {
                    let mut stream = stream;
                    while let Some(request) = read_request(&mut stream) {
                        if memchr::memmem::find(&request, KEY.as_bytes()).is_some() {
                            seen.store(true, Ordering::SeqCst);
                        }
                        let bytes = answer(&mut random, &request);
                        if send(&mut stream, &bytes, &mut random, &stop).is_none() {
                            break;
                        }
                    }
                });
            }
        });
        Ok(Self { address, stopping, key_seen, acceptor: Some(acceptor) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn has_seen_key(&self) -> bool {
        self.key_seen.load(Ordering::SeqCst)
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Head and body of a request; `None` at the end of the connection.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let (mut request, mut part) = (Vec::new(), [0; 8192]);
    loop {
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&part[..read]);
        let Some(end) = memchr::memmem::find(&request, b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if request.len() >= end + 4 + length.unwrap_or(0) {
            return Some(request);
        }
    }
}

/// Sends bytes in pieces, with pauses. `None` if the connection is over.
fn send(stream: &mut TcpStream, bytes: &[u8], random: &mut Rng, stop: &AtomicBool) -> Option<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = if random.bool() { rest.len() } else { random.usize(1..=rest.len()) };
        let (piece, after) = rest.split_at(length);
        stream.write_all(piece).ok()?;
        rest = after;
        if random.u8(0..20) == 0 {
            thread::sleep(Duration::from_millis(random.u64(0..300)));
        }
    }
    match random.u8(0..6) {
        // Stays open without a word.
        0 => {
            for _ in 0..40 {
                thread::sleep(SILENCE / 40);
                if stop.load(Ordering::SeqCst) {
                    return None;
                }
            }
            None
        }
        1 | 2 => Some(()),
        _ => None,
    }
}

/// An answer with this body: head and framing are valid most of the time.
pub(crate) fn body(body: &[u8], random: &mut Rng) -> Vec<u8> {
    let status = match random.u8(0..8) {
        0 => ["100 Continue", "204 No Content", "304 Not Modified", "200", "999 Odd", "-1 No", "101 Upgrade"]
            [random.usize(0..7)],
        1 => ["400 Bad", "401 No", "413 Large", "429 Slow", "500 Broken", "503 Busy", "529 Overloaded"]
            [random.usize(0..7)],
        _ => "200 OK",
    };
    let kind = ["text/event-stream", "text/event-stream; charset=utf-8", "application/json", "text/html", ""];
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-type: {}\r\n", kind[random.usize(0..kind.len())]);
    if random.u8(0..6) == 0 {
        let odd = [
            "retry-after: 999999",
            "retry-after: -1",
            "retry-after: Fri, 31 Dec 9999 23:59:59 GMT",
            "content-encoding: gzip",
            "content-length: 18446744073709551616",
            "transfer-encoding: chunked, chunked",
            "set-cookie: a=b",
            "x: \u{1b}[2J",
        ];
        head.push_str(&format!("{}\r\n", odd[random.usize(0..odd.len())]));
    }
    if random.u8(0..30) == 0 {
        head.push_str(&format!("x-long: {}\r\n", "y".repeat(200_000)));
    }
    let mut answer = head.into_bytes();
    match random.u8(0..5) {
        0 => {
            answer.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
            for part in body.chunks(random.usize(1..5000)) {
                answer.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                answer.extend_from_slice(part);
                answer.extend_from_slice(b"\r\n");
            }
            answer.extend_from_slice(b"0\r\n\r\n");
        }
        1 => {
            let wrong = random.usize(0..body.len() * 2 + 2);
            answer.extend_from_slice(format!("content-length: {wrong}\r\n\r\n").as_bytes());
            answer.extend_from_slice(body);
        }
        2 => {
            answer.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
            answer.extend_from_slice(body);
        }
        _ => {
            answer.extend_from_slice(b"connection: close\r\n\r\n");
            answer.extend_from_slice(body);
        }
    }
    if random.u8(0..6) == 0 { grammar::corrupted(answer, random) } else { answer }
}

/// A stream of events, most of them valid.
fn stream(api: &str, random: &mut Rng) -> Vec<u8> {
    if random.u8(0..8) == 0 {
        // An error instead of a stream.
        return json!({"error": {"message": grammar::text(random), "type": grammar::text(random), "code": grammar::value(random, 1)}})
            .to_string()
            .into_bytes();
    }
    let mut events = match api {
        "chat" => chat(random),
        "responses" => responses(random),
        _ => anthropic(random),
    };
    if random.u8(0..4) == 0 {
        random.shuffle(&mut events);
    }
    if random.u8(0..4) == 0 && !events.is_empty() {
        events.truncate(random.usize(0..events.len()));
    }
    let mut text = Vec::new();
    let line_end = ["\n", "\r\n", "\r"][if random.u8(0..5) > 0 { 0 } else { random.usize(0..3) }];
    for event in events {
        let event = if random.u8(0..5) == 0 { grammar::mutated(event, random) } else { event };
        if random.u8(0..6) == 0 {
            text.extend_from_slice(format!(": ping{line_end}").repeat(random.usize(1..400)).as_bytes());
        }
        if let (false, Some(kind)) = (api == "chat", event.get("type").and_then(Value::as_str)) {
            text.extend_from_slice(format!("event: {kind}{line_end}").as_bytes());
        }
        text.extend_from_slice(format!("data: {event}{line_end}{line_end}").as_bytes());
    }
    if api == "chat" && random.u8(0..5) > 0 {
        text.extend_from_slice(format!("data: [DONE]{line_end}{line_end}").as_bytes());
    }
    if random.u8(0..5) == 0 { grammar::corrupted(text, random) } else { text }
}

/// A call of a tool: sometimes one that exists, sometimes with arguments that parse.
fn call(random: &mut Rng) -> (String, String) {
    let path = grammar::text(random);
    let calls = [
        ("shell", json!({"command": "true"})),
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": path })),
        ("find_files", json!({ "pattern": path })),
        ("search_text", json!({ "pattern": path })),
        ("edit_file", json!({ "path": "a", "old": path, "new": "" })),
        ("apply_patch", json!({ "patch": path })),
        ("no_such_tool", json!({})),
    ];
    let (name, arguments) = calls[random.usize(0..calls.len())].clone();
    let arguments = grammar::mutated(arguments, random).to_string();
    let arguments = if random.u8(0..5) == 0 { arguments.chars().take(5).collect() } else { arguments };
    (name.to_owned(), arguments)
}

fn chat(random: &mut Rng) -> Vec<Value> {
    let chunk = |delta: Value, end: Value| json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    for index in 0..random.usize(0..4) {
        if random.bool() {
            events.push(chunk(
                json!({"content": grammar::text(random), "reasoning_content": grammar::text(random)}),
                Value::Null,
            ));
        } else {
            let (name, arguments) = call(random);
            let at = if random.u8(0..5) == 0 { 4_000_000_000_usize } else { index };
            events.push(chunk(json!({"tool_calls": [{"index": at, "id": format!("call{}", random.u8(0..3)), "type": "function", "function": {"name": name, "arguments": arguments}}]}), Value::Null));
        }
    }
    let ends = ["stop", "tool_calls", "length", "content_filter", "what"];
    events.push(chunk(json!({}), json!(ends[random.usize(0..ends.len())])));
    events.push(json!({"choices": [], "usage": {"prompt_tokens": random.u32(..), "completion_tokens": random.u32(..), "total_tokens": u64::MAX}}));
    events
}

fn responses(random: &mut Rng) -> Vec<Value> {
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "r", "status": "in_progress"}})];
    let mut items = Vec::new();
    for index in 0..random.usize(1..4) {
        let item = if random.bool() {
            let text = grammar::text(random);
            events.push(json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text}));
            json!({"type": "message", "id": format!("m{index}"), "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]})
        } else {
            let (name, arguments) = call(random);
            events.push(json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": arguments}));
            json!({"type": "function_call", "id": format!("f{index}"), "call_id": format!("call{}", random.u8(0..3)), "name": name, "arguments": arguments, "status": "completed"})
        };
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        items.push(item);
    }
    let ends = ["response.completed", "response.incomplete", "response.failed", "error"];
    let end = ends[if random.bool() { 0 } else { random.usize(0..ends.len()) }];
    events.push(json!({"type": end, "message": grammar::text(random), "response": {"id": "r", "status": "completed", "output": items, "usage": {"input_tokens": random.u32(..), "output_tokens": 1}}}));
    events
}

fn anthropic(random: &mut Rng) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": {"input_tokens": random.u32(..), "output_tokens": 1}}}),
        json!({"type": "ping"}),
    ];
    for index in 0..random.usize(1..4) {
        let (start, delta) = match random.u8(0..3) {
            0 => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": grammar::text(random)}),
            ),
            1 => (
                json!({"type": "thinking", "thinking": ""}),
                json!({"type": "thinking_delta", "thinking": grammar::text(random)}),
            ),
            _ => {
                let (name, arguments) = call(random);
                let id = format!("call{}", random.u8(0..3));
                (
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    json!({"type": "input_json_delta", "partial_json": arguments}),
                )
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let ends = ["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "what"];
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": ends[random.usize(0..ends.len())]}, "usage": {"output_tokens": random.u32(..)}}));
    events.push(json!({"type": "message_stop"}));
    if random.u8(0..6) == 0 {
        events.push(
            json!({"type": "error", "error": {"type": "overloaded_error", "message": grammar::text(random)}}),
        );
    }
    events
}
