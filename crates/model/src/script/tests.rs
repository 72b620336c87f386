//! Scripts: their replies, the order of lines, and error messages.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::Wire;
use crate::{Message, Reasoning, StopReason, ToolCall, Usage};

fn script(text: &str) -> Script {
    Script::parse("script:s.jsonl", "s.jsonl", text).unwrap()
}

fn faults(text: &str) -> String {
    Script::parse("script:s.jsonl", "s.jsonl", text).err().expect("a fault").to_string()
}

fn asking(text: &str) -> Conversation {
    let mut conversation = Conversation::new(Wire::Chat, "system".into(), vec![]);
    conversation.push(Message::user(text));
    conversation
}

async fn send(model: &Script, text: &str) -> (Result<Reply, ModelError>, Vec<String>) {
    let mut output = Vec::new();
    let mut sink = |delta: ReplyDelta<'_>| output.push(format!("{delta:?}"));
    let reply =
        model.send(&asking(text), &RequestOptions::default(), &mut sink, &CancellationToken::new()).await;
    (reply, output)
}

async fn text_of(model: &Script, text: &str) -> String {
    match send(model, text).await.0 {
        Ok(reply) => reply.text,
        Err(error) => format!("! {error}"),
    }
}

#[tokio::test]
async fn the_lines_of_the_manual() {
    let model = script(
        r#"{"text":"I will look.","tool_calls":[{"name":"read_file","arguments":{"path":"a.txt"}}],"usage":{"input_tokens":900,"output_tokens":12}}
{"reasoning":"…","text":"Done."}
{"error":{"status":429,"retry_after":1,"message":"slow down"}}
{"cut_after":10,"text":"a stream that breaks off after ten characters"}
"#,
    );
    let (reply, output) = send(&model, "go").await;
    assert_eq!(
        reply.unwrap(),
        Reply {
            text: "I will look.".into(),
            reasoning: None,
            tool_calls: vec![ToolCall {
                id: "call_1_0".into(),
                name: "read_file".into(),
                arguments: "{\"path\":\"a.txt\"}".into()
            }],
            usage: Some(Usage { input_tokens: 900, output_tokens: 12, ..Usage::default() }),
            stop: StopReason::ToolCalls,
            source_line: Some(1),
        }
    );
    assert_eq!(
        output,
        [
            "Started",
            r#"Text("I will look.")"#,
            r#"ToolCall { index: 0, name: "read_file" }"#,
            r#"ToolArguments { index: 0, fragment: "{\"path\":\"a.txt\"}" }"#,
        ]
    );

    let (reply, output) = send(&model, "go").await;
    let reply = reply.unwrap();
    assert_eq!(reply.reasoning, Some(Reasoning { text: "…".into(), opaque: vec![] }));
    assert_eq!((reply.text.as_str(), reply.stop), ("Done.", StopReason::End));
    assert_eq!(output, ["Started", r#"Reasoning("…")"#, r#"Text("Done.")"#]);

    let (reply, output) = send(&model, "go").await;
    assert_eq!(
        reply.unwrap_err(),
        ModelError {
            kind: ErrorKind::RateLimited,
            status: Some(429),
            message: "slow down".into(),
            retry_after_ms: Some(1_000),
            source_line: Some(3)
        }
    );
    assert_eq!(output, Vec::<String>::new());

    let (reply, output) = send(&model, "go").await;
    let error = reply.unwrap_err();
    assert_eq!((error.kind, error.source_line), (ErrorKind::Cut, Some(4)));
    assert_eq!(output, ["Started", r#"Text("a stream t")"#]);

    let (reply, _) = send(&model, "go").await;
    assert_eq!(
        reply.unwrap_err(),
        ModelError::new(ErrorKind::Exhausted, "the script s.jsonl has no line left: all 4 are used")
    );
}

#[tokio::test]
async fn text_comes_in_small_pieces_that_add_up() {
    let long = "Grüße, a sentence of some length follows.\n\nAnd_a_word_without_any_spaces_that_is_really_very_long_indeed.";
    let model = script(&format!("{}\n", serde_json::json!({"text": long})));
    let mut pieces = Vec::new();
    let mut sink = |delta: ReplyDelta<'_>| {
        if let ReplyDelta::Text(piece) = delta {
            pieces.push(piece.to_owned());
        }
    };
    model.send(&asking("x"), &RequestOptions::default(), &mut sink, &CancellationToken::new()).await.unwrap();
    assert_eq!(pieces.concat(), long);
    assert_eq!(
        pieces,
        [
            "Grüße, a sentence of some ",
            "length follows.\n\nAnd_a_word_without_any_spaces_t",
            "hat_is_really_very_long_indeed.",
        ]
    );
}

#[tokio::test]
async fn matching_lines_come_first_and_are_used_once() {
    let model = script(
        r#"{"text":"plain 1"}
{"match":"^b","text":"first b"}
{"match":"b","text":"any b"}

{"text":"plain 2"}
{"match":"never","text":"?"}
"#,
    );
    assert_eq!(text_of(&model, "abc").await, "any b", "the first that matches, whatever its place");
    assert_eq!(text_of(&model, "bcd").await, "first b");
    assert_eq!(text_of(&model, "bcd").await, "plain 1", "both are used");
    assert_eq!(text_of(&model, "x").await, "plain 2");
    assert_eq!(
        text_of(&model, "x").await,
        "! the script s.jsonl has no line left for this request: its 1 unused `match` lines do not match it"
    );
}

#[tokio::test]
async fn the_last_message_is_what_is_matched() {
    let model = script("{\"match\":\"second\",\"text\":\"yes\"}\n");
    let mut conversation = asking("first");
    let token = CancellationToken::new();
    let options = RequestOptions::default();
    let mut sink = |_: ReplyDelta<'_>| {};
    assert!(model.send(&conversation, &options, &mut sink, &token).await.is_err());
    conversation.push(Message::Tool {
        call_id: "c".into(),
        name: "t".into(),
        content: "the second".into(),
        ok: true,
        images: vec![],
    });
    assert_eq!(model.send(&conversation, &options, &mut sink, &token).await.unwrap().text, "yes");
}

#[tokio::test]
async fn resuming_goes_on_after_the_lines_the_journal_has_seen() {
    let text = "{\"text\":\"1\"}\n\n{\"error\":{\"status\":500}}\n{\"text\":\"4\"}\n{\"match\":\"m\",\"text\":\"5\"}\n{\"text\":\"6\"}\n";
    let before = script(text);
    let reply = send(&before, "x").await.0.unwrap();
    let error = send(&before, "x").await.0.unwrap_err();
    let matched = send(&before, "m").await.0.unwrap();

    let after = script(text);
    after.replayed(Ok(&reply));
    after.replayed(Err(&error));
    after.replayed(Ok(&matched));
    after.replayed(Ok(&Reply::default()));
    after.replayed(Ok(&Reply { source_line: Some(99), ..Reply::default() }));
    assert_eq!(text_of(&after, "m").await, "4");
    assert_eq!(text_of(&after, "m").await, "6");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_tasks_share_the_lines() {
    let text: String = (0..400).map(|n| format!("{{\"text\":\"{n}\"}}\n")).collect();
    let model = Arc::new(script(&text));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let model = model.clone();
            tokio::spawn(async move {
                let mut lines = Vec::new();
                for _ in 0..50 {
                    lines.push(send(&model, "x").await.0.unwrap().source_line.unwrap());
                }
                lines
            })
        })
        .collect();
    let mut lines = Vec::new();
    for task in tasks {
        let taken = task.await.unwrap();
        assert!(taken.is_sorted());
        lines.extend(taken);
    }
    lines.sort_unstable();
    assert_eq!(lines, (1..=400).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_delay_passes_before_the_reply_and_ends_at_a_cancel() {
    let model = script("{\"delay_ms\":5000,\"text\":\"late\"}\n{\"delay_ms\":5000,\"text\":\"never\"}\n");
    let begin = tokio::time::Instant::now();
    assert_eq!(text_of(&model, "x").await, "late");
    assert_eq!(begin.elapsed(), Duration::from_secs(5));

    let token = CancellationToken::new();
    let (conversation, options) = (asking("x"), RequestOptions::default());
    let mut sink = |_: ReplyDelta<'_>| {};
    let sending = model.send(&conversation, &options, &mut sink, &token);
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        token.cancel();
    };
    let begin = tokio::time::Instant::now();
    let (outcome, ()) = tokio::join!(sending, cancelling);
    assert_eq!(begin.elapsed(), Duration::from_millis(100));
    let error = outcome.unwrap_err();
    assert_eq!((error.kind, error.source_line), (ErrorKind::Cancelled, Some(2)));
}

#[tokio::test]
async fn arguments_as_text_may_be_malformed_and_ids_may_be_given() {
    let model = script(
        r#"{"tool_calls":[{"id":"mine","name":"a","arguments":"{broken"},{"name":"b"},{"name":"c","arguments":{"z":1, "a":{"n": [1.0, 2]}}}]}"#,
    );
    let reply = send(&model, "x").await.0.unwrap();
    let calls: Vec<_> =
        reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
    assert_eq!(
        calls,
        [
            ("mine", "a", "{broken"),
            ("call_1_1", "b", "{}"),
            ("call_1_2", "c", r#"{"z":1,"a":{"n":[1.0,2]}}"#)
        ]
    );
}

#[tokio::test]
async fn errors_are_read_like_a_servers() {
    let kind = async |error: &str| {
        let error = send(&script(&format!("{{\"error\":{error}}}")), "x").await.0.unwrap_err();
        (error.kind, error.status, error.message)
    };
    assert_eq!(kind("{}").await, (ErrorKind::Server, None, "the server failed".into()));
    assert_eq!(
        kind(r#"{"status":401}"#).await,
        (ErrorKind::Auth, Some(401), "the server requires an API key, or rejects the given one".into())
    );
    assert_eq!(
        kind(r#"{"status":400,"message":"prompt is too long: 9 tokens > 8 maximum"}"#).await,
        (ErrorKind::Overflow, Some(400), "prompt is too long: 9 tokens > 8 maximum".into())
    );
    let error = send(&script(r#"{"text":"half","error":{"status":503}}"#), "x").await;
    assert_eq!(error.1, ["Started", r#"Text("half")"#], "text before an error streams first");
    assert_eq!(error.0.unwrap_err().kind, ErrorKind::Server);
}

#[tokio::test]
async fn an_empty_line_is_an_empty_reply_and_an_empty_script_has_none() {
    assert_eq!(send(&script("{}\n"), "x").await.0.unwrap().text, "");
    assert_eq!(text_of(&script("\n \n"), "x").await, "! the script s.jsonl has no line left: all 0 are used");
}

#[tokio::test]
async fn a_reply_may_say_why_it_stopped() {
    let script = script("{\"text\":\"One, tw\",\"stop\":\"length\"}\n{\"text\":\"One, two.\"}\n");
    assert_eq!(send(&script, "x").await.0.unwrap().stop, StopReason::Length);
    assert_eq!(send(&script, "x").await.0.unwrap().stop, StopReason::End);
}

#[test]
fn every_fault_is_named_with_its_place() {
    let text = r#"{"text":"fine"}
{"txet":"a","tool_calls":[{"nmae":"x"},{"arguments":{}},{"name":"ok","arguments":[1]}]}
{"text":5,"usage":{"input":3},"delay_ms":-1}
{"text":"ä","wrong":1,"text":"b"}
{"match":"(","error":{"status":99,"retry_after":"soon"}}
{"text":"unfinished
["no object"]
{"error":{"kind":"connect"},"opaque":"x"}
{"text":"a"} {"text":"b"}
{"tool_calls":{"name":"x"},"cut_after":1.5}
"#;
    insta::assert_snapshot!(faults(text), @r#"
    s.jsonl:2:2: unknown field `txet`; did you mean `text`? (allowed: `text`, `reasoning`, `tool_calls`, `usage`, `stop`, `error`, `cut_after`, `delay_ms`, `match`)
    s.jsonl:2:28: unknown field `nmae`; did you mean `name`? (allowed: `id`, `name`, `arguments`)
    s.jsonl:2:40: a tool call needs a `name`
    s.jsonl:2:82: `arguments` must be an object or a string, not a list
    s.jsonl:3:9: `text` must be a string, not 5
    s.jsonl:3:20: unknown field `input`; did you mean `input_tokens`? (allowed: `input_tokens`, `output_tokens`, `cached_tokens`, `reasoning_tokens`)
    s.jsonl:3:42: `delay_ms` must be a number of milliseconds, not -1
    s.jsonl:4:13: unknown field `wrong` (allowed: `text`, `reasoning`, `tool_calls`, `usage`, `stop`, `error`, `cut_after`, `delay_ms`, `match`)
    s.jsonl:4:23: duplicate field `text`
    s.jsonl:5:10: `match` is not a regular expression: unclosed group
    s.jsonl:5:32: `status` must be between 300 and 599
    s.jsonl:5:49: `retry_after` must be a number of seconds, not a string
    s.jsonl:6:19: not valid JSON: EOF while parsing a string
    s.jsonl:7:1: expected an object, found a list
    s.jsonl:8:11: unknown field `kind` (allowed: `status`, `retry_after`, `message`)
    s.jsonl:8:29: unknown field `opaque` (allowed: `text`, `reasoning`, `tool_calls`, `usage`, `stop`, `error`, `cut_after`, `delay_ms`, `match`)
    s.jsonl:9:14: not valid JSON: trailing characters
    s.jsonl:10:15: expected a list, found an object
    s.jsonl:10:40: `cut_after` must be a number of characters, not 1.5
    "#);
}

#[test]
fn many_faults_are_counted() {
    let report = faults(&"{\"x\":1}\n".repeat(25));
    assert_eq!(report.lines().count(), 21);
    assert_eq!(report.lines().last(), Some("and 5 more"));
}

#[test]
fn a_file_that_cannot_be_read() {
    let error = Script::open("script:x", Path::new("/no/such/script.jsonl")).err().unwrap();
    assert_eq!(
        error.to_string(),
        "cannot read /no/such/script.jsonl: No such file or directory (os error 2)"
    );
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, b"{}\n{\"text\":\"\xff\"}\n").unwrap();
    let error = Script::open("script:x", file.path()).err().unwrap();
    assert_eq!(error.to_string(), format!("cannot read {}: line 2 is not UTF-8", file.path().display()));
}
