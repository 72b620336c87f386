//! The serialized form of messages and replies in a journal.

use serde_json::{from_str, json, to_string};

use super::*;

#[test]
fn messages_are_compact_and_read_back() {
    let messages = vec![
        Message::user("fix it"),
        Message::Assistant { text: "done".into(), reasoning: None, tool_calls: Vec::new() },
        Message::Assistant {
            text: String::new(),
            reasoning: Some(Reasoning { text: "hm".into(), opaque: vec![json!({"sig": "x"})] }),
            tool_calls: vec![ToolCall {
                id: "c1".into(),
                name: "read".into(),
                arguments: "{\"a\": 1}".into(),
            }],
        },
        Message::Tool {
            call_id: "c1".into(),
            name: "read".into(),
            content: "text".into(),
            ok: false,
            images: vec![],
        },
    ];
    let lines: Vec<String> = messages.iter().map(|message| to_string(message).unwrap()).collect();
    assert_eq!(
        lines,
        [
            r#"{"role":"user","text":"fix it"}"#,
            r#"{"role":"assistant","text":"done"}"#,
            r#"{"role":"assistant","reasoning":{"text":"hm","opaque":[{"sig":"x"}]},"tool_calls":[{"id":"c1","name":"read","arguments":"{\"a\": 1}"}]}"#,
            r#"{"role":"tool","call_id":"c1","name":"read","content":"text","ok":false}"#,
        ]
    );
    let read: Vec<Message> = lines.iter().map(|line| from_str(line).unwrap()).collect();
    assert_eq!(read, messages);
}

#[test]
fn a_reply_keeps_only_what_there_is() {
    let reply = Reply {
        text: "hi".into(),
        usage: Some(Usage { input_tokens: 3, output_tokens: 1, ..Usage::default() }),
        stop: StopReason::Other("odd".into()),
        source_line: Some(2),
        ..Reply::default()
    };
    let text = to_string(&reply).unwrap();
    assert_eq!(
        text,
        r#"{"text":"hi","usage":{"input_tokens":3,"output_tokens":1},"stop":"odd","source_line":2}"#
    );
    assert_eq!(from_str::<Reply>(&text).unwrap(), reply);
    assert_eq!(from_str::<Reply>("{}").unwrap(), Reply::default());
}

#[test]
fn every_stop_reason_reads_back() {
    use StopReason::{End, Length, Other, Refusal, ToolCalls};
    for reason in [End, ToolCalls, Length, Refusal, Other("pause_turn".into())] {
        assert_eq!(from_str::<StopReason>(&to_string(&reason).unwrap()).unwrap(), reason);
    }
}
