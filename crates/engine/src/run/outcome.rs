//! Outcome of a run, and its exit code.

use fusee_journal::RunAborted;
use fusee_journal::event::{ErrorCode, TaskStatus};

use crate::agent::TaskOutcome;
use crate::task_system::{Reason, TaskError};

/// How a run ended; decides the exit code.
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
    /// A review has findings of the severity that was asked about.
    Findings = 5,
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
        TaskStatus::Completed if outcome.fails_run => ExitStatus::Findings,
        TaskStatus::Completed => ExitStatus::Completed,
        TaskStatus::Cancelled => ExitStatus::Cancelled,
        TaskStatus::Failed if outcome.unreachable => ExitStatus::Unreachable,
        TaskStatus::Failed => {
            outcome.error.as_ref().map_or(ExitStatus::Failed, |error| exit_of_code(error.code, &error.reason))
        }
    }
}

impl ExitStatus {
    /// Returns the exit code for a task that the user started directly.
    pub fn of_error(error: &TaskError) -> Self {
        // Inputs that the user gave are usage; those that a task gave to another are not.
        match error.reason {
            Some(Reason::InputValidationFailure) => Self::Usage,
            reason => exit_of_code(error.code(), reason.map_or("", Reason::as_str)),
        }
    }
}

fn exit_of_code(code: ErrorCode, reason: &str) -> ExitStatus {
    match code {
        // Invalid inputs of a task are not wrong usage of the program.
        ErrorCode::InitFailed if reason == "input_validation_failure" => ExitStatus::Failed,
        ErrorCode::InitFailed => ExitStatus::Usage,
        ErrorCode::TurnFailed => ExitStatus::Failed,
        ErrorCode::TokenLimit | ErrorCode::MaxTurns | ErrorCode::Timeout | ErrorCode::Budget => {
            ExitStatus::Limit
        }
        ErrorCode::Cancelled => ExitStatus::Cancelled,
    }
}

#[cfg(test)]
mod tests;
