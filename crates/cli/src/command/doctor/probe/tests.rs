//! Classifying a reply.

use super::*;
use fusee::engine::model::ToolCall;

fn said(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

#[test]
fn the_manner_of_a_call_decides_what_is_advised() {
    let called = Reply {
        tool_calls: vec![ToolCall { id: "c".into(), name: "ping".into(), arguments: "{}".into() }],
        ..Reply::default()
    };
    let fenced = said("```json\n{\"name\": \"ping\", \"arguments\": {\"word\": \"pong\"}}\n```");
    for (reply, expected) in
        [(called, CallStyle::Native), (fenced, CallStyle::Text), (said("Pong!"), CallStyle::Words)]
    {
        assert_eq!(call_style(&reply), expected, "{reply:?}");
    }
    assert_eq!(
        advice(CallStyle::Words, ToolFormat::Native),
        "made no tool call; try tool_format = \"schema\""
    );
}
