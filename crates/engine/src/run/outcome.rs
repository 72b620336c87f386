//! Outcome of a run, and its exit code.

use fusee_journal::Stop;
use fusee_journal::event::{ErrorCode, TaskStatus};

use crate::agent::TaskOutcome;

/// Outcome of a run.
#[derive(Debug)]
pub enum RunOutcome {
    /// The task ended, successfully or not.
    Ended(TaskOutcome),
    /// The journal failed, or does not match this run.
    Stopped(Stop),
    /// The run's task panicked or was aborted.
    Lost(String),
}

/// Exit codes that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
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
    pub fn exit(&self) -> Exit {
        match self {
            Self::Ended(outcome) => exit_of(outcome),
            Self::Stopped(_) | Self::Lost(_) => Exit::Failed,
        }
    }
}

fn exit_of(outcome: &TaskOutcome) -> Exit {
    match outcome.status {
        TaskStatus::Completed if outcome.blocked || outcome.objects => Exit::Failed,
        TaskStatus::Completed => Exit::Completed,
        TaskStatus::Cancelled => Exit::Cancelled,
        TaskStatus::Failed if outcome.unreachable => Exit::Unreachable,
        TaskStatus::Failed => outcome.error.as_ref().map_or(Exit::Failed, |error| match error.code {
            // Invalid inputs of a task are not wrong usage of the program.
            ErrorCode::InitFailed if error.reason == "input_validation_failure" => Exit::Failed,
            ErrorCode::InitFailed => Exit::Usage,
            ErrorCode::TurnFailed => Exit::Failed,
            ErrorCode::TokenLimit | ErrorCode::MaxTurns | ErrorCode::Timeout | ErrorCode::Budget => {
                Exit::Limit
            }
            ErrorCode::Cancelled => Exit::Cancelled,
        }),
    }
}
