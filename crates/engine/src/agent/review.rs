//! Review mode: a task that looks and explains. What it may do beyond looking is decided here, call by call.

use fusee_tools::Category;
use serde::{Deserialize, Serialize};

/// What a review may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Restrictions {
    /// Tools that run without a question. None given: those that only read, think or steer.
    #[serde(alias = "allowedTools", skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Whether other tools are asked about; otherwise they are refused.
    #[serde(alias = "requireApproval")]
    pub require_approval: bool,
    /// Calls of one review.
    #[serde(alias = "maxToolCalls")]
    pub max_tool_calls: u32,
    /// Whether a call that is asked about must come with words that say what it is for.
    #[serde(alias = "requireExplanations")]
    pub require_explanations: bool,
}

impl Default for Restrictions {
    fn default() -> Self {
        Self {
            allowed_tools: Vec::new(),
            require_approval: true,
            max_tool_calls: 100,
            require_explanations: false,
        }
    }
}

/// What a review says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allowed,
    AskFirst,
    NotInReview,
    TooMany,
}

impl Restrictions {
    pub(crate) fn judge(&self, name: &str, category: Category, calls_so_far: u32) -> Ruling {
        if calls_so_far >= self.max_tool_calls {
            return Ruling::TooMany;
        }
        let listed = self.allowed_tools.iter().any(|allowed| allowed == name);
        let harmless = category != Category::Write;
        match (listed, harmless && self.allowed_tools.is_empty(), self.require_approval) {
            (true, _, _) | (_, true, _) => Ruling::Allowed,
            (false, false, true) => Ruling::AskFirst,
            (false, false, false) => Ruling::NotInReview,
        }
    }
}

#[cfg(test)]
mod tests;
