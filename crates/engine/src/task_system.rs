//! Atomic tasks as values: their requests, results and errors, and the system that runs them.
//!
//! A [`SubtaskRequest`] names a template and contains everything it needs. Templates, tools and workflows all
//! answer with a [`TaskResult`]; a failed task is a result with a [`TaskError`].

mod compose;
mod context;
mod error;
mod execute;
mod executor;
mod finish;
mod handler;
mod history;
mod listing;
pub mod output;
mod prepare;
mod preview;
mod request;
mod result;
mod subtask;

pub use compose::{Composed, Handover, Prepared, ReadFile, compose};
pub use context::{Conflict, ContextSettings, SetBy, defaults, effective};
pub use error::{Cause, ErrorType, Mismatch, Reason, ResourceMetrics, TaskError};
pub use execute::{Place, Ready, TaskSystem, ready};
pub use handler::{check_tools, limits, toolbox};
pub(crate) use history::part as history_part;
pub use preview::{Preview, preview};
pub use request::AccumulationFormat;
pub use request::{
    ContextOverrides, ContextPart, FreshContext, HistoryConfig, InheritContext, InheritedContext,
    LimitOverrides, SubtaskRequest,
};
pub use result::{ExecutionPath, Status, TaskResult};
pub use subtask::DEEPEST;
pub(crate) use subtask::Subtasks;

#[cfg(test)]
mod tests;
