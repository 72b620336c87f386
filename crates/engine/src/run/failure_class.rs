//! Classes of failed runs, for benchmarks and the harnesses that start Fusee: what failed decides whether a run is
//! repeated and whether its result counts.

use fusee_journal::event::{ErrorCode, ErrorDetail, TaskStatus};
use serde::{Deserialize, Serialize};

use super::RunOutcome;
use crate::agent::DECLINED;

/// Reasons of errors with which a run ends that has done its work, but not well enough.
const UNSOLVED: [&str; 6] = [
    "tool_execution_error",
    "output_format_failure",
    "subtask_failure",
    "nothing_changed",
    "asked_for_input",
    "blocked",
];

/// Class of a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The sandbox, the journal or another part of the machinery failed.
    Sandbox,
    /// The model's server could not be reached or refused the request.
    Provider,
    /// The time limit was reached.
    Timeout,
    /// The context was full.
    Overflow,
    /// The limit on turns or money was reached.
    Budget,
    /// The model declined the task.
    Refusal,
    /// The agent failed in another way.
    AgentError,
    /// The tests could not judge the work.
    VerifierBroken,
    /// The user cancelled the run.
    Cancelled,
}

impl FailureClass {
    /// All classes.
    pub const ALL: [Self; 9] = [
        Self::Sandbox,
        Self::Provider,
        Self::Timeout,
        Self::Overflow,
        Self::Budget,
        Self::Refusal,
        Self::AgentError,
        Self::VerifierBroken,
        Self::Cancelled,
    ];

    /// Class of an outcome; `None` if the run completed.
    pub fn from_outcome(outcome: &RunOutcome) -> Option<Self> {
        let outcome = match outcome {
            RunOutcome::Ended(outcome) => outcome,
            RunOutcome::Stopped(_) | RunOutcome::Lost(_) => return Some(Self::Sandbox),
        };
        match outcome.status {
            TaskStatus::Completed => None,
            TaskStatus::Cancelled => Some(Self::Cancelled),
            TaskStatus::Failed if outcome.unreachable => Some(Self::Provider),
            TaskStatus::Failed => Some(outcome.error.as_ref().map_or(Self::AgentError, Self::of_error)),
        }
    }

    /// Like [`Self::from_outcome`] for a run whose work is graded externally: also `None` if the run finished but its own
    /// checks failed, because its tests fail, its answer has no usable change or its stages are not complete.
    pub fn from_judged_outcome(outcome: &RunOutcome) -> Option<Self> {
        let class = Self::from_outcome(outcome)?;
        match outcome {
            RunOutcome::Ended(ended) if class == Self::AgentError => {
                let unsolved = ended.error.as_ref().is_none_or(|error| {
                    error.code == ErrorCode::TurnFailed && UNSOLVED.contains(&error.reason.as_str())
                });
                (!unsolved).then_some(class)
            }
            _ => Some(class),
        }
    }

    fn of_error(error: &ErrorDetail) -> Self {
        // The parts of a flow name themselves before their message.
        let part = error.message.strip_prefix("in `").and_then(|rest| rest.split_once("`: "));
        let message = part.map_or(error.message.as_str(), |(_, message)| message);
        match error.code {
            ErrorCode::Timeout => Self::Timeout,
            ErrorCode::TokenLimit => Self::Overflow,
            ErrorCode::MaxTurns | ErrorCode::Budget => Self::Budget,
            ErrorCode::Cancelled => Self::Cancelled,
            ErrorCode::TurnFailed if message.starts_with(DECLINED) => Self::Refusal,
            ErrorCode::TurnFailed if error.reason == "llm_error" && !message.starts_with("the model") => {
                Self::Provider
            }
            ErrorCode::InitFailed | ErrorCode::TurnFailed => Self::AgentError,
        }
    }

    /// Name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Provider => "provider",
            Self::Timeout => "timeout",
            Self::Overflow => "overflow",
            Self::Budget => "budget",
            Self::Refusal => "refusal",
            Self::AgentError => "agent_error",
            Self::VerifierBroken => "verifier_broken",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether another attempt may succeed where this one failed through no fault of the model.
    pub fn is_retried(self) -> bool {
        matches!(self, Self::Sandbox | Self::Provider)
    }

    /// Whether the result counts as a measurement.
    pub fn is_graded(self) -> bool {
        !matches!(self, Self::Sandbox | Self::VerifierBroken | Self::Cancelled)
    }
}

impl std::fmt::Display for FailureClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for FailureClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|class| class.as_str() == text).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|class| class.as_str()).collect();
            format!("unknown failure class `{text}`; known classes: {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests;
