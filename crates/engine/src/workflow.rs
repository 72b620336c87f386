//! Workflows: programs of tasks. `fusee_lang` defines the language; this module performs its effects.
//!
//! [`Loading`] finds the text, and [`catalog()`] lists what a program may call. `start` takes a
//! workflow from its text to
//! its outcome; `driver` performs the effects of its machine, step by step.

mod asking;
mod budget;
mod catalog;
mod context;
mod driver;
mod element;
mod loading;
mod outcome;
mod parallel;
mod prompting;
mod script;
mod start;
mod subworkflow;
mod tasks;
mod template;
mod tools;
mod world;

pub use catalog::{catalog, standard_tools};
pub use loading::{Loading, MOST_BYTES};
pub use prompting::substitute as rendered;
pub use script::{Printed, RunScript, printed};
pub(crate) use start::{Left, Place, complete_event, run};
pub use world::Trace;
