//! The exact output line.

use fusee::engine::agent::Charges;
use fusee::engine::journal::event::{ErrorCode, ErrorDetail};

use super::*;

fn outcome(status: TaskStatus, blocked: bool, error: Option<&str>) -> TaskOutcome {
    let error = error.map(|message| ErrorDetail {
        code: ErrorCode::MaxTurns,
        reason: "turns".to_owned(),
        message: message.to_owned(),
    });
    TaskOutcome {
        status,
        blocked,
        answer: "All done.\n".to_owned(),
        error,
        unreachable: false,
        total_turns: 1,
        charges: Charges::default(),
        active_ms: 0,
        model_ms: 0,
        peak_context_tokens: 0,
        objects: false,
        result: None,
    }
}

#[test]
fn the_line_says_which_try_and_how_it_ended() {
    let try_one = BenchmarkSettings { attempt: 1, line: true, protects_tests: true };
    let try_two = BenchmarkSettings { attempt: 2, ..try_one };
    let model = BenchmarkSettings { line: false, ..try_one };
    let done = outcome(TaskStatus::Completed, false, None);
    let failed = outcome(TaskStatus::Failed, false, Some("too many\nturns"));
    assert_eq!(line(try_one, &done), "Finished Try1");
    assert_eq!(line(try_two, &done), "Finished Try2");
    assert_eq!(line(model, &done), "All done.");
    assert_eq!(line(try_two, &failed), "Failed Try2: too many turns");
    assert_eq!(line(model, &failed), "Failed Try1: too many turns");
    assert_eq!(line(try_one, &outcome(TaskStatus::Completed, true, None)), "Failed Try1: blocked: All done.");
    assert_eq!(line(try_one, &outcome(TaskStatus::Cancelled, false, None)), "Failed Try1: cancelled");
}
