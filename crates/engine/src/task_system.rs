//! Atomic tasks as values: their requests, results and errors, and the system that runs them.
//!
//! A [`SubtaskRequest`] names a template and contains everything it needs. [`TaskSystem`] finds the template,
//! prepares the context and configures a `Handler`; the `AtomicTaskExecutor` lets the handler work on the task.
//! Templates, tools and workflows all answer with a [`TaskResult`]; a failed task is a result with a
//! [`TaskError`].

mod context;
mod context_loader;
mod error;
mod executor;
pub mod file_reader;
mod file_sources;
mod handler;
mod history_excerpt;
mod lookup;
pub(crate) mod model_ranking;
mod output_judge;
mod pipeline;
mod preview;
mod prompt;
mod request;
pub(crate) mod run_script;
mod subtasks;

pub use crate::agent::ResourceMetrics;
pub use context::{Conflict, ContextSettings, SetBy, defaults, effective};
pub use error::{ErrorCause, ErrorType, Reason, TaskError};
pub use fusee_lang::{Status, TaskResult};
pub use handler::{check_tools, limits, toolbox};
use history_excerpt::part as history_part;
pub use lookup::{ExecutionPath, TemplateOrigin};
pub use pipeline::{ResolvedRequest, TaskScope, TaskSystem, ready};
pub use preview::{Preview, preview};
pub use prompt::{
    ComposedPrompt, HandlerPayload, Handover, PreparedContext, SourceFile, SystemPrompt, compose,
};
pub use request::{ContextPart, HistoryConfig, InheritedContext, SubtaskRequest};
pub(crate) use subtasks::Subtasks;

pub use crate::template::output::Mismatch;
pub use crate::template::{
    AccumulationFormat, ContextOverrides, FreshContext, InheritContext, LimitOverrides,
};

#[cfg(test)]
mod tests;
