//! Options of a request other than the conversation itself. They are at the end of the body, so that changing
//! one never changes the bytes of the messages before it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Options of a request other than the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestOptions {
    /// Model id sent to the server; if empty, the id the model was opened with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Maximum length of the reply in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// `low`, `medium`, `high`, or another value the server accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Whether to request a streamed reply; a reply that is not streamed is accepted too.
    pub stream: bool,
    /// Whether the model must call a tool, and which.
    #[serde(skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// JSON Schema of the answer, enforced if the server supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Tools that are open in this request, if not all tools of the conversation are. Models with constrained
    /// replies (`tool_format = "schema"`) cannot call anything else; for others it is only a hint, and the
    /// executor of the calls refuses the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<AllowedOutput>,
    /// Fields added to the body verbatim (`response_format`, `grammar`, `seed`, …), in this order.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Default for RequestOptions {
    fn default() -> Self {
        RequestOptions {
            model: String::new(),
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            reasoning_effort: None,
            stream: true,
            tool_choice: ToolChoice::Auto,
            output_schema: None,
            open: None,
            extra: Map::new(),
        }
    }
}

/// Whether the model must call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool may be called.
    Nothing,
    /// Any tool must be called.
    Required,
    /// This tool must be called.
    Named(String),
}

impl ToolChoice {
    pub(crate) fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

/// The calls and answers a model may give in one request. This is not part of the prompt, so tool gates can
/// open and close between turns without changing the prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllowedOutput {
    /// Tools that may be called.
    pub tools: Vec<AllowedTool>,
    /// Whether the model may answer with text instead.
    pub answer: bool,
}

impl Default for AllowedOutput {
    fn default() -> Self {
        AllowedOutput { tools: Vec::new(), answer: true }
    }
}

/// A tool that may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllowedTool {
    /// Name of the tool.
    pub name: String,
    /// Allowed values of its `path` (or of each of its `paths`); any if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether only its required arguments may be given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
}

impl From<&str> for AllowedTool {
    fn from(name: &str) -> Self {
        AllowedTool { name: name.to_owned(), ..AllowedTool::default() }
    }
}
