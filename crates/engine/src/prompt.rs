//! Prompts for the model: sections that are rendered to text, some of them closed until the model opens them.
//!
//! A [`Prompt`] is a tree of sections, checked when it is built. Bound to a task, it renders to exactly the
//! bytes the model receives ([`Rendered`]). [`open_sections`] opens closed sections, and [`PromptFile`] reads
//! a prompt from a file. `default.rs` holds the prompt of a plain run, `environment.rs` its inputs.

mod build;
mod default;
mod delegation;
mod digest;
mod documents;
mod environment;
mod expansion;
mod file;
mod key;
mod outline;
mod overrides;
mod planning;
mod render;
mod section;
mod task;
mod template;
mod written;

pub use build::{Problem, Prompt, PromptBuilder};
pub(crate) use default::usual_sections;
pub use default::{DefaultPrompt, PromptKind, default_system, overridable, request_text};
pub use delegation::{DelegationPrompt, Recap};
pub use digest::{DIGEST_FILE, workspace_digest};
pub use documents::{Document, Skills, references, skills};
pub use environment::Environment;
pub use expansion::{OpenProblem, VisibilityExpansionRequired, build_expansion_instructions, open_sections};
pub use file::{FileProblem, PromptFile};
pub use key::SectionPath;
pub use outline::{Outlined, SectionState};
pub(crate) use overrides::worded;
pub use overrides::{Override, override_file};
pub use planning::PlanningStrategy;
pub use render::{Bound, RenderProblem, Rendered, RenderedSection};
pub use section::{Condition, Section, Shown, Visibility};
pub use task::{AnyTask, Task, TaskFields};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
