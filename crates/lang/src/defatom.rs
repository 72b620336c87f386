//! Tasks that a workflow defines itself with `defatom`. The engine turns them into templates.

use serde::{Deserialize, Serialize};
use serde_json::{Map as JsonMap, Value as Json};

use crate::param::Param;

/// A task defined by a workflow; all of it is known before the workflow runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Atom {
    /// The name it is called by.
    pub name: String,
    /// Description that natural-language requests are matched against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Parameters, which its texts refer to as `{{name}}`.
    pub params: Vec<Param>,
    /// The task prompt.
    pub instructions: String,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Task subtype; `None` means `standard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// Model that runs the task, if not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Required format of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
    /// Context settings by name, checked against `CONTEXT_SETTINGS`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub context_management: JsonMap<String, Json>,
}

/// Context settings of a task, each with its values.
pub(crate) const CONTEXT_SETTINGS: &[(&str, &[&str])] = &[
    ("inherit_context", &["full", "none", "subset"]),
    ("accumulate_data", &["true", "false"]),
    ("accumulation_format", &["notes_only", "full_output"]),
    ("fresh_context", &["enabled", "disabled"]),
];

/// Declared format of a task's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFormat {
    /// JSON or text.
    #[serde(rename = "type")]
    pub kind: OutputKind,
    /// One of [`OutputFormat::SCHEMA_WORDS`], or the path of a JSON Schema file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// Kind of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// Structured data.
    Json,
    /// Plain text.
    Text,
}

impl OutputFormat {
    /// Schemas that are not the path of a file.
    pub const SCHEMA_WORDS: &'static [&'static str] =
        &["object", "array", "[]", "string[]", "number", "boolean"];

    /// Whether the answer must be JSON.
    pub fn is_json(&self) -> bool {
        self.kind == OutputKind::Json
    }

    /// The JSON Schema file that the format names, if any.
    pub fn schema_file(&self) -> Option<&str> {
        let schema = self.schema.as_deref().filter(|_| self.is_json())?;
        (!Self::SCHEMA_WORDS.contains(&schema)).then_some(schema)
    }
}

impl OutputKind {
    /// Looks up a kind by the name it is declared with.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}
