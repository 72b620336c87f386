//! Invariants of every codec: any split of a stream gives the same reply, and opaque items are returned
//! unchanged.

mod images;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::stream::Decoder;
use crate::{Conversation, Reply, ReplyDelta};

/// A stream of each format with all of its features, as sent by its server.
pub(crate) const FIXTURES: &[(Wire, &str)] = &[
    (Wire::Chat, include_str!("fixtures/openai_chat.sse")),
    (Wire::Chat, include_str!("fixtures/llama_cpp.sse")),
    (Wire::Chat, include_str!("fixtures/deepseek.sse")),
    (Wire::Responses, include_str!("fixtures/openai_responses.sse")),
    (Wire::Anthropic, include_str!("fixtures/anthropic.sse")),
];

/// The reply, and the deltas passed to the sink.
pub(crate) fn decode<'a>(
    wire: Wire,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Result<Reply, ModelError>, String) {
    let mut output = String::new();
    let mut sink = |delta: ReplyDelta<'_>| match delta {
        ReplyDelta::Text(piece) => output.push_str(piece),
        ReplyDelta::Reasoning(piece) => output.push_str(piece),
        ReplyDelta::ToolCall { name, .. } => output.push_str(name),
        ReplyDelta::ToolArguments { fragment, .. } => output.push_str(fragment),
        ReplyDelta::Started | ReplyDelta::Waiting { .. } => {}
    };
    let mut decoder = Decoder::new(wire, 3);
    for piece in pieces {
        if let Err(error) = decoder.feed(piece, &mut sink) {
            return (Err(error), output);
        }
    }
    (decoder.finish(&mut sink), output)
}

fn whole(wire: Wire, text: &str) -> Reply {
    decode(wire, [text.as_bytes()].into_iter()).0.unwrap()
}

#[test]
fn replies_as_servers_sent_them() {
    let replies: Vec<Value> =
        FIXTURES.iter().map(|(wire, text)| serde_json::to_value(whole(*wire, text)).unwrap()).collect();
    insta::assert_json_snapshot!(replies);
}

#[test]
fn a_stream_that_is_cut_anywhere_is_cut_or_whole_and_never_something_else() {
    for (wire, text) in FIXTURES {
        let reply = whole(*wire, text);
        for end in 0..text.len() {
            match decode(*wire, [&text.as_bytes()[..end]].into_iter()).0 {
                Err(error) => assert_eq!(error.kind, crate::ErrorKind::Cut, "{wire:?} at {end}: {error}"),
                // Only the usage figures may be missing.
                Ok(part) => assert_eq!(Reply { usage: reply.usage, ..part }, reply, "{wire:?} at {end}"),
            }
        }
    }
}

#[test]
fn what_came_back_from_a_server_goes_to_it_unchanged() {
    for (wire, text) in FIXTURES {
        let reply = whole(*wire, text);
        let mut conversation = Conversation::new(*wire, "s".into(), vec![]);
        conversation.push(Message::user("go"));
        conversation.push(reply.clone().into_message());
        let body = String::from_utf8(conversation.body(&RequestOptions::default()).to_vec()).unwrap();
        for call in &reply.tool_calls {
            assert!(body.contains(&call.id), "{wire:?}: {body}");
        }
        for secret in ["sig-AbC123==", "gAAAAA-encrypted", "unheard-of", "signed-call"] {
            assert_eq!(text.contains(secret), body.contains(secret), "{wire:?}: {secret} in {body}");
        }
    }
}

#[test]
fn a_field_given_word_for_word_wins_in_every_format() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic] {
        let options = RequestOptions {
            temperature: Some(1.0),
            extra: json!({"temperature": 0, "odd": {"x": 1}}).as_object().unwrap().clone(),
            ..RequestOptions::default()
        };
        let conversation = Conversation::new(wire, String::new(), vec![]);
        let body: Value = serde_json::from_slice(&conversation.body(&options).to_vec()).unwrap();
        assert_eq!((&body["temperature"], &body["odd"]), (&json!(0), &json!({"x": 1})), "{wire:?}");
    }
}

#[test]
fn a_server_that_samples_as_it_pleases_is_not_told_how_in_any_format() {
    let options = RequestOptions { temperature: Some(0.0), top_p: Some(0.5), ..RequestOptions::default() };
    for (wire, fixed_sampling) in [Wire::Chat, Wire::Responses, Wire::Anthropic]
        .into_iter()
        .flat_map(|wire| [(wire, true), (wire, false)])
    {
        let traits = crate::ModelTraits { fixed_sampling, ..crate::ModelTraits::default() };
        let conversation = Conversation::new(Dialect { wire, traits }, String::new(), vec![]);
        let body: Value = serde_json::from_slice(&conversation.body(&options).to_vec()).unwrap();
        let output = ["temperature", "top_p"].map(|key| body.get(key).is_some());
        assert_eq!(output, [!fixed_sampling; 2], "{wire:?}");
    }
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same_reply(
        fixture in 0..FIXTURES.len(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let (wire, text) = FIXTURES[fixture];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]);
        let (reply, output) = decode(wire, pieces);
        let (same, told_whole) = decode(wire, [text.as_bytes()].into_iter());
        prop_assert_eq!(reply, same);
        prop_assert_eq!(output, told_whole);
    }

    #[test]
    fn any_json_is_a_reply_or_an_error(
        wire in prop_oneof![Just(Wire::Responses), Just(Wire::Anthropic), Just(Wire::Chat)],
        events in prop::collection::vec(any_event(), 0..12),
    ) {
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let _ = decode(wire, [text.as_bytes()].into_iter());
        for event in &events {
            let _ = decode(wire, [event.to_string().as_bytes()].into_iter());
        }
    }
}

/// An event-like object with arbitrary values in its fields.
fn any_event() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "error",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.completed",
        "response.failed",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[a-z\"{}]{0,6}".prop_map(Value::from),
        prop::sample::select(vec![
            "text",
            "tool_use",
            "thinking",
            "function_call",
            "message",
            "reasoning",
            "text_delta"
        ])
        .prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 24, 4, |inner| {
        let keys = prop::sample::select(vec![
            "type",
            "index",
            "delta",
            "text",
            "content",
            "content_block",
            "item",
            "output",
            "response",
            "usage",
            "input_tokens",
            "stop_reason",
            "arguments",
            "call_id",
            "id",
            "name",
            "input",
            "error",
            "thinking",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    });
    (kinds, value).prop_map(|(kind, value)| match value {
        Value::Object(mut fields) => {
            fields.insert("type".into(), kind.into());
            Value::Object(fields)
        }
        other => other,
    })
}
