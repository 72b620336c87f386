//! Replies in the Anthropic format that are not covered by the fixtures.

use serde_json::json;

use crate::wire::tests::decode;
use crate::{ErrorKind, ModelError, Reply, StopReason, Usage, Wire};

fn reply(text: &str) -> Result<Reply, ModelError> {
    decode(Wire::Anthropic, [text.as_bytes()].into_iter()).0
}

#[test]
fn a_document_instead_of_a_stream() {
    let text = json!({
        "type": "message", "role": "assistant",
        "content": [{"type": "text", "text": "Hi."}, {"type": "tool_use", "id": "x", "name": "t", "input": {"a": 1}}],
        "stop_reason": "max_tokens", "usage": {"input_tokens": 3, "output_tokens": 4},
    });
    let reply = reply(&text.to_string()).unwrap();
    assert_eq!((reply.text.as_str(), reply.stop.clone()), ("Hi.", StopReason::Length));
    assert_eq!(reply.tool_calls[0].arguments, "{\"a\":1}");
    assert_eq!(reply.usage, Some(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() }));
}

#[test]
fn a_refusal_is_one() {
    let stop =
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 1}});
    let text = format!("data: {{\"type\":\"message_start\",\"message\":{{}}}}\n\ndata: {stop}\n\n");
    assert_eq!(reply(&text).unwrap().stop, StopReason::Refusal);
}

#[test]
fn errors_in_the_stream_and_instead_of_it() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let error = reply(overloaded).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Server, "Overloaded"));
    let long = "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 > 8\"}}";
    assert_eq!(reply(long).unwrap_err().kind, ErrorKind::Overflow);
    assert_eq!(reply("{\"x\":1}").unwrap_err().kind, ErrorKind::Protocol);
    assert_eq!(reply("data: {\"choices\":[]}\n\n").unwrap_err().kind, ErrorKind::Protocol);
}

#[test]
fn endless_blocks_are_an_error() {
    let text: String = (0..5_000)
        .map(|index| {
            let block = json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}});
            format!("data: {block}\n\n")
        })
        .collect();
    assert_eq!(reply(&text).unwrap_err().message, "the reply has more than 4096 blocks");
}
