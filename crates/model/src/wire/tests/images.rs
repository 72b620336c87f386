//! Images in tool results, in the encoded bytes.

use serde_json::{Value, json};

use super::*;
use crate::{Image, ModelTraits, ToolCall};

/// A conversation whose last turn made two calls; the first was answered with an image.
fn conversation(wire: Wire, images: bool) -> Conversation {
    let dialect = Dialect { wire, traits: ModelTraits { images, ..ModelTraits::default() } };
    let mut conversation = Conversation::new(dialect, "s".into(), vec![]);
    conversation.push(Message::user("look"));
    let call = |id: &str| ToolCall { id: id.into(), name: "read_file".into(), arguments: "{}".into() };
    let tool_calls = vec![call("a"), call("b")];
    conversation.push(Message::Assistant { text: String::new(), reasoning: None, tool_calls });
    conversation.push(result("a", vec![image("QUFB")]));
    conversation.push(result("b", vec![]));
    conversation
}

fn result(call_id: &str, images: Vec<Image>) -> Message {
    let (name, content) = ("read_file".into(), format!("{call_id}.png"));
    Message::Tool { call_id: call_id.into(), name, content, ok: true, images }
}

fn image(data: &str) -> Image {
    Image { media_type: "image/png".into(), data: data.into() }
}

fn sent(conversation: &Conversation) -> Value {
    let body = conversation.body(&RequestOptions::default()).to_vec();
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    let list = if body.get("input").is_some() { "input" } else { "messages" };
    let items = body[list].as_array_mut().unwrap();
    // Everything before the results is the same with and without images.
    let first = items.iter().rposition(|item| item["role"] == "assistant" || item["type"] == "function_call");
    items.split_off(first.unwrap() + 1).into()
}

#[test]
fn anthropic_has_them_inside_the_result() {
    assert_eq!(
        sent(&conversation(Wire::Anthropic, true)),
        json!([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [
                {"type": "text", "text": "a.png"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUFB"}},
            ]},
            {"type": "tool_result", "tool_use_id": "b", "content": "b.png", "cache_control": {"type": "ephemeral"}},
        ]}])
    );
}

#[test]
fn responses_have_them_inside_the_result() {
    assert_eq!(
        sent(&conversation(Wire::Responses, true)),
        json!([
            {"type": "function_call_output", "call_id": "a", "output": [
                {"type": "input_text", "text": "a.png"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUFB"},
            ]},
            {"type": "function_call_output", "call_id": "b", "output": "b.png"},
        ])
    );
}

#[test]
fn chat_completions_have_them_behind_the_last_result() {
    let mut conversation = conversation(Wire::Chat, true);
    let results = json!([
        {"role": "tool", "tool_call_id": "a", "content": "a.png"},
        {"role": "tool", "tool_call_id": "b", "content": "b.png"},
        {"role": "user", "content": [
            {"type": "text", "text": "From the result of read_file:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUFB"}},
        ]},
    ]);
    assert_eq!(sent(&conversation), results);

    // Text that follows is joined to them, whether for one request or permanently.
    let mut joined = results.clone();
    joined[2]["content"].as_array_mut().unwrap().push(json!({"type": "text", "text": "and now?"}));
    let lent = conversation.with_temporary_tail("and now?");
    assert_eq!(sent(&conversation), joined);
    conversation.take_back(lent);
    assert_eq!(sent(&conversation), results);
    conversation.push(Message::user("and now?"));
    assert_eq!(sent(&conversation), joined);
}

#[test]
fn a_model_that_takes_none_is_told_so_in_every_format() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic] {
        let conversation = conversation(wire, false);
        let body = String::from_utf8(conversation.body(&RequestOptions::default()).to_vec()).unwrap();
        assert!(!body.contains("QUFB"), "{wire:?}: {body}");
        assert!(
            body.contains(r"a.png\n[1 image is left out here: this model takes none]"),
            "{wire:?}: {body}"
        );
    }
}

#[test]
fn the_next_request_begins_with_the_bytes_of_the_one_with_the_images() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic] {
        let mut conversation = conversation(wire, true);
        let before = sent(&conversation).to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let reply = || Message::Assistant { text: "seen".into(), reasoning: None, tool_calls: vec![] };
        conversation.push(reply());
        let mut whole = Conversation::new(conversation.dialect(), "s".into(), vec![]);
        whole.rewrite(conversation.messages().to_vec());
        assert_eq!(whole.hash(), conversation.hash());
        let options = RequestOptions::default();
        let body = String::from_utf8(conversation.body(&options).to_vec()).unwrap();
        assert_eq!(body.as_bytes(), whole.body(&options).to_vec());
        let results = before.trim_start_matches('[').trim_end_matches([']', '}']);
        assert!(body.contains(results), "{wire:?}: {results} in {body}");
    }
}

#[test]
fn an_image_counts_as_what_it_costs_and_not_as_its_bytes() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic] {
        let mut conversation = conversation(wire, true);
        let before = conversation.encoded_len();
        conversation.push(result("c", vec![image(&"A".repeat(1 << 20))]));
        let added = conversation.encoded_len() - before;
        assert!((Image::TEXT_BYTES..Image::TEXT_BYTES + 300).contains(&added), "{wire:?}: {added}");
        let before = conversation.hash();
        conversation.rewrite(vec![result("c", vec![image(&"B".repeat(1 << 20))])]);
        let other = conversation.hash();
        conversation.rewrite(vec![result("c", vec![image(&"C".repeat(1 << 20))])]);
        assert!(
            before != other && other != conversation.hash(),
            "{wire:?}: another image is another request"
        );
    }
}
