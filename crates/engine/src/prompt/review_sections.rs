//! Built-in texts of the reviewer's sections. `review/prompt.rs` arranges them.

pub(crate) const GUIDANCE: &str = include_str!("review_sections/guidance.md");

pub(crate) const PLANNING: &str = include_str!("review_sections/planning.md");

pub(crate) const WORKSPACE: &str = "You can look at every file of the project: list, find, search and read. You cannot change \
                         anything, and no commands run.";

pub(crate) const REFERENCE: &str =
    "Documents that the project is to be held to. Read those that matter for what you review.";

/// Sections whose text a project can override, with the built-in text. The schema of findings is always
/// appended to the guidance.
pub(crate) const OVERRIDABLE: [(&str, &str); 4] =
    [("guidance", GUIDANCE), ("planning", PLANNING), ("workspace", WORKSPACE), ("reference", REFERENCE)];
