//! Result of a task: the JSON object that `fusee task --json` prints.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{ResourceMetrics, TemplateTaskError};

/// Status of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// The task is done.
    Complete,
    /// Done so far; `notes.subtask_request` asks for the next task.
    Continuation,
    /// The task failed; `notes.error` says why.
    Failed,
}

/// Result of a task, a tool or a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Status of the task.
    pub status: Status,
    /// Text of the answer; partial if the task failed.
    #[serde(default)]
    pub content: String,
    /// Parsed answer, if JSON was declared and is valid.
    #[serde(
        rename = "parsedContent",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub parsed_content: Option<Value>,
    /// Additional data: error, metrics, bookkeeping.
    #[serde(default)]
    pub notes: Map<String, Value>,
}

/// Distinguishes an explicit null, which is a value, from an absent field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// How a request was resolved, for the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionPath {
    /// To a workflow.
    SExpression,
    /// To a template.
    Template,
    /// To a direct tool call.
    Tool,
    /// To no template; the description itself was the task.
    Plain,
}

impl TaskResult {
    /// Creates a completed result.
    pub fn complete(content: impl Into<String>) -> Self {
        Self { status: Status::Complete, content: content.into(), parsed_content: None, notes: Map::new() }
    }

    /// Creates a failed result, with the partial answer.
    pub fn failed(error: &TemplateTaskError, content: impl Into<String>) -> Self {
        let mut result = Self { status: Status::Failed, ..Self::complete(content) };
        result.note("error", error);
        result.note("recovery", error.recovery());
        result
    }

    /// Sets a note, replacing one of the same name.
    pub fn note(&mut self, name: &str, value: impl Serialize) {
        // Only non-string keys or non-finite numbers could fail, and the values have neither.
        self.notes.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
    }

    /// Adds the metrics: everything for a failure, else only what is the same in every run.
    pub fn measure(&mut self, metrics: ResourceMetrics) {
        self.note("metrics", if self.is_ok() { metrics.counts() } else { metrics });
    }

    /// Returns the error of a failed result.
    pub fn error(&self) -> Option<TemplateTaskError> {
        self.notes.get("error").and_then(|error| serde_json::from_value(error.clone()).ok())
    }

    /// Whether the task did not fail.
    pub fn is_ok(&self) -> bool {
        self.status != Status::Failed
    }
}
