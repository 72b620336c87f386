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
            extra: Map::new(),
        }
    }
}
