//! Hooks: programs of the user, or of a trusted project, that run at certain events of a task and can decide about
//! them. They speak the JSON protocol of Claude Code and Codex.
//!
//! [`HookSpec`] is one configured hook, stored with the run. `matcher` selects the hooks of an event, `input` writes
//! what a hook reads, `process` runs it, `answer` reads what it said, and `runner` makes all of that one journal step
//! per event.

mod answer;
mod input;
mod matcher;
mod process;
mod runner;
mod tool_names;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use input::HookInput;
pub use matcher::MatcherError;
pub use runner::content_hash;
pub(crate) use runner::{HookOutcome, HookPlace, HookRunner, HookScope};

use matcher::HookMatcher;

/// Seconds that a hook may run unless it says otherwise.
pub const DEFAULT_TIMEOUT_S: u64 = 60;

/// Maximum number of seconds that a hook may ask for.
pub const MAX_TIMEOUT_S: u64 = 3600;

/// Events of a run at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookEvent {
    /// A conversation begins.
    SessionStart,
    /// A request is about to be given to the model.
    UserPromptSubmit,
    /// A tool is about to be called.
    PreToolUse,
    /// The user is about to be asked for approval of a call.
    PermissionRequest,
    /// A tool was called.
    PostToolUse,
    /// The conversation is about to be shortened.
    PreCompact,
    /// The task is about to end with an answer.
    Stop,
    /// A subtask is about to end with an answer.
    SubagentStop,
    /// The user is needed.
    Notification,
}

impl HookEvent {
    /// All events, in the order in which they occur.
    pub const ALL: [Self; 9] = [
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PreCompact,
        Self::Stop,
        Self::SubagentStop,
        Self::Notification,
    ];

    /// The name in files and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::PreCompact => "PreCompact",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
            Self::Notification => "Notification",
        }
    }

    /// The event of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether a hook can prevent what is about to happen.
    fn can_block(self) -> bool {
        !matches!(self, Self::SessionStart | Self::PreCompact | Self::Notification)
    }

    /// Whether plain output of a hook is context for the model.
    fn takes_plain_context(self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPromptSubmit)
    }

    /// Whether matchers select among the hooks of this event; otherwise they are ignored.
    fn has_matchers(self) -> bool {
        !matches!(self, Self::UserPromptSubmit | Self::Stop)
    }

    /// Whether matchers of this event are compared with the name of a tool.
    #[must_use]
    pub fn is_about_tools(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest | Self::PostToolUse)
    }
}

/// One hook, as it was configured when the run started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSpec {
    /// When it runs.
    pub event: HookEvent,
    /// Regular expression that the whole name of the tool matches; `None` for every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// Command line for `/bin/sh -c`.
    pub command: String,
    /// Seconds it may run.
    pub timeout_s: u64,
    /// Whether it comes from the project's file and not from the user's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_project: bool,
    /// Files of the workspace that the command names, with the hash of their content when the run started. A hook
    /// runs outside the sandbox, so it no longer runs once a task has changed one of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<PathBuf, String>,
}

impl HookSpec {
    /// Reports a regular expression that does not compile.
    pub fn check_matcher(matcher: &str) -> Result<(), MatcherError> {
        HookMatcher::new(Some(matcher)).map(|_| ())
    }
}
