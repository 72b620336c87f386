//! What a hook answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One hook and its decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookRun {
    /// Name of the event that the hook ran for, such as `PreToolUse`.
    pub event: String,
    /// Command line of the hook.
    pub command: String,
    /// What the hook decided.
    pub decision: HookDecision,
    /// Id of the tool call that the hook ran for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Reason of the decision or of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long the hooks of the event ran, in milliseconds.
    pub duration_ms: u64,
}

/// The decision of a hook, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// It left the decision to others.
    #[default]
    None,
    /// It could not be run, crashed, ran too long or wrote too much; this decides nothing.
    Failed,
    /// It allowed the call, so that the user is not asked.
    Allow,
    /// It wants the user to be asked.
    Ask,
    /// It denied the call.
    Deny,
    /// It blocked what was about to happen.
    Block,
    /// It ended the task.
    Stop,
}

impl HookDecision {
    /// The name in the event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Failed => "failed",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Block => "block",
            Self::Stop => "stop",
        }
    }
}
