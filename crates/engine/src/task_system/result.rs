//! What comes of a task: the JSON object that `fusee task --json` prints.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{ResourceMetrics, TaskError};

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Done.
    Complete,
    /// Done so far: `notes.subtask_request` is wanted next.
    Continuation,
    /// Not done: `notes.error` says why.
    Failed,
}

/// The result of a task, a tool or a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// How it went.
    pub status: Status,
    /// The text; of a failed task, what there was of it.
    #[serde(default)]
    pub content: String,
    /// The text as data, where it was declared to be data and is.
    #[serde(
        rename = "parsedContent",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub parsed_content: Option<Value>,
    /// Everything else.
    #[serde(default)]
    pub notes: Map<String, Value>,
}

/// A field that is there and null is a value, not an absent field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// How a request came to what ran, for the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionPath {
    /// A workflow.
    SExpression,
    /// A template.
    Template,
    /// A tool, called directly.
    Tool,
    /// No template: the words themselves were the task.
    Plain,
}

impl TaskResult {
    /// A completed one.
    pub fn complete(content: impl Into<String>) -> Self {
        Self { status: Status::Complete, content: content.into(), parsed_content: None, notes: Map::new() }
    }

    /// A failed one, with what there is of an answer.
    pub fn failed(error: &TaskError, content: impl Into<String>) -> Self {
        let mut result = Self { status: Status::Failed, ..Self::complete(content) };
        result.note("error", error);
        result.note("recovery", error.recovery());
        result
    }

    /// Adds a note; a later one of the same name wins.
    pub fn note(&mut self, name: &str, value: impl Serialize) {
        // Our own values have string keys and finite numbers, the only ways this could fail.
        self.notes.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
    }

    /// Adds what was used up: of a failure all that is known, else what is the same in every run like it.
    pub fn measure(&mut self, metrics: ResourceMetrics) {
        self.note("metrics", if self.is_ok() { metrics.counts() } else { metrics });
    }

    /// The error, of a failed one.
    pub fn error(&self) -> Option<TaskError> {
        self.notes.get("error").and_then(|error| serde_json::from_value(error.clone()).ok())
    }

    /// Whether it did not fail.
    pub fn is_ok(&self) -> bool {
        self.status != Status::Failed
    }
}
