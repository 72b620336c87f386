//! Recording and playing cassettes.

use std::sync::Arc;

use super::recorder::Recorder;
use super::*;
use crate::Wire;
use crate::script::Script;
use crate::{Message, Reasoning, StopReason, ToolCall, Usage};

const SCRIPT: &str = r#"{"reasoning":"hm","text":"one","tool_calls":[{"id":"c9","name":"t","arguments":"{ \"odd\" : 1}"}],"usage":{"input_tokens":5,"output_tokens":6,"cached_tokens":4}}
{"error":{"status":503,"retry_after":0.5,"message":"busy"}}
{"cut_after":1,"text":"two"}
{"text":"three"}
"#;

fn conversation(texts: &[&str]) -> Conversation {
    let mut conversation = Conversation::new(Wire::Chat, "system".into(), vec![]);
    for text in texts {
        conversation.push(Message::user(*text));
    }
    conversation
}

async fn send(model: &dyn Model, texts: &[&str]) -> Result<Reply, ModelError> {
    let mut sink = |_: ReplyDelta<'_>| {};
    model.send(&conversation(texts), &RequestOptions::default(), &mut sink, &CancellationToken::new()).await
}

fn without_line(outcome: Result<Reply, ModelError>) -> Result<Reply, ModelError> {
    outcome
        .map(|reply| Reply { source_line: None, ..reply })
        .map_err(|error| ModelError { source_line: None, ..error })
}

const ASKED: [&[&str]; 4] = [&["a"], &["a", "b"], &["a", "b"], &["a", "b"]];

async fn record(path: &Path) -> Vec<Result<Reply, ModelError>> {
    let script = Script::parse("script:s", "s", SCRIPT).unwrap();
    let recorder = Recorder::open(Arc::new(script), path).unwrap();
    let mut outcomes = Vec::new();
    for texts in ASKED {
        outcomes.push(without_line(send(&recorder, texts).await));
    }
    outcomes
}

#[tokio::test]
async fn a_recording_plays_back_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.jsonl");
    let live = record(&path).await;
    let cassette = Cassette::open("replay:c", &path).unwrap();
    assert_eq!((cassette.name(), cassette.dialect()), ("replay:c", Wire::Chat.into()));
    let mut played = Vec::new();
    for texts in ASKED {
        played.push(without_line(send(&cassette, texts).await));
    }
    assert_eq!(played, live);
    assert_eq!(live[0].as_ref().unwrap().tool_calls[0].arguments, "{ \"odd\" : 1}");
    assert_eq!(live[2].as_ref().unwrap_err().kind, ErrorKind::Cut);
    let over = send(&cassette, &["a"]).await.unwrap_err();
    assert_eq!(
        (over.kind, over.message),
        (ErrorKind::Exhausted, format!("the cassette {} has no reply left: all 4 are used", path.display()))
    );
}

#[tokio::test]
async fn what_a_cassette_looks_like() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.jsonl");
    record(&path).await;
    let text = std::fs::read_to_string(&path).unwrap();
    let (one, two) = (conversation(&["a"]).hash(), conversation(&["a", "b"]).hash());
    insta::assert_snapshot!(text.replace(&one, "HASH1").replace(&two, "HASH2"), @r#"
    {"cassette":1,"model":"script:s","wire":"chat"}
    {"request":{"hash":"HASH1","messages":1,"last":"a","added":[{"role":"user","text":"a"}]},"reasoning":"hm","text":"one","tool_calls":[{"id":"c9","name":"t","arguments":"{ \"odd\" : 1}"}],"usage":{"input_tokens":5,"output_tokens":6,"cached_tokens":4},"stop":"tool_calls"}
    {"request":{"hash":"HASH2","messages":2,"last":"b","added":[{"role":"user","text":"a"},{"role":"user","text":"b"}]},"error":{"kind":"server","status":503,"retry_after":0.5,"message":"busy"}}
    {"request":{"hash":"HASH2","messages":2,"last":"b","added":[{"role":"user","text":"a"},{"role":"user","text":"b"}]},"error":{"kind":"cut","message":"the reply ended prematurely"}}
    {"request":{"hash":"HASH2","messages":2,"last":"b","added":[{"role":"user","text":"a"},{"role":"user","text":"b"}]},"text":"three","stop":"end"}
    "#);
}

#[tokio::test]
async fn what_only_a_server_tells_is_kept() {
    let conversation = conversation(&["a"]);
    let reply = Reply {
        text: "t".into(),
        reasoning: Some(Reasoning {
            text: String::new(),
            opaque: vec![serde_json::json!({"signature": "s"})],
        }),
        tool_calls: vec![ToolCall { id: "i".into(), name: "n".into(), arguments: "not json".into() }],
        usage: Some(Usage {
            input_tokens: 1,
            output_tokens: 2,
            cached_tokens: 3,
            reasoning_tokens: 4,
            ..Usage::default()
        }),
        stop: StopReason::Other("pause".into()),
        source_line: None,
    };
    let failure = ModelError::new(ErrorKind::Silence, "nothing came");
    let text = format!(
        "{{\"cassette\":1,\"model\":\"m\",\"context_tokens\":4096}}\n{}\n{}\n",
        recorder::exchange(&conversation, Ok(&reply)),
        recorder::exchange(&conversation, Err(&failure))
    );
    let cassette = Cassette::parse("replay:c", "c", &text).unwrap();
    assert_eq!(without_line(send(&cassette, &["a"]).await), Ok(reply));
    assert_eq!(without_line(send(&cassette, &["a"]).await), Err(failure));
    assert_eq!(cassette.context_tokens().await, Some(4096));
}

#[tokio::test]
async fn the_same_request_gets_its_own_reply_and_others_the_next_that_was_made_for_nobody() {
    let line = |texts: &[&str], reply: &str| {
        recorder::exchange(&conversation(texts), Ok(&Reply { text: reply.into(), ..Reply::default() }))
    };
    let text = [
        "{\"cassette\":1,\"model\":\"m\"}".to_owned(),
        "{\"text\":\"to anyone\"}".to_owned(),
        line(&["b"], "to b"),
        line(&["c"], "to c"),
        line(&["b"], "to b again"),
    ]
    .join("\n");
    let cassette = Cassette::parse("replay:c", "c", &text).unwrap();
    let mut said = Vec::new();
    for asked in ["b", "c", "new", "b", "b"] {
        said.push(send(&cassette, &[asked]).await.map_or_else(|error| error.message, |reply| reply.text));
    }
    assert_eq!(
        said,
        ["to b", "to c", "to anyone", "to b again", "the cassette c has no reply left: all 4 are used"]
    );
}

#[tokio::test]
async fn resuming_goes_on_after_the_lines_the_journal_has_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.jsonl");
    record(&path).await;
    let before = Cassette::open("replay:c", &path).unwrap();
    let reply = send(&before, ASKED[0]).await;
    let error = send(&before, ASKED[1]).await;
    assert_eq!(reply.as_ref().unwrap().source_line, Some(2));
    assert_eq!(error.as_ref().unwrap_err().source_line, Some(3));

    let after = Cassette::open("replay:c", &path).unwrap();
    after.replayed(reply.as_ref());
    after.replayed(error.as_ref());
    assert_eq!(send(&after, ASKED[2]).await.unwrap_err().kind, ErrorKind::Cut);
    assert_eq!(send(&after, ASKED[3]).await.unwrap().text, "three");
}

#[tokio::test]
async fn a_recording_is_continued_and_a_torn_line_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.jsonl");
    record(&path).await;
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"request\":{{\"ha")).unwrap();
    record(&path).await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 9);
    assert!(text.starts_with(&whole));
    assert_eq!(text.matches("\"cassette\"").count(), 1);
    Cassette::open("replay:c", &path).unwrap();
}

#[test]
fn a_file_that_is_no_cassette_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    for text in ["my notes\nand more", "no line end"] {
        std::fs::write(&path, text).unwrap();
        let model = Arc::new(Script::parse("script:s", "s", "").unwrap());
        let error = Recorder::open(model, &path).err().unwrap().to_string();
        assert!(error.contains("not a cassette"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn a_cancelled_request_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.jsonl");
    let script = Script::parse("script:s", "s", "{\"delay_ms\":60000,\"text\":\"x\"}").unwrap();
    let recorder = Recorder::open(Arc::new(script), &path).unwrap();
    let token = CancellationToken::new();
    token.cancel();
    let mut sink = |_: ReplyDelta<'_>| {};
    let outcome = recorder.send(&conversation(&["a"]), &RequestOptions::default(), &mut sink, &token).await;
    assert_eq!(outcome.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
}

#[test]
fn faults_of_a_cassette_are_named_with_their_place() {
    let fault = |text: &str| Cassette::parse("replay:c", "c.jsonl", text).err().unwrap().to_string();
    assert_eq!(
        fault(""),
        "c.jsonl:1:1: not a cassette: the first line must look like {\"cassette\":1,\"model\":\"…\"}"
    );
    assert_eq!(
        fault("{\"cassette\":2,\"model\":\"m\"}\n"),
        "c.jsonl:1:1: unsupported cassette version 2; expected version 1"
    );
    assert_eq!(
        fault("{\"cassette\":1,\"model\":\"m\"}\n{\"text\":\"a\"}\n{\"match\":\"x\"}\n"),
        "c.jsonl:3:2: unknown field `match` (allowed: `request`, `text`, `reasoning`, `opaque`, `tool_calls`, `usage`, `stop`, `error`, `cut_after`, `delay_ms`)"
    );
}

#[tokio::test]
async fn a_request_that_was_not_recorded_is_shown_beside_the_one_that_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.jsonl");
    record(&path).await;
    let file = path.display().to_string();
    let cassette = Cassette::open("replay:c", &path).unwrap();
    let error = send(&cassette, &["another"]).await.unwrap_err();
    assert_eq!((error.kind, error.source_line), (ErrorKind::Invalid, Some(2)));
    assert_eq!(
        error.message.replace(&file, "FILE"),
        "the request differs from the one recorded at FILE:2:\n--- recorded\n+++ now\n@@ -1 +1 @@\n-user: a\n+user: another"
    );
}
