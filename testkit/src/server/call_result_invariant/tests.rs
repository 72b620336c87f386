//! Detection in each format.

use serde_json::json;

use super::*;

fn fault_of(body: &Value) -> Option<String> {
    fault(body.to_string().as_bytes())
}

#[test]
fn a_call_without_an_answer_is_seen_in_each_format() {
    let chat = |answer: &str| json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}, {"role": "tool", "tool_call_id": answer}]});
    let anthropic = |answer: &str| {
        let asked = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]});
        json!({"messages": [asked, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": answer}]}]})
    };
    let responses = |answer: &str| {
        let asked = json!({"type": "function_call", "call_id": "a"});
        json!({"input": [asked, {"type": "function_call_output", "call_id": answer}]})
    };
    for (right, wrong) in
        [(chat("a"), chat("b")), (anthropic("a"), anthropic("b")), (responses("a"), responses("b"))]
    {
        assert_eq!(fault_of(&right), None);
        let output = "the calls [\"a\"] have the answers [\"b\"]".to_owned();
        assert_eq!(fault_of(&wrong), Some(output));
    }
    let twice =
        json!({"messages": [{"tool_calls": [{"id": "a"}]}, {"tool_call_id": "a"}, {"tool_call_id": "a"}]});
    assert!(fault_of(&twice).is_some());
    assert_eq!(fault(b"no JSON"), None);
}
