//! The knobs of one request beside the conversation itself. They close the body, so that changing one never
//! touches the bytes of the messages before it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is asked for besides the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestOptions {
    /// The id sent to the server; empty means the id the model was chosen by.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Upper bound of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// `low`, `medium`, `high`, or what the server knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Whether the reply is streamed; a server that does not stream is accepted all the same.
    pub stream: bool,
    /// Whether a tool is called, and which.
    #[serde(skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// A JSON Schema that the answer follows, where the server can hold it to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What is open in this request, where that is less than all the tools of the conversation. Models whose
    /// replies are constrained (`tool_format = "schema"`) cannot call anything else; for the others it is
    /// a wish, and whoever makes the calls refuses the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// Fields added to the body as they are (`response_format`, `grammar`, `seed`, …), in this order.
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

/// Whether a tool is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As the model likes.
    #[default]
    Auto,
    /// None.
    Nothing,
    /// Some tool.
    Required,
    /// This one.
    Named(String),
}

impl ToolChoice {
    pub(crate) fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

/// What a model may do in one request. It stands outside the prompt, so gates open and close from turn to turn
/// without changing a byte of the prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Open {
    /// The tools that may be called.
    pub tools: Vec<OpenTool>,
    /// Whether it may answer in words instead.
    pub answer: bool,
}

impl Default for Open {
    fn default() -> Self {
        Open { tools: Vec::new(), answer: true }
    }
}

/// A tool that may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenTool {
    /// Its name.
    pub name: String,
    /// What its `path` (or each of its `paths`) may be; anything if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether it is given nothing but what it must have.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
}

impl From<&str> for OpenTool {
    fn from(name: &str) -> Self {
        OpenTool { name: name.to_owned(), ..OpenTool::default() }
    }
}
