//! Runs tasks: the agent loop, prompts, approvals, workflows, and the life cycle of a run.
//!
//! [`run`] is the entry point for user interfaces: start, resume or replay a run, read its events, cancel it.
//! [`agent`] drives a model through one task. Models, tools and the journal are separate crates that do not
//! depend on each other.

pub mod agent;
pub mod approval;
pub mod dispatch;
mod git_objects;
pub mod hook;
pub mod memory;
pub mod prompt;
pub mod restore;
pub mod review;
pub mod rewind;
pub mod run;
pub mod task_system;
pub mod template;
pub mod undo;
pub mod workflow;

// Re-exports the crates below, so that user interfaces and embedders depend on this crate alone.
pub use {
    fusee_journal as journal, fusee_lang as lang, fusee_model as model, fusee_text as text,
    fusee_tools as tools,
};
