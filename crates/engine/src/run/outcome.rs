//! How a run ended, and the exit code that says so.

use fusee_journal::Stop;
use fusee_journal::event::{ErrorCode, TaskStatus};

use crate::agent::TaskOutcome;

/// The end of a run.
#[derive(Debug)]
pub enum RunOutcome {
    /// Its task ended.
    Ended(TaskOutcome),
    /// Its journal failed, or holds another run than this.
    Stopped(Stop),
    /// The program itself failed.
    Lost(String),
}

/// Exit codes that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Completed.
    Completed = 0,
    /// The task failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// A limit was reached.
    Limit = 3,
    /// The model could not be reached.
    Unreachable = 4,
    /// Cancelled.
    Cancelled = 130,
}

impl RunOutcome {
    /// The exit code for it.
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
            // A task's own inputs are no wrong usage of the program.
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
