//! Verification results as reported to the model.

use super::{Verification, tail};
use crate::agent::flow::{FlowState, TaskRules};
use crate::agent::plan::Plan;

fn verified_by(command: Option<&str>) -> Verification {
    Verification::new(&TaskRules { verify: command.map(str::to_owned), ..TaskRules::default() })
}

#[test]
fn work_is_verified_only_in_the_file_state_that_passed() {
    let mut verification = verified_by(Some("make test"));
    assert!(verification.failure(1).is_some());
    verification.record(1, true, "ok");
    assert_eq!(verification.failure(1), None);
    assert!(verification.failure(2).is_some());
    assert_eq!(verified_by(None).failure(1), None);
}

#[test]
fn a_failure_is_told_in_full_once_and_then_in_short() {
    let mut verification = verified_by(Some("make test"));
    verification.record(1, false, &"line\n".repeat(20));
    let first = verification.report(1).map(|feedback| feedback.text).unwrap_or_default();
    let second = verification.report(1).map(|feedback| feedback.text).unwrap_or_default();
    assert!(first.starts_with("The work is not done: `make test` does not pass.\n\nline\n"), "{first}");
    assert!(first.ends_with("Find out why, and call a tool that changes what is wrong."), "{first}");
    assert!(second.starts_with("The work is still not done: no file has changed"), "{second}");
    assert_eq!((first.matches("line").count(), second.matches("line").count()), (20, 8));
}

#[test]
fn a_model_may_claim_to_be_done_unless_this_file_state_failed() {
    let (mut verification, flow) =
        (verified_by(Some("make")), FlowState::new(&TaskRules::default(), Plan::default()));
    assert!(verification.can_finish(&flow));
    verification.record(flow.facts.state(), false, "no");
    assert!(!verification.can_finish(&flow) && verification.unfinished(&flow).is_some());
    verification.record(flow.facts.state(), true, "yes");
    assert!(verification.can_finish(&flow) && verification.unfinished(&flow).is_none());
}

#[test]
fn a_long_output_is_shown_from_its_end() {
    let shown = tail(&("a".repeat(5_000) + "b"));
    assert!(shown.starts_with("[…]\na") && shown.ends_with("ab") && shown.chars().count() == 4_004);
}
