//! Prompts for the model: sections that are rendered to text, some of them closed until the model opens them.
//!
//! A [`Prompt`] is a tree of sections, checked when it is built. Bound to a task, it renders to exactly the
//! bytes the model receives ([`RenderedText`]). [`open_sections`] opens closed sections, and [`PromptFile`] reads
//! a prompt from a file. `default.rs` holds the prompt of a plain run, `environment.rs` its inputs.

mod builder;
mod default;
mod delegation;
mod digest;
mod documents;
mod environment;
mod expansion;
mod outline;
mod overrides;
mod placeholder;
mod planning_strategy;
mod prompt_file;
mod render;
pub(crate) mod review_sections;
mod section;
mod section_key;
mod task_fields;
mod task_section;
mod to_file;

pub use builder::{Prompt, PromptBuilder, PromptProblem};
pub(crate) use default::default_sections;
pub use default::{DefaultPrompt, PromptKind, default_system, overridable, request_text};
pub use delegation::{DelegationPrompt, Recap};
pub use digest::{DIGEST_FILE, workspace_digest};
pub use documents::front_matter;
pub use documents::{Document, Skills, references, skills};
pub use environment::EnvironmentSnapshot;
pub use expansion::{OpenProblem, VisibilityExpansionRequired, build_expansion_instructions, open_sections};
pub use outline::{Outlined, SectionState};
pub(crate) use overrides::section_text;
pub use overrides::{SectionOverride, override_file};
pub use planning_strategy::PlanningStrategy;
pub use prompt_file::{FileProblem, PromptFile};
pub use render::{BoundPrompt, RenderProblem, RenderedSection, RenderedText};
pub use section::{Condition, PromptSection, SectionDisplay, Visibility};
pub use section_key::SectionPath;
pub use task_fields::{AnyTask, Task, TaskFields};
pub use task_section::TaskSection;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
