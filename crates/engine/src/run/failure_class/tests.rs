//! Classes of failures by the way a run ended.

use fusee_journal::event::{ErrorCode, ErrorDetail, TaskStatus};

use super::FailureClass;
use crate::agent::TaskOutcome;
use crate::run::RunOutcome;

fn failed(reason: &str, message: &str) -> RunOutcome {
    let error =
        ErrorDetail { code: ErrorCode::TurnFailed, reason: reason.to_owned(), message: message.to_owned() };
    RunOutcome::Ended(TaskOutcome {
        status: TaskStatus::Failed,
        answer: String::new(),
        fails_run: false,
        error: Some(error),
        unreachable: false,
        spent: Default::default(),
        accepted_tokens: None,
        result: None,
    })
}

#[test]
fn work_that_fails_its_own_checks_is_unsolved_and_nothing_else_is() {
    for (reason, message) in [
        ("tool_execution_error", "in `solve`: The work is not done: `make test` does not pass."),
        ("output_format_failure", "in `solve`: the answer has no file"),
        ("nothing_changed", "nothing was changed: no usable answer in 2 tries"),
        ("blocked", "the model reports that it is blocked: no compiler"),
    ] {
        let outcome = failed(reason, message);
        assert_eq!(FailureClass::from_outcome(&outcome), Some(FailureClass::AgentError), "{reason}");
        assert_eq!(FailureClass::from_judged_outcome(&outcome), None, "{reason}");
    }
    let halted = failed("execution_halted", "the model answered 3 times in a row without a tool call");
    assert_eq!(FailureClass::from_judged_outcome(&halted), Some(FailureClass::AgentError));
}

#[test]
fn the_name_of_a_part_does_not_change_the_class() {
    for (message, class) in [
        ("the model declined: no", FailureClass::Refusal),
        ("the model sent two empty replies in a row", FailureClass::AgentError),
        ("invalid api key (HTTP 401)", FailureClass::Provider),
    ] {
        for text in [message.to_owned(), format!("in `solve`: {message}")] {
            assert_eq!(FailureClass::from_outcome(&failed("llm_error", &text)), Some(class), "{text}");
        }
    }
}
