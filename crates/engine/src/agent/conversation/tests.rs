//! Requests built from a conversation, and their measured size.

use fusee_model::{Message, Reply, Usage, Wire};
use serde_json::json;

use super::history_window::HistoryWindow;
use super::{ContextUsage, Conversation};
use crate::agent::flow::HistorySettings;

fn conversation() -> Conversation<'static> {
    let settings = HistorySettings::default();
    let history = HistoryWindow::new(Wire::Chat.into(), "system".to_owned(), Vec::new(), settings);
    let usage = ContextUsage::default();
    let mut conversation = Conversation {
        history,
        usage,
        prompt: None,
        phase: None,
        sent: 0,
        context_tokens: None,
        context_asked: false,
        accepted_tokens: None,
    };
    conversation.history.push(Message::user("Do it.".to_owned()));
    conversation
}

fn reply(text: &str, usage: Option<Usage>) -> Reply {
    Reply { text: text.to_owned(), usage, ..Reply::default() }
}

#[test]
fn the_first_request_is_recorded_whole_and_later_ones_by_what_they_add() {
    let mut conversation = conversation();
    let user = |text: &str| json!({ "role": "user", "text": text });
    let first = conversation.request_args(None);
    assert_eq!(first, json!({ "messages": [user("Do it.")], "system": "system", "tools": [] }));
    conversation.add_reply(&reply("Done.", None));
    conversation.history.push(Message::user("More.".to_owned()));
    assert_eq!(
        conversation.request_args(Some("Now plan.")),
        json!({ "messages": [user("More.")], "tail": "Now plan." })
    );
}

#[test]
fn the_reported_size_counts_up_to_the_last_reply() {
    let mut conversation = conversation();
    let usage = Usage { input_tokens: 5_000, output_tokens: 10, ..Usage::default() };
    conversation.add_reply(&reply("Done.", Some(usage)));
    assert_eq!(conversation.tokens(), 5_010);
    conversation.history.push(Message::user("More.".to_owned()));
    assert!(conversation.tokens() > 5_010);
    assert_eq!(conversation.room_bytes(5_000), 0);
}

#[test]
fn the_servers_context_size_caps_the_limit() {
    let mut conversation = conversation();
    conversation.context_asked = true;
    conversation.forget_context_probe();
    assert_eq!((conversation.max_tokens(9_000), conversation.context_asked), (9_000, false));
    conversation.context_tokens = Some(4_096);
    conversation.forget_context_probe();
    assert_eq!((conversation.max_tokens(9_000), conversation.context_asked), (4_096, true));
}

#[test]
fn a_call_is_explained_by_the_last_reply_and_not_at_length() {
    let mut conversation = conversation();
    assert_eq!(conversation.explanation(), None);
    conversation.add_reply(&reply(&"ä".repeat(500), None));
    assert_eq!(conversation.explanation().map(|text| text.chars().count()), Some(400));
    conversation.add_reply(&Reply {
        tool_calls: vec![fusee_model::ToolCall {
            id: "c1".to_owned(),
            name: "list_dir".to_owned(),
            arguments: "{}".to_owned(),
        }],
        ..Reply::default()
    });
    assert_eq!(conversation.explanation(), None);
}

#[test]
fn preparation_stands_before_the_request() {
    let mut conversation = conversation();
    conversation.insert_before_request(vec!["The files:".to_owned()]);
    assert_eq!(conversation.history.messages(), [Message::user("The files:\n\nDo it.".to_owned())]);
}
