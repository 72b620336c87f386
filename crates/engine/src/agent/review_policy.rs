//! Review mode: a task that reads and explains. This module decides, call by call, what else it may do.

use fusee_tools::Access;
use serde::{Deserialize, Serialize};

/// Restrictions of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReviewPolicy {
    /// Tools that run without approval. If empty, all tools that do not write.
    #[serde(alias = "allowedTools", skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Whether other tools require approval; otherwise they are refused.
    #[serde(alias = "requireApproval")]
    pub require_approval: bool,
    /// Maximum number of calls in one review.
    #[serde(alias = "maxToolCalls")]
    pub max_tool_calls: u32,
    /// Whether a call that requires approval must come with an explanation.
    #[serde(alias = "requireExplanations")]
    pub require_explanations: bool,
}

impl Default for ReviewPolicy {
    fn default() -> Self {
        Self {
            allowed_tools: Vec::new(),
            require_approval: true,
            max_tool_calls: 100,
            require_explanations: false,
        }
    }
}

/// Decision about one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewRuling {
    Allowed,
    AskFirst,
    NotInReview,
    TooMany,
}

impl ReviewPolicy {
    pub(crate) fn decide(&self, name: &str, category: Access, calls_so_far: u32) -> ReviewRuling {
        if calls_so_far >= self.max_tool_calls {
            return ReviewRuling::TooMany;
        }
        let listed = self.allowed_tools.iter().any(|allowed| allowed == name);
        let harmless = category != Access::Write;
        match (listed, harmless && self.allowed_tools.is_empty(), self.require_approval) {
            (true, _, _) | (_, true, _) => ReviewRuling::Allowed,
            (false, false, true) => ReviewRuling::AskFirst,
            (false, false, false) => ReviewRuling::NotInReview,
        }
    }
}

#[cfg(test)]
mod tests;
