//! Tasks that a workflow defines itself with `defatom`. The engine turns them into templates.

use serde::{Deserialize, Serialize};

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
}

/// Declared format of a task's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFormat {
    /// `json` or `text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `object`, `array`, `string[]`, `number`, `boolean`, or the path of a JSON schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}
