//! The user's task as a value. A domain task is any type that serialises to an object with a `request`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::placeholder::trim;

/// The plain task: a request and optional background.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The user's request in natural language.
    pub request: String,
    /// Additional context or background for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// Instructions injected after sections are expanded via progressive disclosure. Guides the model on how
    /// to proceed with newly visible content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion_instructions: Option<String>,
}

impl Task {
    /// Creates a task with this request.
    pub fn new(request: impl Into<String>) -> Self {
        Self { request: request.into(), ..Self::default() }
    }
}

/// A task type: anything that serialises and has a schema.
pub trait TaskFields: Serialize + JsonSchema {}

impl<T: Serialize + JsonSchema> TaskFields for T {}

/// A task whose fields are known only at run time, as in a prompt file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct AnyTask(pub Map<String, Value>);

/// The field whose value changes in each cycle.
pub(crate) const EXPANSION: &str = "expansion_instructions";

/// The fields of a bound task.
#[derive(Clone, Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Extracts the fields of a task; the error says why this is not possible.
    pub(crate) fn from_task(task: &impl Serialize) -> Result<Self, String> {
        match serde_json::to_value(task) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err("a task must be an object with a `request`".to_owned()),
            Err(error) => Err(format!("cannot serialise the task: {error}")),
        }
    }

    /// Returns a field rendered as text; `None` if there is no such field.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.0.get(name).map(text)
    }

    /// Returns a field, trimmed, if it is not blank.
    pub(crate) fn set(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| trim(&value).to_owned()).filter(|value| !value.is_empty())
    }

    /// Returns the non-blank fields beyond those of every task, in order.
    pub(crate) fn domain(&self) -> impl Iterator<Item = (&str, String)> {
        self.0
            .keys()
            .filter(|name| !matches!(name.as_str(), "request" | "background" | EXPANSION))
            .filter_map(|name| Some((name.as_str(), self.set(name)?)))
    }

    /// Returns the fields as a task.
    pub(crate) fn to_task(&self) -> AnyTask {
        AnyTask(self.0.clone())
    }

    /// Sets the expansion instructions for the next cycle.
    pub(crate) fn expanded(mut self, instructions: String) -> Self {
        self.0.insert(EXPANSION.to_owned(), instructions.into());
        self
    }
}

/// Renders a value as text: strings unquoted, lists separated by commas, null as empty.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
