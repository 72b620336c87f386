//! What the configuration says about reviews.

use fusee_engine::agent::Restrictions;

use super::Config;

/// The keys' common beginning.
const REVIEW: &str = "review_mode_restrictions";

impl Config {
    /// What a review may do.
    pub(crate) fn restrictions(&self) -> Restrictions {
        let default = Restrictions::default();
        let key = |name: &str| format!("{REVIEW}.{name}");
        Restrictions {
            allowed_tools: self.names(&key("allowed_tools")),
            require_approval: self.switch(&key("require_approval")).unwrap_or(default.require_approval),
            max_tool_calls: self.small(&key("max_tool_calls")).unwrap_or(default.max_tool_calls),
            require_explanations: self
                .switch(&key("require_explanations"))
                .unwrap_or(default.require_explanations),
        }
    }
}
