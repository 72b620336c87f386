//! Workflows: programs of tasks. `fusee_lang` defines the language; this module performs its effects.
//!
//! [`WorkflowLoader`] finds the text, and [`catalog()`] lists what a program may call. `run` takes a
//! workflow from its text to
//! its outcome; `driver` performs the effects of its machine, step by step.

mod ask_user;
mod budget;
mod catalog;
mod driver;
mod get_context;
mod loader;
mod outcome;
mod pmap;
mod pmap_element;
mod run;
mod subworkflow;
mod task_calls;
mod task_request;
mod tool_calls;
mod workflow_context;

pub use catalog::{catalog, standard_tools};
pub use loader::{MAX_BYTES, WorkflowLoader};
pub use outcome::unstarted_result;
pub use run::WorkflowRun;
pub(crate) use run::{WorkflowExit, WorkflowScope, complete_event, run};
pub use workflow_context::EffectTrace;
