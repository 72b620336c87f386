//! Workflows: programs of tasks. `fusee_lang` defines the language; this module performs its effects.
//!
//! [`WorkflowLoader`] finds the text, and [`catalog()`] lists what a program may call. `run` takes a
//! workflow from its text to
//! its outcome; `driver` performs the effects of its machine, step by step.

mod ask_user;
mod atom_prompt;
mod budget;
mod catalog;
mod driver;
mod get_context;
mod loader;
mod outcome;
mod pmap;
mod pmap_element;
mod run;
mod run_script;
mod subworkflow;
mod task_calls;
mod template_calls;
mod tool_calls;
mod workflow_context;

pub use atom_prompt::substitute as rendered;
pub use catalog::{catalog, standard_tools};
pub use loader::{MOST_BYTES, WorkflowLoader};
pub(crate) use run::{WorkflowExit, WorkflowScope, complete_event, run};
pub use run_script::{RunScript, ScriptOutput, printed};
pub use workflow_context::EffectTrace;
