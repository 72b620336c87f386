//! A task that a workflow defines itself: `defatom`. The engine makes a template of it.

use serde::{Deserialize, Serialize};

use crate::param::Param;

/// A defined task: everything in it is known before the workflow runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Atom {
    /// Its name.
    pub name: String,
    /// What natural language is matched against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What `{{name}}` in its texts may name.
    pub params: Vec<Param>,
    /// The task prompt.
    pub instructions: String,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The subtype; absent is `standard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the answer must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
}

/// The declared form of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFormat {
    /// `json` or `text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `object`, `array`, `string[]`, `number`, `boolean`, or a path to a schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}
