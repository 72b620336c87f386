//! What a program asks of the outside: a kind, a callee and arguments. Together they are the step's
//! fingerprint; [`crate::divergence`] compares two of them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Branch;

/// One thing asked of the outside.
#[derive(Clone, Debug)]
pub struct Call {
    /// Where in the run it is asked.
    pub branch: Branch,
    /// What sort of thing it is.
    pub kind: Kind,
    /// Who is asked: a model, a tool, a task.
    pub callee: String,
    /// What is asked. Kept in the journal, so that a difference can be shown and not only detected.
    pub args: Value,
}

/// The sorts of step. Resuming compares kind and callee, replaying everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The run's settings, its step 0.
    Settings,
    /// A look at the world the run starts in.
    Environment,
    /// One request to a model.
    Model,
    /// One tool call.
    Tool,
    /// A timer or an answer from outside.
    Wait,
    /// Child branches run side by side.
    FanOut,
}

impl Kind {
    /// The name in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Environment => "environment",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Wait => "wait",
            Self::FanOut => "fan_out",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Settings, Self::Environment, Self::Model, Self::Tool, Self::Wait, Self::FanOut]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }

    /// Whether others see the effect of running this step, so that all that led to it must be committed first.
    pub(crate) fn is_visible_outside(self) -> bool {
        match self {
            Self::Model | Self::Wait | Self::FanOut => true,
            Self::Settings | Self::Environment | Self::Tool => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The place of a step in its run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepKey {
    /// The branch it stands on.
    pub branch: Branch,
    /// Its number on that branch, from 0.
    pub n: u64,
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} step {}", self.branch, self.n)
    }
}
