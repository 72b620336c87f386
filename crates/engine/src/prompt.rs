//! What a model is told: sections that are rendered to text, some of them closed until the model opens them.
//!
//! A [`Prompt`] is a tree of sections, checked when it is built; bound to a task it renders to exactly the
//! bytes a model gets ([`Rendered`]). [`open_sections`] opens closed ones, [`PromptFile`] reads a prompt from
//! a file. `default.rs` is the prompt of a plain run.

mod build;
mod default;
mod documents;
mod expansion;
mod file;
mod key;
mod render;
mod section;
mod task;
mod template;

pub use build::{Problem, Prompt, PromptBuilder};
pub use default::{Environment, default_system, request_text};
pub use documents::{Document, references, skills};
pub use expansion::{OpenProblem, VisibilityExpansionRequired, build_expansion_instructions, open_sections};
pub use file::{FileProblem, PromptFile};
pub use key::SectionPath;
pub use render::{Bound, RenderProblem, Rendered, RenderedSection};
pub use section::{Condition, Section, Shown, Visibility};
pub use task::{AnyTask, Task, TaskFields};

#[cfg(test)]
mod tests;
