//! Outcome of a run, and its exit code.

use fusee_journal::RunAborted;
use fusee_journal::event::{ErrorCode, TaskStatus};

use crate::agent::TaskOutcome;

/// Outcome of a run.
#[derive(Debug)]
pub enum RunOutcome {
    /// The task ended, successfully or not.
    Ended(TaskOutcome),
    /// The journal failed, or does not match this run.
    Stopped(RunAborted),
    /// The run's task panicked or was aborted.
    Lost(String),
}

/// Exit codes that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// The task completed.
    Completed = 0,
    /// The task failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// A limit was reached.
    Limit = 3,
    /// The model could not be reached.
    Unreachable = 4,
    /// The run was cancelled.
    Cancelled = 130,
}

impl RunOutcome {
    /// Returns the exit code of the outcome.
    pub fn exit(&self) -> ExitStatus {
        match self {
            Self::Ended(outcome) => exit_of(outcome),
            Self::Stopped(_) | Self::Lost(_) => ExitStatus::Failed,
        }
    }
}

fn exit_of(outcome: &TaskOutcome) -> ExitStatus {
    match outcome.status {
        TaskStatus::Completed if outcome.blocked || outcome.objects => ExitStatus::Failed,
        TaskStatus::Completed => ExitStatus::Completed,
        TaskStatus::Cancelled => ExitStatus::Cancelled,
        TaskStatus::Failed if outcome.unreachable => ExitStatus::Unreachable,
        TaskStatus::Failed => outcome.error.as_ref().map_or(ExitStatus::Failed, |error| match error.code {
            // Invalid inputs of a task are not wrong usage of the program.
            ErrorCode::InitFailed if error.reason == "input_validation_failure" => ExitStatus::Failed,
            ErrorCode::InitFailed => ExitStatus::Usage,
            ErrorCode::TurnFailed => ExitStatus::Failed,
            ErrorCode::TokenLimit | ErrorCode::MaxTurns | ErrorCode::Timeout | ErrorCode::Budget => {
                ExitStatus::Limit
            }
            ErrorCode::Cancelled => ExitStatus::Cancelled,
        }),
    }
}
