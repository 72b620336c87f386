//! Atomic tasks as values: their requests, results and errors, and the system that runs them.
//!
//! A [`SubtaskRequest`] names a template and contains everything it needs. Templates, tools and workflows all
//! answer with a [`TaskResult`]; a failed task is a result with a [`TemplateTaskError`].

mod context;
mod context_loader;
mod error;
mod executor;
mod file_sources;
mod handler;
mod history_excerpt;
pub mod output;
mod output_handling;
mod pipeline;
mod preview;
mod prompt;
mod request;
mod result;
mod subtasks;

pub use context::{Conflict, ContextSettings, SetBy, defaults, effective};
pub use error::{ErrorCause, ErrorType, Mismatch, Reason, ResourceMetrics, TemplateTaskError};
pub use handler::{check_tools, limits, toolbox};
pub(crate) use history_excerpt::part as history_part;
pub use pipeline::{ResolvedRequest, TaskScope, TaskSystem, ready};
pub use preview::{Preview, preview};
pub use prompt::{ComposedPrompt, Handover, PreparedContext, SourceFile, compose};
pub use request::AccumulationFormat;
pub use request::{
    ContextOverrides, ContextPart, FreshContext, HistoryConfig, InheritContext, InheritedContext,
    LimitOverrides, SubtaskRequest,
};
pub use result::{ExecutionPath, Status, TaskResult};
pub use subtasks::DEEPEST;
pub(crate) use subtasks::Subtasks;

#[cfg(test)]
mod tests;
