//! The server as seen by a bare client: what is sent, in which pieces, and how a connection ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens")
}

fn send(mut stream: &TcpStream, body: &str) {
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(body.as_bytes()).expect("sent");
}

/// Reads all bytes until the connection ends; returns the error that ended it, if any.
fn read_to_the_end(mut stream: &TcpStream) -> (String, Option<io::ErrorKind>) {
    let mut all = Vec::new();
    let error = stream.read_to_end(&mut all).err().map(|error| error.kind());
    (String::from_utf8_lossy(&all).into_owned(), error)
}

/// Sends one request and reads until the connection ends; closes our write side so that keep-alive ends too.
fn ask(server: &Server, body: &str) -> (String, Option<io::ErrorKind>) {
    let stream = connect(server);
    send(&stream, body);
    stream.shutdown(Shutdown::Write).expect("half closed");
    read_to_the_end(&stream)
}

#[test]
fn a_message_streams_as_chunks_of_a_chat_completion() {
    let message = Message::text("hi").reasoning("hm").and_call_as("c1", "shell", r#"{"a":1}"#).usage(7, 3);
    let server = Server::start(message);
    let (reply, _) = ask(&server, "{}");
    let data: Vec<&str> = reply.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let deltas: Vec<String> = data
        .iter()
        .filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok())
        .map(|chunk| format!("{} {}", chunk["choices"], chunk["usage"]))
        .collect();
    assert_eq!(
        deltas,
        [
            r#"[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}] null"#,
            r#"[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}] null"#,
            r#"[{"index":0,"delta":{"content":"hi"},"finish_reason":null}] null"#,
            r#"[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"shell","arguments":""}}]},"finish_reason":null}] null"#,
            r#"[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},"finish_reason":null}] null"#,
            r#"[{"index":0,"delta":{},"finish_reason":"tool_calls"}] null"#,
            r#"[] {"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#,
        ]
    );
    assert_eq!(data.last(), Some(&"[DONE]"));
    assert!(reply.ends_with("\r\n0\r\n\r\n"), "{reply}");
}

#[test]
fn a_reply_can_be_cut_and_the_cut_is_inside_the_announced_chunk() {
    let reply = Reply::events(["one".to_owned(), "two".to_owned()]);
    assert_eq!(reply.body_len(), 22);
    let cut = ReplyPosition::Body(reply.body_position("two"));
    let server = Server::start([
        reply.clone().closing(cut),
        reply.clone().resetting(cut),
        reply.closing(ReplyPosition::Head(9)),
    ]);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let expected = format!("{head}16\r\ndata: one\n\ndata: ");
    assert_eq!(ask(&server, "{}"), (expected, None));
    let stream = connect(&server);
    send(&stream, "{}");
    assert_eq!(read_to_the_end(&stream).1, Some(io::ErrorKind::ConnectionReset));
    assert_eq!(ask(&server, "{}"), ("HTTP/1.1 ".to_owned(), None));
}

#[test]
fn pieces_and_pauses_tear_anything_apart() {
    let pause = Duration::from_millis(5);
    let reply =
        Reply::raw(200, "text/plain", "é!").framed(Framing::UntilClose).in_pieces_of(1).pausing(pause);
    let server = Server::start([reply]);
    let begun = Instant::now();
    let stream = connect(&server);
    send(&stream, "{}");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
    assert_eq!(read_to_the_end(&stream), (format!("{head}é!"), None));
    assert!(begun.elapsed() >= 3 * pause);
}

#[test]
fn silence_lasts_until_the_client_leaves_and_that_is_seen() {
    let server = Server::start([Reply::silence(), Reply::events([]).hanging(ReplyPosition::Body(0))]);
    for (index, expected) in ["", "HTTP/1.1 200 OK\r\n"].into_iter().enumerate() {
        let mut stream = connect(&server);
        send(&stream, "{}");
        stream.set_read_timeout(Some(Duration::from_millis(30))).expect("a time limit");
        let mut buffer = [0; 17];
        let read = stream.read(&mut buffer).unwrap_or(0);
        assert_eq!(String::from_utf8_lossy(&buffer[..read]), expected);
        assert_eq!(server.requests()[index].abandoned, None);
        drop(stream);
        server.wait_until_abandoned(index, SECOND);
    }
}

#[test]
fn requests_are_kept_byte_for_byte_on_one_connection_whatever_their_framing() {
    let answer = Reply::error(429, "slow down").header("retry-after", "2");
    let server = Server::start([answer, Message::text("ok").whole()]);
    let mut stream = connect(&server);
    let first = r#"{"messages": [ {"role":"user" , "content":"é"},{"b":2}]}"#;
    send(&stream, first);
    let mut reply = vec![0; 512];
    let read = stream.read(&mut reply).expect("a reply");
    assert_eq!(
        String::from_utf8_lossy(&reply[..read]),
        "HTTP/1.1 429 Refused\r\ncontent-type: application/json\r\nretry-after: 2\r\ncontent-length: 62\r\n\r\n\
         {\"error\":{\"message\":\"slow down\",\"type\":\"scripted\",\"code\":429}}"
    );
    let chunked = "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
    stream.write_all(chunked.as_bytes()).expect("sent");
    let requests = server.wait_for_requests(2, SECOND);
    assert_eq!(requests[0].arrived.body_text(), first);
    assert_eq!(requests[0].arrived.messages(), [r#"{"role":"user" , "content":"é"}"#, r#"{"b":2}"#]);
    assert_eq!(requests[1].arrived.json(), json!({"a": 1}));
    assert_eq!((requests[1].connection, server.connections()), (0, 1));
    assert!(requests[0].answered.expect("answered") <= requests[1].began);
}

#[test]
fn matched_replies_come_first_then_the_order_then_the_rest() {
    let script = Script::new()
        .then(Reply::raw(200, "a/b", "first"))
        .when("needle", Reply::raw(200, "a/b", "matched"))
        .then_always(Reply::raw(200, "a/b", "rest"));
    let server = Server::start(script);
    let body = |text: &str| json!({"messages": [{"content": "needle"}, {"content": text}]}).to_string();
    let ends: Vec<String> = ["hay", "needle", "needle", "hay"]
        .iter()
        .map(|text| ask(&server, &body(text)).0.rsplit("\r\n").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(ends, ["first", "matched", "rest", "rest"]);
}

#[test]
fn a_probe_takes_no_line_of_the_script() {
    let server = Server::start(Message::text("ok"));
    let mut stream = connect(&server);
    stream.write_all(b"GET /v1/models HTTP/1.1\r\n\r\n").expect("sent");
    stream.shutdown(Shutdown::Write).expect("half closed");
    assert!(read_to_the_end(&stream).0.starts_with("HTTP/1.1 404 "));
    assert!(ask(&server, "{}").0.starts_with("HTTP/1.1 200 "));
    assert_eq!((server.requests().len(), server.everything().len()), (1, 2));
}

#[test]
fn a_closed_port_refuses() {
    let port = ClosedPort::reserve();
    let address = port.base_url();
    let address = address.trim_start_matches("http://").trim_end_matches("/v1");
    let refused = TcpStream::connect(address).expect_err("nobody listens").kind();
    assert_eq!(refused, io::ErrorKind::ConnectionRefused);
}
