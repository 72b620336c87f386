//! Limits and approval policy of a task, and how a resume changes them.
//!
//! A change applies from the step that was next when the run was resumed. This position is stored with the
//! change, so a later resume or a replay applies it at exactly the same point.

use std::collections::BTreeMap;

use fusee_journal::Branch;
use fusee_tools::Access;
use serde::{Deserialize, Serialize};

use crate::agent::limits::Limits;
use crate::approval::{ApprovalDecision, ApprovalMode, ApprovalPolicy};

/// The policy for the calls and requests of a task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPolicy {
    /// Resource limits.
    pub limits: Limits,
    /// When to ask for approval.
    pub approve: ApprovalMode,
    /// Whether commands are sandboxed, or the user has allowed them to run unsandboxed.
    #[serde(rename = "commands_settled")]
    pub commands_preapproved: bool,
}

impl RunPolicy {
    /// Decides about a call by its access; `runs_commands` is a tool whose effects are not known: it starts
    /// programs, or an MCP server says itself that it only reads.
    pub(crate) fn decide(&self, access: Access, runs_commands: bool) -> ApprovalDecision {
        let access = if runs_commands && access == Access::Read { Access::Write } else { access };
        ApprovalPolicy::decide(self.approve, access, runs_commands && !self.commands_preapproved)
    }
}

/// A policy change and its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyChange {
    /// Number of steps each branch had at that point; 0 for branches not listed.
    pub after: BTreeMap<Branch, u64>,
    /// The policy from then on.
    #[serde(rename = "terms")]
    pub policy: RunPolicy,
}

/// The policy in force at a position: that of the last change before it.
pub(crate) fn at(
    first: RunPolicy,
    policy_changes: &[PolicyChange],
    branch: &Branch,
    next_step: u64,
) -> RunPolicy {
    let made = |change: &&PolicyChange| next_step >= change.after.get(branch).copied().unwrap_or_default();
    policy_changes.iter().rev().find(made).map_or(first, |change| change.policy)
}

#[cfg(test)]
mod tests;
