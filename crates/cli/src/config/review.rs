//! The configuration of review mode.

use fusee::engine::agent::ReviewPolicy;

use super::Config;

/// Prefix of the keys.
const REVIEW: &str = "review_mode_restrictions";

impl Config {
    /// Restrictions of review mode.
    pub(crate) fn restrictions(&self) -> ReviewPolicy {
        let default = ReviewPolicy::default();
        let key = |name: &str| format!("{REVIEW}.{name}");
        ReviewPolicy {
            allowed_tools: self.names(&key("allowed_tools")),
            require_approval: self.switch(&key("require_approval")).unwrap_or(default.require_approval),
            max_tool_calls: self.small(&key("max_tool_calls")).unwrap_or(default.max_tool_calls),
            require_explanations: self
                .switch(&key("require_explanations"))
                .unwrap_or(default.require_explanations),
        }
    }
}
