//! Running tasks: the agent loop, prompts, approvals, and runs as a whole.
//!
//! [`run`] is the door for faces: start, resume or replay a run, read its events, cancel it. [`agent`] drives
//! a model through one task. Models, tools and the journal are crates of their own and do not know each other.

pub mod agent;
pub mod approval;
pub mod dispatch;
pub mod embed;
pub mod flow;
pub mod memory;
pub mod prompt;
mod report;
pub mod review;
pub mod run;
pub mod task_system;
pub mod template;
pub mod undo;
pub mod workflow;

// The crates beneath, for faces and embedders: they know this crate alone.
pub use {
    fusee_journal as journal, fusee_lang as lang, fusee_model as model, fusee_text as text,
    fusee_tools as tools,
};
