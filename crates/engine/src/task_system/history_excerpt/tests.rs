//! Conversation excerpts: complete turns, newest ones, within limits.

use super::*;

fn said(text: &str) -> Message {
    Message::user(text.to_owned())
}

fn replied(text: &str) -> Message {
    Message::Assistant { text: text.to_owned(), reasoning: None, tool_calls: Vec::new() }
}

fn result(text: &str) -> Message {
    Message::Tool {
        call_id: "c".into(),
        name: "read_file".into(),
        content: text.to_owned(),
        ok: true,
        images: vec![],
    }
}

fn config(turns: Option<u32>) -> HistoryConfig {
    HistoryConfig { use_session_history: true, history_turns_to_include: turns, ..HistoryConfig::default() }
}

fn shown(messages: &[Message], turns: Option<u32>) -> (String, usize) {
    let (part, count) = part(messages, Some(&config(turns))).unwrap();
    (part.map(|part| part.text).unwrap_or_default(), count)
}

#[test]
fn the_last_turns_are_shown_whole() {
    let talk = [
        said("one"),
        replied("looking"),
        result("content"),
        replied("first"),
        said("two"),
        replied("second"),
    ];
    assert_eq!(
        shown(&talk, None),
        (
            "user: one\n\nassistant: looking\n\nresult of read_file: content\n\nassistant: first\n\nuser: two\n\n\
             assistant: second"
                .to_owned(),
            3
        )
    );
    let last = "[what was said before is left out]\n\nuser: two\n\nassistant: second";
    assert_eq!(shown(&talk, Some(1)), (last.to_owned(), 1));
    assert_eq!(shown(&talk, Some(0)), (String::new(), 0));
    assert_eq!(shown(&[], None), (String::new(), 0));
}

#[test]
fn nothing_is_shown_that_was_not_asked_for() {
    assert_eq!(part(&[said("one")], None), None);
    assert_eq!(part(&[said("one")], Some(&HistoryConfig::default())), None);
}

#[test]
fn a_long_conversation_is_cut_at_its_beginning_and_a_long_message_at_its_end() {
    let talk: Vec<Message> =
        (0..40).flat_map(|n| [said(&format!("{n}")), replied(&"x".repeat(9_000))]).collect();
    let (text, count) = shown(&talk, None);
    assert!(count < 12 && text.chars().count() < MAX_LENGTH + 2_000, "{count}");
    assert!(text.starts_with("[what was said before is left out]\n\nuser: 3") && text.ends_with("xxx[…]"));
}
