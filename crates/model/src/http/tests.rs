//! The client against a real, misbehaving server.

mod constraints;
mod list_models;
mod server;
mod tls;

use std::time::{Duration, Instant, SystemTime};

use self::server::{Act, STREAM_HEAD, Server, chunk, response, streamed};
use crate::{
    CancellationToken, Connection, Conversation, ErrorKind, Message, Model, ModelError, Models, Reply,
    ReplyDelta, RequestOptions, Secret, Usage, Wire,
};

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const KEY: &str = "sk-test-0123456789";

fn settings(server: &Server) -> Connection {
    Connection {
        base_url: Some(server.base_url()),
        api_key: Some(Secret::new(KEY)),
        silence: Duration::from_secs(1),
        ..Connection::default()
    }
}

fn open(settings: &Connection) -> std::sync::Arc<dyn Model> {
    Models::new(|| SystemTime::UNIX_EPOCH).open("test-model", settings).unwrap()
}

fn conversation() -> Conversation {
    let mut conversation = Conversation::new(Wire::Chat, "system".into(), vec![]);
    conversation.push(Message::user("hi"));
    conversation
}

async fn send(model: &dyn Model) -> (Result<Reply, ModelError>, Vec<String>) {
    let mut output = Vec::new();
    let mut sink = |delta: ReplyDelta<'_>| output.push(format!("{delta:?}"));
    let token = CancellationToken::new();
    let reply = model.send(&conversation(), &RequestOptions::default(), &mut sink, &token).await;
    (reply, output)
}

async fn answer(acts: Vec<Act>) -> (Result<Reply, ModelError>, Vec<String>) {
    let server = Server::start(vec![acts]).await;
    send(&*open(&settings(&server))).await
}

async fn error(acts: Vec<Act>) -> ModelError {
    answer(acts).await.0.unwrap_err()
}

#[tokio::test]
async fn a_streamed_reply() {
    let server = Server::start(vec![streamed(&[HELLO, STOP, USAGE, DONE])]).await;
    let (reply, output) = send(&*open(&settings(&server))).await;
    assert_eq!(
        reply.unwrap(),
        Reply {
            text: "hello".into(),
            usage: Some(Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() }),
            ..Reply::default()
        }
    );
    assert_eq!(output, ["Started", "Text(\"hello\")"]);
}

#[tokio::test]
async fn what_is_sent() {
    let server = Server::start(vec![streamed(&[HELLO, STOP, DONE])]).await;
    let settings = Connection { headers: vec![("x-extra".into(), Secret::new("more"))], ..settings(&server) };
    send(&*open(&settings)).await.0.unwrap();
    let request = server.requests()[0].replace(&server.port.to_string(), "PORT");
    let mut lines: Vec<&str> = request.split("\r\n").collect();
    let body = lines.pop().unwrap();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "POST /v1/chat/completions HTTP/1.1",
            "",
            "accept-encoding: identity",
            "accept: text/event-stream, application/json",
            &format!("authorization: Bearer {KEY}"),
            &format!("content-length: {}", body.len()),
            "content-type: application/json",
            "host: 127.0.0.1:PORT",
            concat!("user-agent: fusee/", env!("CARGO_PKG_VERSION")),
            "x-extra: more",
        ]
    );
    assert_eq!(
        body,
        r#"{"messages":[{"role":"system","content":"system"},{"role":"user","content":"hi"}],"model":"test-model","stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[tokio::test]
async fn a_large_conversation_arrives_whole() {
    let server = Server::start(vec![streamed(&[HELLO, STOP, DONE])]).await;
    let mut conversation = conversation();
    for n in 0..60 {
        conversation.push(Message::user(format!("{n} {}", "lorem ipsum ".repeat(3_000))));
    }
    let options = RequestOptions { model: "other".into(), ..RequestOptions::default() };
    let model = open(&settings(&server));
    model.send(&conversation, &options, &mut |_| {}, &CancellationToken::new()).await.unwrap();
    let request = server.requests().remove(0);
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(body.len() > 2_000_000);
    assert!(body.as_bytes() == conversation.body(&options).to_vec(), "the bytes are the conversation's");
}

#[tokio::test]
async fn one_connection_serves_turn_after_turn() {
    let turns = 20;
    let server = Server::start(vec![streamed(&[HELLO, STOP, DONE]); turns]).await;
    let model = open(&settings(&server));
    for _ in 0..turns {
        send(&*model).await.0.unwrap();
        // The server writes the end of the body after its last event; on a busy machine it may arrive late.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((server.requests().len(), server.connections()), (turns, 1));
}

#[tokio::test]
async fn a_document_instead_of_a_stream() {
    let body = r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#;
    let (reply, _) = answer(response("200 OK", "content-type: application/json\r\n", body)).await;
    assert_eq!(reply.unwrap().text, "whole");
}

#[tokio::test]
async fn the_content_type_does_not_matter() {
    let body = format!("{HELLO}{STOP}{DONE}");
    for content_type in ["text/plain", "application/json", "application/octet-stream"] {
        let headers = format!("content-type: {content_type}\r\n");
        assert_eq!(answer(response("200 OK", &headers, &body)).await.0.unwrap().text, "hello");
    }
}

#[tokio::test]
async fn slow_bytes_are_no_silence() {
    let mut acts = vec![Act::Send(STREAM_HEAD.as_bytes().to_vec())];
    // Each fragment arrives well within the limit, all together well beyond it.
    for piece in format!("{HELLO}{STOP}{DONE}").as_bytes().chunks(12) {
        acts.push(Act::Pause(Duration::from_millis(120)));
        acts.push(Act::Send(chunk(std::str::from_utf8(piece).unwrap())));
    }
    acts.push(Act::Send(b"0\r\n\r\n".to_vec()));
    let begin = Instant::now();
    assert_eq!(answer(acts).await.0.unwrap().text, "hello");
    assert!(begin.elapsed() > Duration::from_secs(1));
}

#[tokio::test]
async fn keep_alive_comments_are_no_silence() {
    let mut acts = vec![Act::Send(STREAM_HEAD.as_bytes().to_vec())];
    for _ in 0..11 {
        acts.extend([Act::Pause(Duration::from_millis(100)), Act::Send(chunk(": PROCESSING\n\n"))]);
    }
    acts.extend([HELLO, STOP, DONE].map(|event| Act::Send(chunk(event))));
    assert_eq!(answer(acts).await.0.unwrap().text, "hello");
}

#[tokio::test]
async fn endless_comments_and_pings_are_silence_in_the_end() {
    for (ping, kind) in [(": PROCESSING\n\n", "a comment"), ("data: {\"type\": \"ping\"}\n\n", "a ping")] {
        let mut acts = vec![Act::Send(STREAM_HEAD.as_bytes().to_vec()), Act::Send(chunk(HELLO))];
        for _ in 0..100 {
            acts.extend([Act::Pause(Duration::from_millis(100)), Act::Send(chunk(ping))]);
        }
        let begin = Instant::now();
        assert_eq!(error(acts).await.kind, ErrorKind::Silence, "{kind}");
        assert!(begin.elapsed() < Duration::from_secs(9), "{kind}: {:?}", begin.elapsed());
    }
}

#[tokio::test]
async fn nothing_extends_the_wait_after_a_stop_reason() {
    let head = [STREAM_HEAD.as_bytes().to_vec(), chunk(HELLO), chunk(STOP)];
    let mut acts: Vec<_> = head.into_iter().map(Act::Send).collect();
    for _ in 0..100 {
        acts.extend([Act::Pause(Duration::from_millis(100)), Act::Send(chunk(": still here\n\n"))]);
    }
    let begin = Instant::now();
    assert_eq!(answer(acts).await.0.unwrap().text, "hello");
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn silence_before_and_within_a_reply() {
    let server_name = "http://127.0.0.1:";
    for acts in [
        vec![Act::Hang],
        vec![Act::Send(STREAM_HEAD.as_bytes().to_vec()), Act::Hang],
        vec![Act::Send(STREAM_HEAD.as_bytes().to_vec()), Act::Send(chunk(HELLO)), Act::Hang],
    ] {
        let begin = Instant::now();
        let error = error(acts).await;
        assert_eq!(error.kind, ErrorKind::Silence);
        assert!(
            error.message.starts_with(server_name) && error.message.ends_with("/v1 sent nothing for 1 s")
        );
        assert!(begin.elapsed() < Duration::from_secs(4));
    }
}

#[tokio::test]
async fn a_local_server_may_take_longer_over_a_long_prompt() {
    for before in [vec![], vec![Act::Send(STREAM_HEAD.as_bytes().to_vec())]] {
        let mut acts = before.clone();
        acts.push(Act::Pause(Duration::from_millis(1600)));
        if before.is_empty() {
            acts.push(Act::Send(STREAM_HEAD.as_bytes().to_vec()));
        }
        acts.extend([HELLO, STOP, DONE].map(|part| Act::Send(chunk(part))));
        acts.push(Act::Send(b"0\r\n\r\n".to_vec()));
        let server = Server::start(vec![acts]).await;
        let mut conversation = conversation();
        conversation.push(Message::user("word ".repeat(8_000)));
        let (options, cancel) = (RequestOptions::default(), CancellationToken::new());
        let reply = open(&settings(&server)).send(&conversation, &options, &mut |_| {}, &cancel).await;
        assert!(reply.is_ok(), "{reply:?}");
        let server = Server::start(vec![before.into_iter().chain([Act::Hang]).collect()]).await;
        let reply = open(&settings(&server)).send(&conversation, &options, &mut |_| {}, &cancel).await;
        let error = reply.unwrap_err();
        assert!(error.message.ends_with("sent nothing for 3 s"), "{error}");
        assert_eq!(error.kind, ErrorKind::Silence);
    }
}

#[tokio::test]
async fn a_stream_that_hangs_after_its_end_is_whole() {
    let acts = vec![
        Act::Send(STREAM_HEAD.as_bytes().to_vec()),
        Act::Send(chunk(HELLO)),
        Act::Send(chunk(STOP)),
        Act::Hang,
    ];
    assert_eq!(answer(acts).await.0.unwrap().text, "hello");
    let begin = Instant::now();
    let acts = vec![
        Act::Send(STREAM_HEAD.as_bytes().to_vec()),
        Act::Send(chunk(&format!("{HELLO}{DONE}"))),
        Act::Hang,
    ];
    assert_eq!(answer(acts).await.0.unwrap().text, "hello");
    assert!(begin.elapsed() < Duration::from_millis(900), "[DONE] is not waited behind");
}

#[tokio::test]
async fn a_stream_cut_at_any_byte() {
    let whole: Vec<u8> = streamed(&[HELLO, STOP, DONE])
        .into_iter()
        .flat_map(|act| if let Act::Send(bytes) = act { bytes } else { vec![] })
        .collect();
    let text = String::from_utf8(whole.clone()).unwrap();
    let stopped = text.find("\"stop\"").unwrap() + STOP.len() - STOP.find("\"stop\"").unwrap();
    let cuts: Vec<usize> = (0..whole.len()).step_by(7).collect();
    let answers =
        cuts.iter().map(|cut| vec![Act::Send(whole[..*cut].to_vec()), Act::Close]).collect::<Vec<_>>();
    let server = Server::start(answers).await;
    let model = open(&settings(&server));
    for cut in cuts {
        match send(&*model).await.0 {
            Ok(reply) => {
                assert!(cut >= stopped, "at {cut}");
                assert_eq!(reply.text, "hello");
            }
            Err(error) => {
                assert!(cut < stopped, "at {cut}: {error}");
                assert_eq!(error.kind, ErrorKind::Cut, "at {cut}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_listens() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = Connection {
        base_url: Some(format!("http://u:pass-word@127.0.0.1:{port}/v1")),
        ..Connection::default()
    };
    let error = send(&*open(&settings)).await.0.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert_eq!(
        error.to_string(),
        format!("cannot reach http://127.0.0.1:{port}/v1: Connection refused (os error 111)")
    );
}

#[tokio::test]
async fn garbage_instead_of_http() {
    let error = error(vec![Act::Send(b"SSH-2.0-OpenSSH_9.7\r\n".to_vec()), Act::Close]).await;
    assert_eq!(error.kind, ErrorKind::Cut);
    assert!(error.message.contains("/v1 closed the connection without a response: "), "{error}");
}

#[tokio::test]
async fn answers_that_are_no_reply() {
    let page = "<html><head><title>Sign in</title></head></html>";
    let kind = async |headers: &str, body: &str| error(response("200 OK", headers, body)).await.kind;
    assert_eq!(kind("content-type: text/html\r\n", page).await, ErrorKind::Protocol);
    assert_eq!(kind("content-type: application/json\r\n", "{\"status\":\"ok\"}").await, ErrorKind::Protocol);
    assert_eq!(kind("", "").await, ErrorKind::Cut);
    assert_eq!(kind("", "data: \u{0}\u{1}\n\n").await, ErrorKind::Protocol);
}

#[tokio::test]
async fn a_compressed_reply_is_named_as_one() {
    // `data: [DONE]` compressed with gzip.
    let body =
        b"\x1f\x8b\x08\0\0\0\0\0\x02\x03KI,I\xb4R\x88v\xf1\xf7s\x8d\xe5\xe2\x02\0\x1c\xed\xc8\xaf\x0e\0\0\0";
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len());
    let error = error(vec![Act::Send(head.into_bytes()), Act::Send(body.to_vec())]).await;
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert_eq!(error.message, "the reply is compressed (\"gzip\"), which was not requested");
    let plain = "content-encoding: identity\r\ncontent-type: text/event-stream\r\n";
    let events = [HELLO, STOP, DONE].concat();
    assert_eq!(answer(response("200 OK", plain, &events)).await.0.unwrap().text, "hello");
}

#[tokio::test]
async fn refusals_carry_the_servers_words_and_wait() {
    let body = r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#;
    let refused = error(response("429 Too Many Requests", "retry-after: 2\r\n", body)).await;
    let expected = ModelError {
        kind: ErrorKind::RateLimited,
        status: Some(429),
        message: "slow down".into(),
        retry_after_ms: Some(2_000),
        source_line: None,
    };
    assert_eq!(refused, expected);
    assert_eq!(refused.to_string(), "slow down (HTTP 429)");

    let dated = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:40 GMT\r\n";
    let refused = error(response("503 Service Unavailable", dated, "")).await;
    assert_eq!((refused.kind, refused.retry_after_ms), (ErrorKind::Server, Some(3_000)));
    // Without a `Date` header the date is relative to our clock, which is at 1970 here.
    let undated = "retry-after: Thu, 01 Jan 1970 00:00:09 GMT\r\n";
    let refused = error(response("503 Service Unavailable", undated, "")).await;
    assert_eq!(refused.retry_after_ms, Some(9_000));
    let exact = "retry-after-ms: 150\r\nretry-after: 1\r\n";
    assert_eq!(error(response("429 Too Many Requests", exact, "")).await.retry_after_ms, Some(150));
}

#[tokio::test]
async fn a_redirect_is_not_followed_but_named() {
    let refused = error(response("308 Permanent Redirect", "location: https://elsewhere/v1\r\n", "")).await;
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert_eq!(
        refused.message,
        "the server redirects to another address; use that one as the base URL (https://elsewhere/v1)"
    );
}

#[tokio::test]
async fn a_key_quoted_back_is_blotted_out() {
    let body = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}.\"}}}}");
    let refused = error(response("401 Unauthorized", "", &body)).await;
    assert_eq!(refused.message, "Incorrect API key provided: [key].");
    assert!(!format!("{refused:?}").contains(KEY));
}

#[tokio::test]
async fn an_endless_refusal_is_read_up_to_a_bound() {
    let mut acts = vec![Act::Send(b"HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n".to_vec())];
    acts.extend((0..64).map(|_| Act::Send(chunk(&"no ".repeat(1_000)))));
    acts.push(Act::Hang);
    let begin = Instant::now();
    let refused = error(acts).await;
    assert_eq!(refused.kind, ErrorKind::Server);
    assert!(refused.message.chars().count() <= 301, "{}", refused.message.len());
    assert!(begin.elapsed() < Duration::from_millis(900), "the bound was reached before the time limit");
}

#[tokio::test]
async fn a_refusal_that_hangs_is_still_one() {
    let acts = vec![Act::Send(b"HTTP/1.1 400 Bad\r\ncontent-length: 99\r\n\r\nno good".to_vec()), Act::Hang];
    let refused = error(acts).await;
    assert_eq!((refused.kind, refused.message.as_str()), (ErrorKind::Invalid, "no good"));
}

#[tokio::test]
async fn cancelling_ends_a_request_at_once() {
    for acts in [
        vec![Act::Hang],
        vec![Act::Send(STREAM_HEAD.as_bytes().to_vec()), Act::Send(chunk(HELLO)), Act::Hang],
    ] {
        let server = Server::start(vec![acts]).await;
        let model = open(&Connection { silence: Duration::from_secs(60), ..settings(&server) });
        let (conversation, options, token) =
            (conversation(), RequestOptions::default(), CancellationToken::new());
        let mut sink = |_: ReplyDelta<'_>| {};
        let begin = Instant::now();
        let (outcome, ()) = tokio::join!(model.send(&conversation, &options, &mut sink, &token), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            token.cancel();
        });
        assert_eq!(outcome.unwrap_err().kind, ErrorKind::Cancelled);
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn when_one_is_told_to_wait_all_on_the_endpoint_do() {
    let server = Server::start(vec![
        response("429 Too Many Requests", "retry-after: 0.3\r\n", ""),
        streamed(&[HELLO, STOP, DONE]),
        streamed(&[HELLO, STOP, DONE]),
    ])
    .await;
    let models = Models::new(|| SystemTime::UNIX_EPOCH);
    let settings = settings(&server);
    let (one, other) = (models.open("one", &settings).unwrap(), models.open("other", &settings).unwrap());
    let begin = Instant::now();
    assert_eq!(send(&*one).await.0.unwrap_err().kind, ErrorKind::RateLimited);
    let (reply, output) = send(&*other).await;
    assert_eq!(reply.unwrap().text, "hello");
    assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
    assert!(output[0].starts_with("Waiting { ms: "), "{output:?}");
    let (reply, output) = send(&*one).await;
    assert_eq!(reply.unwrap().text, "hello");
    assert_eq!(output, ["Started", "Text(\"hello\")"], "the gate is open again");
}

#[tokio::test]
async fn an_idle_connection_the_server_closed_costs_no_failure() {
    let mut answer = streamed(&[HELLO, STOP, DONE]);
    answer.push(Act::Close);
    let server = Server::start(vec![answer; 3]).await;
    let model = open(&settings(&server));
    for _ in 0..3 {
        send(&*model).await.0.unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_proxy_is_used_unless_the_host_is_excepted() {
    let proxy = Server::start(vec![streamed(&[HELLO, STOP, DONE])]).await;
    let settings = Connection {
        base_url: Some("http://model.invalid/v1".into()),
        proxy: Some(format!("http://127.0.0.1:{}", proxy.port)),
        no_proxy: Some("127.0.0.1,localhost".into()),
        ..Connection::default()
    };
    assert_eq!(send(&*open(&settings)).await.0.unwrap().text, "hello");
    assert!(proxy.requests()[0].starts_with("POST http://model.invalid/v1/chat/completions HTTP/1.1\r\n"));

    let server = Server::start(vec![streamed(&[HELLO, STOP, DONE])]).await;
    send(&*open(&Connection { base_url: Some(server.base_url()), ..settings })).await.0.unwrap();
    assert_eq!((server.requests().len(), proxy.requests().len()), (1, 1));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    // Bound and dropped: nothing listens on this port.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = |base_url: &str, proxy: String| Connection {
        base_url: Some(base_url.to_owned()),
        proxy: Some(proxy),
        no_proxy: Some("localhost, .direct.invalid".into()),
        ..Connection::default()
    };
    let proxy = format!("http://me:hidden@127.0.0.1:{port}");
    let refused = settings("http://model.invalid/v1", proxy.clone());
    let error = send(&*open(&refused)).await.0.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    let expected = format!(
        "cannot reach http://model.invalid/v1 through the proxy http://127.0.0.1:{port} (from HTTPS_PROXY"
    );
    assert!(error.message.starts_with(&expected) && !error.message.contains("hidden"), "{}", error.message);
    assert!(error.message.contains("NO_PROXY"), "{}", error.message);
    let direct = send(&*open(&settings("http://a.direct.invalid/v1", proxy))).await.0.unwrap_err();
    assert!(!direct.message.contains("proxy"), "{}", direct.message);

    // A proxy that answers a tunnel with a refusal.
    let proxy = Server::start(vec![response("403 Forbidden", "", "no")]).await;
    let refused = settings("https://model.invalid/v1", format!("http://127.0.0.1:{}", proxy.port));
    let error = send(&*open(&refused)).await.0.unwrap_err();
    let expected =
        format!("cannot reach https://model.invalid/v1 through the proxy http://127.0.0.1:{} (", proxy.port);
    assert!(error.message.starts_with(&expected), "{}", error.message);
}

async fn context(answers: &[(&str, &str)]) -> (Option<u64>, Vec<String>) {
    let answers = answers.iter().map(|(status, body)| response(status, "", body)).collect();
    let server = Server::start(answers).await;
    let model = open(&settings(&server));
    let tokens = model.context_tokens().await;
    assert_eq!(model.context_tokens().await, tokens, "asked once");
    let asked = server
        .requests()
        .iter()
        .map(|request| request.split(" HTTP").next().unwrap_or_default().to_owned())
        .collect();
    (tokens, asked)
}

#[tokio::test]
async fn the_context_size_as_servers_tell_it() {
    let list = |entry: &str| format!("{{\"data\":[{{\"id\":\"x\"}},{{\"id\":\"test-model\",{entry}}}]}}");
    for (entry, expected) in [
        ("\"max_model_len\":4096", Some(4096)),
        ("\"context_length\":8192", Some(8192)),
        ("\"context_window\":16384", Some(16384)),
        ("\"meta\":{\"n_ctx\":2048,\"n_ctx_train\":99999}", Some(2048)),
        ("\"owned_by\":\"openai\"", None),
    ] {
        let (tokens, asked) = context(&[("200 OK", &list(entry))]).await;
        assert_eq!((tokens, asked), (expected, vec!["GET /v1/models".to_owned()]), "{entry}");
    }
}

#[tokio::test]
async fn llama_cpp_is_asked_what_it_runs_with() {
    let models = "{\"data\":[{\"id\":\"/path/m.gguf\",\"meta\":{\"n_ctx_train\":32768}}]}";
    let props = "{\"default_generation_settings\":{\"n_ctx\":4096}}";
    let asked = || vec!["GET /v1/models".to_owned(), "GET /props".to_owned()];
    assert_eq!(context(&[("200 OK", models), ("200 OK", props)]).await, (Some(4096), asked()));
    assert_eq!(context(&[("200 OK", models), ("404 Not Found", "")]).await, (Some(32768), asked()));
    assert_eq!(context(&[("404 Not Found", ""), ("200 OK", props)]).await, (Some(4096), asked()));
    assert_eq!(context(&[("500 Oh", ""), ("500 Oh", "")]).await, (None, asked()));
}
