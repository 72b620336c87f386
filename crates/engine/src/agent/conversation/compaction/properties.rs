//! Invariants of compaction for arbitrary conversations, and for a large one.

use fusee_model::{Message, ToolCall};
use proptest::prelude::*;

use super::rule_summary::is_summary;
use super::validity::check_conversation;
use super::{Compacted, CompactionRetention, compact};

fn tokens(message: &Message) -> u64 {
    let calls: usize = match message {
        Message::Assistant { tool_calls, .. } => {
            tool_calls.iter().map(|call| call.arguments.len() + 20).sum()
        }
        Message::User { .. } | Message::Tool { .. } => 0,
    };
    (4 + (message.text().len() + calls) / 4) as u64
}

/// One call with its result, as a model and its tools may produce them.
#[derive(Clone, Debug)]
struct Asked {
    name: &'static str,
    arguments: String,
    answer: String,
    ok: bool,
}

#[derive(Clone, Debug)]
struct Spoken {
    users: Vec<String>,
    text: String,
    calls: Vec<Asked>,
    /// Whether results come in reverse order of their calls.
    backwards: bool,
    /// Whether ids restart from zero.
    same_ids: bool,
}

fn words(most: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zäß. \n]{0,40}",
        1 => ("[a-z\u{1F600}·, `\n-]{1,8}", 1..=most).prop_map(|(word, times)| word.repeat(times / 4 + 1)),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let call = prop_oneof![
        4 => (0..4u8, prop::option::of(0..2u8)).prop_map(|(file, offset)| {
            let offset = offset.map_or(String::new(), |offset| format!(r#","offset":{offset}"#));
            ("read_file", format!(r#"{{"path":"src/{file}.rs"{offset}}}"#))
        }),
        1 => Just(("read_files", r#"{"paths":["src/0.rs","src/1.rs"]}"#.to_owned())),
        1 => Just(("read_section", r#"{"section_key":"a.b"}"#.to_owned())),
        2 => Just(("plan_tasks", r#"{"action":"update","task_id":"1","status":"completed"}"#.to_owned())),
        2 => Just(("shell", r#"{"command":"cargo test"}"#.to_owned())),
        1 => Just(("write_file", r#"{"path":"src/0.rs","content":"x"}"#.to_owned())),
        1 => Just(("apply_patch", "{\"input\":\"--- a/x\\n+++ b/x\\n\"}".to_owned())),
        1 => words(40).prop_map(|broken| ("mcp_other", broken)),
    ];
    (call, words(4_000), prop::bool::weighted(0.9)).prop_map(|((name, arguments), answer, ok)| Asked {
        name,
        arguments,
        answer,
        ok,
    })
}

fn spoken() -> impl Strategy<Value = Spoken> {
    (
        prop::collection::vec(words(2_000), 0..2),
        words(400),
        prop::collection::vec(asked(), 0..4),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(users, text, calls, backwards, same_ids)| Spoken {
            users,
            text,
            calls,
            backwards,
            same_ids,
        })
}

prop_compose! {
    /// A valid conversation, possibly ending with an unanswered user message.
    fn conversation()(
        goal in prop::collection::vec(words(2_000), 1..3),
        turns in prop::collection::vec(spoken(), 0..24),
        pending in prop::option::of(words(400)),
    ) -> Vec<Message> {
        let mut messages: Vec<Message> = goal.into_iter().map(Message::user).collect();
        for (index, turn) in turns.into_iter().enumerate() {
            append(&mut messages, index, turn);
        }
        messages.extend(pending.map(Message::user));
        messages
    }
}

fn append(messages: &mut Vec<Message>, index: usize, turn: Spoken) {
    let Spoken { users, mut text, calls, backwards, same_ids } = turn;
    messages.extend(users.into_iter().map(Message::user));
    let without_calls =
        matches!(messages.last(), Some(Message::Assistant { tool_calls, .. }) if tool_calls.is_empty());
    if without_calls {
        messages.push(Message::user("Go on.".to_owned()));
    }
    if calls.is_empty() && text.is_empty() {
        text.push_str("Hm.");
    }
    let id = |n: usize| if same_ids { format!("call_{n}") } else { format!("call_{index}_{n}") };
    let mut tool_calls = Vec::new();
    let mut results = Vec::new();
    for (n, Asked { name, arguments, answer, ok }) in calls.into_iter().enumerate() {
        tool_calls.push(ToolCall { id: id(n), name: name.to_owned(), arguments });
        results.push(Message::Tool {
            call_id: id(n),
            name: name.to_owned(),
            content: answer,
            ok,
            images: vec![],
        });
    }
    if backwards {
        results.reverse();
    }
    messages.push(Message::Assistant { text, reasoning: None, tool_calls });
    messages.extend(results);
}

/// The last reply, its results, and everything after.
fn newest(messages: &[Message]) -> &[Message] {
    let reply = messages.iter().rposition(|message| matches!(message, Message::Assistant { .. }));
    &messages[reply.unwrap_or(messages.len())..]
}

fn results<'a>(messages: &'a [Message], tool: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
    messages.iter().filter_map(move |message| match message {
        Message::Tool { name, content, ok: true, .. } if name == tool => Some(content.as_str()),
        _ => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_stays_legal_and_keeps_what_matters(
        messages in conversation(),
        goals in 0..3usize,
        recent_tokens in 0..4_000u64,
        share in 0..100u64,
    ) {
        prop_assert_eq!(check_conversation(&messages), Ok(()));
        let keep = CompactionRetention { first_user_messages: goals, recent_tokens, request: None };
        let target = messages.iter().map(tokens).sum::<u64>() * share / 100;
        let compacted = compact(&messages, &keep, target, &tokens);
        prop_assert_eq!(&compacted, &compact(&messages, &keep, target, &tokens));
        let Some(compacted) = compacted else { return Ok(()) };
        let Compacted { messages: left, tokens_before, tokens_after, items_removed, .. } = &compacted;

        prop_assert_eq!(check_conversation(left), Ok(()));
        let users = messages.iter().filter(|message| matches!(message, Message::User { .. }));
        let mut rest = left.iter();
        for goal in users.take(goals) {
            prop_assert!(rest.any(|message| message == goal), "the goal is there, in order");
        }
        prop_assert!(left.ends_with(newest(&messages)));
        for tool in ["plan_tasks", "read_section"] {
            prop_assert_eq!(results(&messages, tool).next_back(), results(left, tool).next_back());
        }

        prop_assert_eq!(*tokens_before, messages.iter().map(tokens).sum::<u64>());
        prop_assert_eq!(*tokens_after, left.iter().map(tokens).sum::<u64>());
        prop_assert!(*tokens_after <= tokens_before - tokens_before / 10);
        prop_assert!(left.iter().filter(|message| is_summary(message.text())).count() <= 1);
        let known = left.iter().filter(|message| messages.contains(message)).count();
        prop_assert!(usize::try_from(*items_removed).unwrap() + known >= messages.len());
        prop_assert!(*items_removed > 0);
    }

    #[test]
    fn compacting_again_and_again_stays_legal_and_comes_to_an_end(
        mut messages in conversation(),
        more in prop::collection::vec(spoken(), 0..12),
        recent_tokens in 0..1_000u64,
        target in 0..3_000u64,
    ) {
        let keep = CompactionRetention { first_user_messages: 1, recent_tokens, request: None };
        for (index, turn) in more.into_iter().enumerate() {
            if let Some(compacted) = compact(&messages, &keep, target, &tokens) {
                let again = compact(&compacted.messages, &keep, target, &tokens);
                if compacted.tokens_after <= target {
                    prop_assert_eq!(again, None);
                } else if let Some(again) = again {
                    prop_assert_eq!(check_conversation(&again.messages), Ok(()));
                    prop_assert!(again.tokens_after < compacted.tokens_after);
                }
                messages = compacted.messages;
            }
            append(&mut messages, 100 + index, turn);
            prop_assert_eq!(check_conversation(&messages), Ok(()));
        }
    }

    #[test]
    fn a_read_is_a_stub_only_if_its_text_stands_later(messages in conversation(), share in 0..100u64) {
        let keep = CompactionRetention { first_user_messages: 1, recent_tokens: 0, request: None };
        let target = messages.iter().map(tokens).sum::<u64>() * share / 100;
        let Some(compacted) = compact(&messages, &keep, target, &tokens) else { return Ok(()) };
        let arguments = |at: usize| {
            let Message::Tool { call_id, .. } = &compacted.messages[at] else { return None };
            compacted.messages[..at].iter().rev().find_map(|message| match message {
                Message::Assistant { tool_calls, .. } => tool_calls.iter().find(|call| call.id == *call_id),
                _ => None,
            })
        };
        for (at, message) in compacted.messages.iter().enumerate() {
            let Message::Tool { name, content, .. } = message else { continue };
            if !name.starts_with("read_") || messages.contains(message) {
                continue;
            }
            let mut later = at + 1..compacted.messages.len();
            let stands = later.any(|later| {
                arguments(later).map(|call| &call.arguments) == arguments(at).map(|call| &call.arguments)
                    && messages.contains(&compacted.messages[later])
                    && compacted.messages[later].text() != content
            });
            prop_assert!(stands, "message {} is a stub without a text", at);
        }
    }
}

/// A coding session of about 100 000 tokens: reads, searches, edits and test runs of 400 bytes to 8 KB.
fn large() -> Vec<Message> {
    let mut messages = vec![Message::user("Port the parser. ".repeat(40))];
    let line = "    let value = self.next_token()?.expect_identifier(&mut diagnostics);\n";
    let mut size = 0;
    let mut turn = 0;
    while size < 400_000 {
        let asked = |name, arguments: String, bytes: usize| Asked {
            name,
            arguments,
            answer: line.repeat(bytes / line.len()),
            ok: true,
        };
        let calls = match turn % 6 {
            0 => vec![
                asked("read_file", format!(r#"{{"path":"src/{}.rs"}}"#, turn % 20), 8_000),
                asked("read_file", format!(r#"{{"path":"src/{}.rs"}}"#, turn % 7), 4_000),
            ],
            1 => vec![asked("search_text", r#"{"pattern":"fn parse"}"#.to_owned(), 3_000)],
            2 => vec![asked(
                "edit_file",
                serde_json::json!({ "path": "src/1.rs", "old": line.repeat(8), "new": line.repeat(12) })
                    .to_string(),
                400,
            )],
            3 => vec![asked("shell", r#"{"command":"cargo test --all"}"#.to_owned(), 6_000)],
            4 => vec![asked("plan_tasks", r#"{"action":"update","task_id":"3"}"#.to_owned(), 900)],
            _ => vec![asked(
                "write_file",
                serde_json::json!({ "path": "src/2.rs", "content": line.repeat(40) }).to_string(),
                600,
            )],
        };
        let from = messages.len();
        let text = "I look at the next part of the parser. Then I change it.".to_owned();
        append(
            &mut messages,
            turn,
            Spoken { users: Vec::new(), text, calls, backwards: false, same_ids: true },
        );
        size += messages[from..].iter().map(|message| tokens(message) as usize * 4).sum::<usize>();
        turn += 1;
    }
    messages
}

#[test]
fn a_large_conversation_reaches_the_target() {
    let messages = large();
    let keep = CompactionRetention { first_user_messages: 1, recent_tokens: 20_000, request: None };
    let compacted = compact(&messages, &keep, 40_000, &tokens).expect("it gets smaller");
    assert_eq!(check_conversation(&compacted.messages), Ok(()));
    assert!(compacted.tokens_before >= 100_000);
    assert!((30_000..=40_000).contains(&compacted.tokens_after), "{}", compacted.tokens_after);
}
