//! Replies in the OpenAI responses format that are not covered by the fixtures.

use serde_json::json;

use crate::wire::tests::{FIXTURES, decode};
use crate::{ErrorKind, ModelError, Reply, StopReason, Wire};

fn reply(text: &str) -> Result<Reply, ModelError> {
    decode(Wire::Responses, [text.as_bytes()].into_iter()).0
}

fn events(events: &[serde_json::Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
fn the_last_event_alone_is_the_whole_reply() {
    let (_, stream) = FIXTURES.iter().find(|(wire, _)| *wire == Wire::Responses).unwrap();
    let last = stream.trim_end().rsplit("data: ").next().unwrap();
    let whole = reply(stream).unwrap();
    assert_eq!(reply(&format!("data: {last}\n\n")).unwrap(), whole);
    let document: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(reply(&document["response"].to_string()).unwrap(), whole);
}

#[test]
fn what_stopped_it() {
    let ended = |details: serde_json::Value| {
        let response = json!({"status": "incomplete", "incomplete_details": details, "output": []});
        reply(&events(&[json!({"type": "response.incomplete", "response": response})])).unwrap().stop
    };
    assert_eq!(ended(json!({"reason": "max_output_tokens"})), StopReason::Length);
    assert_eq!(ended(json!({"reason": "content_filter"})), StopReason::Refusal);
    let refused = events(&[
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}),
        json!({"type": "response.completed", "response": {"output": [], "status": "completed"}}),
    ]);
    let refused = reply(&refused).unwrap();
    assert_eq!((refused.text.as_str(), refused.stop), ("No.", StopReason::Refusal));
}

#[test]
fn failures_in_every_place() {
    let error = json!({"code": "rate_limit_exceeded", "message": "Please try again in 2s."});
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    let failed = reply(&events(&[failed])).unwrap_err();
    assert_eq!((failed.kind, failed.retry_after_ms), (ErrorKind::RateLimited, Some(2000)));
    let flat = json!({"type": "error", "code": "context_length_exceeded", "message": "too long"});
    assert_eq!(reply(&events(&[flat])).unwrap_err().kind, ErrorKind::Overflow);
    assert_eq!(reply("{\"x\":1}").unwrap_err().kind, ErrorKind::Protocol);
    assert_eq!(reply("{\"error\":{\"message\":\"no such model\"}}").unwrap_err().message, "no such model");
}
