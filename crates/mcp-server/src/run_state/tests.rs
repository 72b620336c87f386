//! The state of a run follows from its events.

use fusee::journal::event::TurnType;
use fusee::journal::event::{TaskStarted, ToolResult};
use serde_json::json;

use super::*;

fn after(events: Vec<Event>) -> RunState {
    let run: RunId = "r".parse().unwrap();
    let mut state = RunState::new(&run);
    for (n, event) in events.into_iter().enumerate() {
        let (seq, ts_ms) = (n as u64 + 1, 1000 + n as i64);
        state.apply(&EventRecord { seq, ts_ms, run: run.clone(), task: Branch::main(), event });
    }
    state
}

fn started() -> Event {
    Event::TaskStarted(TaskStarted {
        submission_id: "r".to_owned(),
        turn_type: TurnType::User,
        timestamp: 1000,
        request: "Go.".to_owned(),
        model: "m".to_owned(),
        sandbox: "off".to_owned(),
        parent: None,
        continues: None,
    })
}

fn asked(call: &str) -> Event {
    Event::ApprovalRequested {
        call_id: call.to_owned(),
        name: "shell".to_owned(),
        arguments: json!({"command": "rm x"}),
        reason: "this run asks".to_owned(),
    }
}

#[test]
fn a_question_makes_a_run_wait_until_it_is_answered_or_its_call_has_ended() {
    let waiting = after(vec![started(), asked("c1"), asked("c2")]);
    assert_eq!((waiting.status, waiting.waiting.len()), (RunProgress::Waiting, 2));
    let resolved =
        |call: &str| Event::ApprovalResolved { call_id: call.to_owned(), approved: true, reason: None };
    let one_left = after(vec![started(), asked("c1"), asked("c2"), resolved("c1")]);
    assert_eq!((one_left.status, one_left.waiting[0].call.as_str()), (RunProgress::Waiting, "c2"));
    let result = Event::ToolResult(ToolResult {
        call_id: "c2".to_owned(),
        ok: false,
        content: String::new(),
        truncated: false,
        duration_ms: 0,
        exit_code: None,
        fate: None,
    });
    let working = after(vec![started(), asked("c1"), asked("c2"), resolved("c1"), result]);
    assert_eq!(working.status, RunProgress::Working);
}

#[test]
fn what_a_run_does_is_one_bounded_line() {
    let call = Event::ToolCall {
        call_id: "c1".to_owned(),
        name: "shell".to_owned(),
        arguments: json!({"command": format!("echo \u{1b}[31m\n{}", "x".repeat(10_000))}),
    };
    let doing = after(vec![started(), call]).doing.unwrap();
    assert!(doing.starts_with("turn 0: shell echo  [31m xxx") && doing.len() < 200, "{doing}");
    assert!(!doing.contains(char::is_control));
}
