//! Step requests: a kind, a callee and arguments, which together form the step's fingerprint.
//! [`crate::divergence`] describes the difference between two fingerprints.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Branch;

/// A request to run one step.
#[derive(Clone, Debug)]
pub struct StepRequest {
    /// Branch the step belongs to.
    pub branch: Branch,
    /// Kind of step.
    pub kind: StepKind,
    /// Name of the model, tool or task that is called.
    pub callee: String,
    /// Arguments. Stored in the journal so that a divergence can be shown, not just detected.
    pub args: Value,
}

impl StepRequest {
    /// A request without arguments.
    pub fn new(branch: &Branch, kind: StepKind, callee: &str) -> Self {
        Self { branch: branch.clone(), kind, callee: callee.to_owned(), args: Value::Null }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_args(self, args: Value) -> Self {
        Self { args, ..self }
    }
}

/// Kinds of step. Resuming compares kind and callee, replaying also compares the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The run's settings, always step 0.
    Settings,
    /// An observation of the environment the run starts in.
    Environment,
    /// One request to a model.
    Model,
    /// One tool call.
    Tool,
    /// A timer or an external answer.
    Wait,
    /// Child branches run in parallel.
    FanOut,
    /// The hooks of one event.
    Hook,
}

impl StepKind {
    /// The name stored in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Environment => "environment",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Wait => "wait",
            Self::FanOut => "fan_out",
            Self::Hook => "hook",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Settings, Self::Environment, Self::Model, Self::Tool, Self::Wait, Self::FanOut, Self::Hook]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }

    /// Whether running this step has an externally visible effect, so that everything before it must be
    /// committed first.
    pub(crate) fn is_visible_outside(self) -> bool {
        match self {
            Self::Model | Self::Wait | Self::FanOut | Self::Hook => true,
            Self::Settings | Self::Environment | Self::Tool => false,
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Position of a step within its run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StepKey {
    /// Branch the step belongs to.
    pub branch: Branch,
    /// Step number on that branch, from 0.
    pub n: u64,
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} step {}", self.branch, self.n)
    }
}
