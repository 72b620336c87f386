//! Exit codes of task errors.

use super::*;
use crate::task_system::ErrorType;

#[test]
fn exit_codes_are_those_of_the_table() {
    let of = |reason| ExitStatus::of_error(&TaskError::failure(reason, ""));
    assert_eq!(of(Reason::InputValidationFailure), ExitStatus::Usage);
    assert_eq!(of(Reason::TemplateNotFound), ExitStatus::Usage);
    assert_eq!(of(Reason::ConfigurationError), ExitStatus::Usage);
    assert_eq!(of(Reason::OutputFormatFailure), ExitStatus::Failed);
    assert_eq!(of(Reason::SubtaskFailure), ExitStatus::Failed);
    let limit = TaskError { kind: ErrorType::ResourceExhaustion, ..TaskError::failure(Reason::Turns, "") };
    assert_eq!(ExitStatus::of_error(&limit), ExitStatus::Limit);
}
