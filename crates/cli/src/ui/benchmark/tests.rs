//! The exact output line.

use fusee::engine::agent::Spent;
use fusee::engine::journal::event::{ErrorCode, ErrorDetail};

use super::*;

fn outcome(status: TaskStatus, error: Option<(&str, &str)>) -> TaskOutcome {
    let error = error.map(|(reason, message)| ErrorDetail {
        code: ErrorCode::MaxTurns,
        reason: reason.to_owned(),
        message: message.to_owned(),
    });
    TaskOutcome {
        status,
        answer: "All done.\n".to_owned(),
        error,
        unreachable: false,
        spent: Spent::default(),
        accepted_tokens: None,
        fails_run: false,
        result: None,
    }
}

#[test]
fn the_line_says_which_try_and_how_it_ended() {
    let try_one = BenchmarkSettings { attempt: 1, line: true, protects_tests: true };
    let try_two = BenchmarkSettings { attempt: 2, ..try_one };
    let model = BenchmarkSettings { line: false, ..try_one };
    let done = outcome(TaskStatus::Completed, None);
    let failed = outcome(TaskStatus::Failed, Some(("turns", "too many\nturns")));
    assert_eq!(line(try_one, &done), "Finished Try1");
    assert_eq!(line(try_two, &done), "Finished Try2");
    assert_eq!(line(model, &done), "All done.");
    assert_eq!(line(try_two, &failed), "Failed Try2: too many turns");
    assert_eq!(line(model, &failed), "Failed Try1: too many turns");
    let blocked = outcome(TaskStatus::Failed, Some(("blocked", "the model reports that it is blocked")));
    assert_eq!(line(try_one, &blocked), "Failed Try1: blocked: All done.");
    assert_eq!(line(try_one, &outcome(TaskStatus::Cancelled, None)), "Failed Try1: cancelled");
}
