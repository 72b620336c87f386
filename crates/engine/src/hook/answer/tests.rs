//! Exit codes and JSON of hooks.

use fusee_journal::event::HookDecision;
use serde_json::json;

use super::HookAnswer;
use crate::hook::HookEvent;
use crate::hook::process::HookEnd;

fn read(event: HookEvent, code: i32, output: &str, errors: &str) -> HookAnswer {
    HookAnswer::read(event, &HookEnd { code, output: output.to_owned(), errors: errors.to_owned() })
}

fn decided(event: HookEvent, output: serde_json::Value) -> (HookDecision, Option<String>) {
    let answer = read(event, 0, &output.to_string(), "");
    (answer.decision, answer.reason)
}

#[test]
fn exit_codes_decide() {
    let event = HookEvent::PreToolUse;
    assert_eq!(read(event, 0, "", ""), HookAnswer::default());
    // Plain output is context only where the protocol says so.
    assert_eq!(read(event, 0, "some words", "noise"), HookAnswer::default());
    let context = read(HookEvent::UserPromptSubmit, 0, "some words\n", "").context;
    assert_eq!(context.as_deref(), Some("some words"));
    let blocked = read(event, 2, "{\"decision\": \"approve\"}", "no rm\n");
    assert_eq!((blocked.decision, blocked.reason.as_deref()), (HookDecision::Block, Some("no rm")));
    let failed = read(event, 1, "", "trace");
    assert_eq!(failed.decision, HookDecision::Failed);
    assert_eq!(failed.reason.as_deref(), Some("it ended with code 1: trace"));
    assert_eq!(read(HookEvent::Notification, 2, "", "x").decision, HookDecision::Failed);
}

#[test]
fn both_forms_of_a_decision_are_read() {
    let pre = HookEvent::PreToolUse;
    assert_eq!(decided(pre, json!({ "decision": "approve" })), (HookDecision::Allow, None));
    let block = json!({ "decision": "block", "reason": "why" });
    assert_eq!(decided(pre, block), (HookDecision::Block, Some("why".to_owned())));
    for (word, decision) in
        [("allow", HookDecision::Allow), ("deny", HookDecision::Deny), ("ask", HookDecision::Ask)]
    {
        let output = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
            "permissionDecision": word, "permissionDecisionReason": "because" } });
        assert_eq!(decided(pre, output), (decision, Some("because".to_owned())));
    }
    let permission = |behavior: &str| {
        json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest",
            "decision": { "behavior": behavior, "message": "m" } } })
    };
    let asked = HookEvent::PermissionRequest;
    assert_eq!(decided(asked, permission("allow")).0, HookDecision::Allow);
    assert_eq!(decided(asked, permission("deny")), (HookDecision::Deny, Some("m".to_owned())));
    let stop = json!({ "continue": false, "stopReason": "enough", "decision": "approve" });
    assert_eq!(decided(pre, stop), (HookDecision::Stop, Some("enough".to_owned())));
}

#[test]
fn what_cannot_be_understood_decides_nothing() {
    let pre = HookEvent::PreToolUse;
    for output in [
        "{\"decision\": \"perhaps\"}",
        "{\"decision\": 3}",
        "{ broken",
        "{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\", \"permissionDecision\": \"deny\"}}",
        "{\"hookSpecificOutput\": {\"permissionDecision\": \"maybe\"}}",
    ] {
        assert_eq!(read(pre, 0, output, "").decision, HookDecision::Failed, "{output}");
    }
}

#[test]
fn texts_are_bounded() {
    let context = read(HookEvent::SessionStart, 0, &"x".repeat(1 << 20), "").context.unwrap();
    assert!(context.len() < 40_000 && context.ends_with(" [cut]"), "{}", context.len());
}
