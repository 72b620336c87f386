//! Atomic tasks as values: what is asked of one, what comes of it, and how it fails.
//!
//! A [`SubtaskRequest`] names a template and brings everything it needs; a [`TaskResult`] is the one shape in which
//! templates, tools and workflows answer. Nothing is thrown: a task that failed is a result with a [`TaskError`].

mod error;
pub mod output;
mod request;
mod result;

pub use error::{Cause, ErrorType, Mismatch, Reason, ResourceMetrics, TaskError};
pub use request::AccumulationFormat;
pub use request::{
    ContextOverrides, ContextPart, FreshContext, HistoryConfig, InheritContext, InheritedContext,
    LimitOverrides, SubtaskRequest,
};
pub use result::{ExecutionPath, Status, TaskResult};

#[cfg(test)]
mod tests;
