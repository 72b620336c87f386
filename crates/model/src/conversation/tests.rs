//! Storing and encoding the messages of a conversation.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{ModelTraits, Reasoning, ToolCall, ToolFormat, Wire};

fn tool() -> ToolSpec {
    ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({"type": "object"}) }
}

fn user(text: impl Into<String>) -> Message {
    Message::user(text)
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = proptest::string::string_regex("(?s).{0,40}").unwrap().boxed();
    prop_oneof![
        text.clone().prop_map(user),
        (text.clone(), text.clone(), any::<bool>()).prop_map(|(call_id, content, ok)| Message::Tool {
            call_id,
            name: "t".into(),
            content,
            ok,
            images: vec![]
        }),
        (text.clone(), text.clone(), text, any::<bool>()).prop_map(|(text, thought, arguments, calls)| {
            let call = ToolCall { id: "c".into(), name: "t".into(), arguments };
            Message::Assistant {
                text,
                reasoning: Some(Reasoning { text: thought, opaque: vec![] }),
                tool_calls: if calls { vec![call.clone(), call] } else { vec![] },
            }
        }),
        (30_000..90_000usize).prop_map(|size| user("x".repeat(size))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_request_is_a_prefix_of_the_next(
        system in ".{0,20}",
        with_tools in any::<bool>(),
        messages in prop::collection::vec(any_message(), 1..12),
    ) {
        let tools = if with_tools { vec![tool()] } else { vec![] };
        let options = RequestOptions { model: "m".into(), ..RequestOptions::default() };
        for dialect in dialects() {
            let closing = [&dialect.tools(&tools)[..], &dialect.closing("m", &options)].concat();
            let mut conversation = Conversation::new(dialect, system.clone(), tools.clone());
            let mut before = conversation.body(&options).to_vec();
            for message in &messages {
                let end = [dialect.end(conversation.messages().last()), &closing].concat();
                let stem = before.strip_suffix(end.as_slice()).unwrap().to_vec();
                conversation.push(message.clone());
                let body = conversation.body(&options).to_vec();
                prop_assert!(body.starts_with(&stem), "{dialect:?}");
                let sent: serde_json::Value = serde_json::from_slice(&body).unwrap();
                prop_assert!(sent.is_object());
                before = body;
            }
            prop_assert_eq!(conversation.messages(), messages.as_slice());
            let end = dialect.end(messages.last()).len() + dialect.closing("m", &options).len();
            prop_assert_eq!(before.len(), conversation.encoded_len() + end);
            // Writing all messages at once or one by one gives the same result.
            let mut fresh = Conversation::new(dialect, String::new(), vec![]);
            fresh.rewrite(messages.clone());
            fresh.set_frame(system.clone(), tools.clone());
            prop_assert_eq!(fresh.body(&options).to_vec(), before);
            prop_assert_eq!(fresh.hash(), conversation.hash());
        }
    }
}

/// All dialects with a different encoding.
fn dialects() -> Vec<Dialect> {
    let asked = |tool_format| Dialect {
        wire: Wire::Chat,
        traits: ModelTraits { tool_format, ..ModelTraits::default() },
    };
    vec![
        Wire::Chat.into(),
        Wire::Responses.into(),
        Wire::Anthropic.into(),
        asked(ToolFormat::Text),
        asked(ToolFormat::Schema),
    ]
}

#[test]
fn sealed_bytes_are_shared_and_the_copied_tail_is_bounded() {
    let mut conversation = Conversation::new(Wire::Chat, "s".into(), vec![tool()]);
    for _ in 0..40 {
        conversation.push(user("y".repeat(10_000)));
    }
    let options = RequestOptions::default();
    let (first, second) = (conversation.body(&options), conversation.body(&options));
    let copied: usize = first
        .chunks()
        .zip(second.chunks())
        .filter(|(one, other)| one.as_ptr() != other.as_ptr())
        .map(|(one, _)| one.len())
        .sum();
    assert!(first.len() > 400_000);
    assert!(copied <= TAIL_LIMIT + 200, "{copied} bytes were copied");
    assert!(first.chunks().len() < 12, "{} chunks", first.chunks().len());
}

#[test]
fn a_rewritten_conversation_is_like_a_new_one() {
    let mut conversation = Conversation::new(Wire::Chat, "s".into(), vec![tool()]);
    for n in 0..20 {
        conversation.push(user(format!("{n} {}", "z".repeat(9_000))));
    }
    let kept = vec![user("summary"), user("last")];
    conversation.rewrite(kept.clone());
    conversation.push(user("next"));

    let mut fresh = Conversation::new(Wire::Chat, "s".into(), vec![tool()]);
    kept.into_iter().chain([user("next")]).for_each(|message| fresh.push(message));
    let options = RequestOptions::default();
    assert_eq!(conversation.body(&options).to_vec(), fresh.body(&options).to_vec());
    assert_eq!(conversation.hash(), fresh.hash());
    assert_eq!(conversation.encoded_len(), fresh.encoded_len());
}

#[test]
fn a_reframed_conversation_keeps_its_messages() {
    let mut conversation = Conversation::new(Wire::Chat, String::new(), vec![]);
    conversation.push(user("one"));
    conversation.set_frame("now with a prompt".into(), vec![tool()]);
    conversation.push(user("two"));

    let mut fresh = Conversation::new(Wire::Chat, "now with a prompt".into(), vec![tool()]);
    fresh.push(user("one"));
    fresh.push(user("two"));
    let options = RequestOptions::default();
    assert_eq!(conversation.body(&options).to_vec(), fresh.body(&options).to_vec());
}

#[test]
fn the_hash_names_prompt_tools_and_messages_but_not_options() {
    let base = || {
        let mut conversation = Conversation::new(Wire::Chat, "s".into(), vec![tool()]);
        conversation.push(user("one"));
        conversation
    };
    let other_system = Conversation::new(Wire::Chat, "S".into(), vec![tool()]);
    let no_tools = Conversation::new(Wire::Chat, "s".into(), vec![]);
    let mut longer = base();
    longer.push(user("two"));
    let hashes = [base().hash(), other_system.hash(), no_tools.hash(), longer.hash()];
    assert_eq!(base().hash(), hashes[0]);
    for (index, hash) in hashes.iter().enumerate() {
        assert_eq!(hash.len(), 64);
        assert!(!hashes[index + 1..].contains(hash));
    }
}

#[test]
fn lent_words_stand_behind_the_last_message_of_one_request() {
    let answer = Message::Tool {
        call_id: "c".into(),
        name: "read_file".into(),
        content: "x".repeat(70_000),
        ok: true,
        images: vec![],
    };
    let options = RequestOptions::default();
    for last in [user("one"), answer] {
        let mut conversation = Conversation::new(Wire::Chat, "s".into(), vec![tool()]);
        conversation.push(user("first"));
        conversation.push(last.clone());
        let before = (conversation.body(&options).to_vec(), conversation.hash(), conversation.encoded_len());
        let lent = conversation.with_temporary_tail("Make the change now.");
        let body = String::from_utf8(conversation.body(&options).to_vec()).unwrap();
        assert!(body.contains("Make the change now."));
        let users = conversation.messages().windows(2);
        let in_a_row = |pair: &[Message]| pair.iter().all(|it| matches!(it, Message::User { .. }));
        // There are no more consecutive user messages than before.
        assert_eq!(
            users.filter(|pair| in_a_row(pair)).count(),
            usize::from(matches!(last, Message::User { .. }))
        );
        conversation.take_back(lent);
        let after = (conversation.body(&options).to_vec(), conversation.hash(), conversation.encoded_len());
        assert!(before == after);
        assert_eq!(conversation.messages().len(), 2);
    }
}
