//! The conversation with the model: what fits into its window, compaction, continued conversations, changed files.

pub(crate) mod carry_over;
pub(crate) mod compaction;
pub(crate) mod context_usage;
pub(crate) mod context_window;
pub(crate) mod external_changes;
pub(crate) mod sectioned_prompt;
