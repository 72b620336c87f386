//! A model over HTTP: what is sent, on how many connections, and every way of splitting a valid reply.

use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Framing, Message, Reply, Script, Server};
use serde_json::{Value, json};

use crate::support::{KEY, REQUEST, impatient, run_on};

fn shell(n: usize) -> Message {
    Message::call("shell", json!({"command": format!("echo {n} >> effects.txt")}))
}

fn effects(count: usize) -> String {
    (0..count).map(|n| format!("{n}\n")).collect()
}

#[test]
fn the_request_is_a_streaming_chat_completion_with_our_tools() {
    let project = Project::new();
    let server = Server::start(Message::text("Done."));
    run_on(&project, &server).run().exits(0);
    let requests = server.requests();
    let request = &requests[0].arrived;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body = request.json();
    assert_eq!((&body["model"], &body["stream"]), (&json!("scripted"), &json!(true)));
    let roles: Vec<&Value> = body["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles.first(), Some(&&json!("system")));
    assert_eq!(roles.last(), Some(&&json!("user")));
    assert!(body["messages"].to_string().contains(REQUEST));
    let names: Vec<&str> =
        body["tools"].as_array().unwrap().iter().filter_map(|t| t["function"]["name"].as_str()).collect();
    for tool in [
        "read_file",
        "read_files",
        "list_dir",
        "find_files",
        "search_text",
        "write_file",
        "edit_file",
        "shell",
    ] {
        assert!(names.contains(&tool), "{tool} is not among {names:?}");
    }
}

#[test]
fn each_request_begins_with_the_bytes_of_the_one_before() {
    let project = Project::new();
    let server = Server::start((0..6).map(shell).chain([Message::text("Done.")]).collect::<Script>());
    run_on(&project, &server).run().exits(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 7);
    let messages: Vec<Vec<String>> = requests.iter().map(|r| r.arrived.messages()).collect();
    for (n, pair) in messages.windows(2).enumerate() {
        assert_eq!(pair[1][..pair[0].len()], pair[0], "request {} does not begin as request {n}", n + 1);
        assert_eq!(pair[1].len(), pair[0].len() + 2, "one call and its result are two messages");
    }
    let rest = |n: usize| {
        let mut body = requests[n].arrived.json();
        body["messages"] = json!(null);
        body.to_string()
    };
    assert!((1..7).all(|n| rest(n) == rest(0)), "what surrounds the messages changes");
}

#[test]
fn a_run_keeps_one_connection() {
    let project = Project::new();
    let server = Server::start((0..8).map(shell).chain([Message::text("Done.")]).collect::<Script>());
    run_on(&project, &server).run().exits(0);
    let model_connections: std::collections::HashSet<usize> =
        server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(model_connections.len(), 1);
    assert_eq!(project.read("effects.txt"), effects(8));
}

#[test]
fn a_reply_may_be_cut_up_anywhere() {
    for piece in [1, 2, 3, 7, 64, 1000] {
        let project = Project::new();
        let call = Message::text("Gr\u{fc}\u{df}e \u{1F600}")
            .reasoning("hm")
            .and_call("shell", json!({"command": "echo 0 >> effects.txt # \u{e9}"}))
            .usage(10, 5);
        let server = Server::start([
            call.stream_in_deltas_of(1).in_pieces_of(piece),
            Message::text("Done.").usage(20, 2).stream().in_pieces_of(piece),
        ]);
        let events = run_on(&project, &server).run().exits(0).events();
        assert_eq!(project.read("effects.txt"), effects(1), "pieces of {piece}");
        let texts: Vec<&Value> = of_type(&events, "message").iter().map(|e| &e["text"]).collect();
        assert_eq!(texts, [&json!("Gr\u{fc}\u{df}e \u{1F600}"), &json!("Done.")], "pieces of {piece}");
        assert_eq!(events.last().unwrap()["total_tokens"], json!(37));
    }
}

#[test]
fn slow_streams_are_not_silent_ones() {
    // Four seconds in total, with a limit of one second of silence.
    let project = impatient();
    let text = Message::text("One word after the other.").stream_in_deltas_of(4);
    let slow = text.in_pieces_of(100).pausing(Duration::from_millis(250));
    let server = Server::start([slow]);
    let outcome = run_on(&project, &server).run().exits(0);
    assert!(outcome.elapsed > Duration::from_secs(2), "{:?}", outcome.elapsed);
    assert_eq!((server.requests().len(), of_type(&outcome.events(), "retry").len()), (1, 0));
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let project = Project::new();
    let server = Server::start([shell(0).usage(5, 5).whole(), Message::text("Done.").usage(9, 1).whole()]);
    let events = run_on(&project, &server).run().exits(0).events();
    assert_eq!(project.read("effects.txt"), effects(1));
    let last = events.last().unwrap();
    assert_eq!((&last["answer"], &last["total_tokens"]), (&json!("Done."), &json!(20)));
}

#[test]
fn a_stream_without_length_or_chunks_ends_with_its_connection() {
    let project = Project::new();
    let closing = |message: Message| message.stream().framed(Framing::UntilClose);
    let server = Server::start([closing(shell(0)), closing(Message::text("Done."))]);
    run_on(&project, &server).run().exits(0);
    assert_eq!((project.read("effects.txt"), server.connections() >= 2), (effects(1), true));
}

#[test]
fn comments_and_blank_lines_of_a_stream_mean_nothing() {
    let project = Project::new();
    let noisy = |message: Message| {
        message
            .stream()
            .with_garbage(1, b": keep-alive\n\n")
            .with_garbage(3, b"\r\n\r\nevent: ping\nid: 7\n\n")
    };
    let server = Server::start([noisy(shell(0)), noisy(Message::text("Done."))]);
    let outcome = run_on(&project, &server).run().exits(0);
    assert_eq!(of_type(&outcome.events(), "retry").len(), 0, "{}", outcome.stdout);
    assert_eq!(project.read("effects.txt"), effects(1));
}

#[test]
fn events_out_of_order_end_in_one_way() {
    let project = impatient();
    let server = Server::start([
        shell(0).stream_in_deltas_of(4).misordered(),
        Message::text("Words out of order.").stream_in_deltas_of(3).misordered(),
        Message::text("Done.").stream(),
        Message::text("Done.").stream(),
    ]);
    // Whatever the outcome, the checks of `events()` hold: one end, every call answered.
    let outcome = run_on(&project, &server).run();
    outcome.events();
    assert!(matches!(outcome.code, Some(0 | 1 | 4)), "{outcome:?}");
    assert!(project.read("effects.txt").lines().count() <= 1);
}

#[test]
fn retry_after_is_obeyed_in_both_forms() {
    let seconds = Reply::error(429, "slow down").header("retry-after", "1");
    // A date has whole seconds and is made before the run starts, so at least one of the three seconds remains.
    let date = Reply::error(503, "back soon").retry_after_date(Duration::from_secs(3));
    for (form, refusal) in [("seconds", seconds), ("date", date)] {
        let project = impatient();
        let server = Server::start([refusal, Message::text("Done.").stream()]);
        let events = run_on(&project, &server).run().exits(0).events();
        let requests = server.requests();
        let waited = requests[1].began - requests[0].answered.unwrap();
        assert!(waited > Duration::from_millis(900), "{form}: {waited:?}");
        assert!(waited < Duration::from_secs(5), "{form}: {waited:?}");
        let retry = of_type(&events, "retry")[0];
        assert!(retry["after_ms"].as_u64().unwrap() >= 900, "{form}: {retry}");
    }
}

#[test]
fn the_key_is_nowhere_but_in_the_request() {
    let project = Project::new();
    let refusal = Reply::error(400, &format!("the key {KEY} is not known here"));
    let server = Server::start([refusal]);
    let outcome = run_on(&project, &server).run().exits(1);
    assert!(!outcome.stdout.contains(KEY) && !outcome.stderr.contains(KEY), "the key is in the output");
}

/// Errors quote what the server sent.
#[test]
fn a_key_in_an_event_that_cannot_be_read_is_redacted() {
    let project = impatient();
    let wrong = || Reply::events([format!("{{\"choices\": \"the key {KEY} is not known\"}}")]);
    let server = Server::start([wrong(), wrong(), wrong(), wrong()]);
    let outcome = run_on(&project, &server).run();
    assert!(outcome.stdout.contains("[key]"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains(KEY) && !outcome.stderr.contains(KEY), "the key is in the output");
}

/// A name of a tool, too, is the server's text.
#[test]
fn a_key_in_the_name_of_a_call_is_redacted() {
    let project = Project::new();
    let server = Server::start([Message::call(KEY, json!({})).stream(), Message::text("Done.").stream()]);
    let outcome = run_on(&project, &server).run().exits(0);
    assert!(!outcome.stdout.contains(KEY) && !outcome.stderr.contains(KEY), "{}", outcome.stdout);
}

#[test]
fn a_key_that_the_server_echoes_is_redacted_in_output_and_journal() {
    let project = Project::new();
    let echo = json!({"command": format!("echo {KEY} > echoed")});
    let server = Server::start([
        Message::call("shell", echo).stream(),
        Message::text(&format!("Your key is {KEY}, isn't it?")).stream_in_deltas_of(7),
    ]);
    let outcome = run_on(&project, &server).run().exits(0);
    let last = outcome.events().pop().unwrap();
    assert_eq!(last["answer"], "Your key is [key], isn't it?", "{last:#}");
    assert!(!project.read("echoed").contains(KEY));
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(project.dir().join(".fusee").join(file)).unwrap_or_default();
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{file} holds the key");
    }
}

#[test]
fn a_server_that_asks_for_a_wait_of_days_is_given_up() {
    let project = impatient();
    let server = Server::start([Reply::error(429, "later").header("retry-after", "999999")]);
    run_on(&project, &server).limit(Duration::from_secs(60)).run().exits(4);
    assert_eq!(server.requests().len(), 1);
}
