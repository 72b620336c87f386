//! Results of tasks and tools: [`TaskResult`] as the engine passes it in, [`ResultValue`] as a value of the
//! program.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::runtime_error::{RuntimeError, SourceLocation};
use crate::value::{Map, Text, Value, drop_iteratively};

/// Outcome of a task or tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Completed successfully.
    Complete,
    /// Completed so far, with a request for a further task.
    Continuation,
    /// Failed; `notes.error` contains the error.
    Failed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Complete => "COMPLETE",
            Status::Continuation => "CONTINUATION",
            Status::Failed => "FAILED",
        })
    }
}

/// Distinguishes an explicit null, which is a value, from an absent field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Result of a task, a tool or a workflow: the JSON object printed by `fusee task --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Outcome of the call.
    pub status: Status,
    /// The answer as text; partial if the task failed.
    #[serde(default)]
    pub content: String,
    /// The answer as data, if JSON was declared and is valid.
    #[serde(
        rename = "parsedContent",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub parsed_content: Option<Json>,
    /// Additional fields: `error`, `metrics`, how the task was run.
    #[serde(default)]
    pub notes: serde_json::Map<String, Json>,
}

impl TaskResult {
    /// A completed result that contains only text.
    pub fn complete(content: impl Into<String>) -> Self {
        Self {
            status: Status::Complete,
            content: content.into(),
            parsed_content: None,
            notes: serde_json::Map::new(),
        }
    }

    /// Sets a note, replacing one of the same name.
    pub fn note(&mut self, name: &str, value: impl Serialize) {
        // Only non-string keys or non-finite numbers could fail, and the values have neither.
        self.notes.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
    }

    /// Whether the task did not fail.
    pub fn is_ok(&self) -> bool {
        self.status != Status::Failed
    }
}

/// A [`TaskResult`] as a value of the program, with the call it belongs to.
pub struct ResultValue {
    /// Outcome of the call.
    pub status: Status,
    /// The answer as text; partial if the task failed.
    pub content: Text,
    /// The answer as data, or nil.
    pub parsed: Value,
    /// Additional fields, as a map.
    pub notes: Value,
    /// Name of the task or tool.
    pub(crate) callee: Text,
    /// Location of the call.
    pub(crate) location: SourceLocation,
}

impl ResultValue {
    pub(crate) fn new(reply: TaskResult, callee: Text, location: SourceLocation) -> Self {
        Self {
            status: reply.status,
            content: reply.content.into(),
            parsed: reply.parsed_content.map_or(Value::Nil, Value::from_json),
            notes: Value::from_json(Json::Object(reply.notes)),
            callee,
            location,
        }
    }

    /// Whether the task or tool did not fail.
    pub fn is_ok(&self) -> bool {
        self.status != Status::Failed
    }

    /// Name of the task or tool that was called.
    pub fn callee(&self) -> &str {
        &self.callee
    }

    /// The text; the error if the task failed.
    pub fn content(&self) -> Result<&Text, Box<RuntimeError>> {
        if self.is_ok() { Ok(&self.content) } else { Err(Box::new(self.fault())) }
    }

    /// The parsed answer, or `None` if the task declares no data format; the error if the task failed.
    pub(crate) fn data(&self) -> Result<Option<&Value>, Box<RuntimeError>> {
        if !self.is_ok() {
            return Err(Box::new(self.fault()));
        }
        Ok((!matches!(self.parsed, Value::Nil)).then_some(&self.parsed))
    }

    /// Looks up a field of the notes.
    pub(crate) fn note(&self, key: &str) -> Option<&Value> {
        match &self.notes {
            Value::Map(notes) => notes.get(key),
            _ => None,
        }
    }

    /// The failure as a runtime error at the call, with its chain of causes.
    pub(crate) fn fault(&self) -> RuntimeError {
        let error = self.note("error").cloned().unwrap_or_default();
        let field = |name: &str| match &error {
            Value::Map(error) => error.get(name).and_then(|value| match value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            }),
            Value::Text(text) if name == "message" => Some(text.clone()),
            _ => None,
        };
        let said = field("message").unwrap_or_else(|| Text::from("no reason given"));
        RuntimeError {
            kind: field("type").unwrap_or_else(|| Text::from("TASK_FAILURE")),
            reason: field("reason"),
            code: "task-failed",
            message: format!("`{}` failed: {said}", self.callee),
            value: Value::Nil,
            location: self.location.clone(),
            trail: Vec::new(),
            cause: error,
            omitted_frames: None,
        }
    }

    /// The result as a map with the fields of a [`TaskResult`].
    pub(crate) fn to_value(&self) -> Value {
        let mut entries = vec![
            (Text::from("status"), Value::text(self.status.to_string())),
            (Text::from("content"), Value::Text(self.content.clone())),
        ];
        if !matches!(self.parsed, Value::Nil) {
            entries.push((Text::from("parsedContent"), self.parsed.clone()));
        }
        entries.push((Text::from("notes"), self.notes.clone()));
        Value::Map(entries.into_iter().collect::<Map>())
    }

    /// Converts the result back to a [`TaskResult`].
    pub fn to_result(&self) -> TaskResult {
        let notes = match self.notes.to_json() {
            Ok(Json::Object(notes)) => notes,
            _ => serde_json::Map::new(),
        };
        let parsed_content = match &self.parsed {
            Value::Nil => None,
            parsed => parsed.to_json().ok(),
        };
        TaskResult { status: self.status, content: self.content.to_string(), parsed_content, notes }
    }

    pub(crate) fn drain_children(&mut self, pending: &mut Vec<Value>) {
        pending.push(std::mem::take(&mut self.parsed));
        pending.push(std::mem::take(&mut self.notes));
    }
}

impl Drop for ResultValue {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        self.drain_children(&mut pending);
        drop_iteratively(pending);
    }
}
