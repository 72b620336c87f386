//! The section that shows the user's task. `task_fields.rs` holds the task, `render.rs` places the section.

use super::section::PromptSection;
use super::task_fields::{EXPANSION, Fields};

/// The section that shows a task: the expansion context, if there is one, the request, the fields of its domain
/// and the background. It is never summarised and has no children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSection {
    key: String,
    title: String,
}

impl TaskSection {
    /// Creates a task section with this key and title.
    pub fn new(key: impl Into<String>, title: impl Into<String>) -> Self {
        Self { key: key.into(), title: title.into() }
    }

    /// Renders the body of the section for a task.
    pub(super) fn render(task: &Fields) -> String {
        let mut parts = Vec::new();
        if let Some(instructions) = task.set(EXPANSION) {
            parts.push(format!("**Expansion Context:** {instructions}\n\n---"));
        }
        parts.extend(task.set("request"));
        let domain: Vec<_> = task.domain().map(|(name, value)| format!("- **{name}:** {value}")).collect();
        if !domain.is_empty() {
            parts.push(domain.join("\n"));
        }
        if let Some(background) = task.set("background") {
            parts.push(format!("**Background:** {background}"));
        }
        parts.join("\n\n")
    }
}

impl Default for TaskSection {
    fn default() -> Self {
        Self::new("task", "Task")
    }
}

impl From<TaskSection> for PromptSection {
    fn from(TaskSection { key, title }: TaskSection) -> Self {
        PromptSection::task(key, title)
    }
}
