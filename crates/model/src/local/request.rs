//! Parses a request from the same body a server would receive, so that an in-process model gets exactly the
//! same request as one behind HTTP. The conversation writes the body ([`crate::wire::openai_chat`]).

use serde::Deserialize;
use serde_json::Value;

use super::schema_grammar::grammar;
use super::template::opened_arguments;
use crate::{ErrorKind, ModelError};

/// Defaults of llama.cpp's server.
const TEMPERATURE: f32 = 0.8;
const TOP_P: f32 = 0.95;
/// Fixed, so that a run is reproducible.
const SEED: u32 = 0;

/// A parsed request.
pub(super) struct LocalRequest {
    messages: Vec<Value>,
    /// Tools passed to the template.
    pub(super) tools: Vec<Value>,
    /// 0 always selects the most likely token.
    pub(super) temperature: f32,
    pub(super) top_p: f32,
    pub(super) seed: u32,
    /// Maximum length of the reply in tokens.
    pub(super) max_tokens: Option<u32>,
    /// Grammar the reply must match.
    pub(super) grammar: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    seed: Option<u32>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    grammar: Option<String>,
    response_format: Option<ResponseFormat>,
}

#[derive(Deserialize)]
struct ResponseFormat {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    json_schema: Value,
}

impl LocalRequest {
    /// Parses the body of a chat completions request.
    pub(super) fn read(body: &[u8]) -> Result<LocalRequest, ModelError> {
        let body: Body = serde_json::from_slice(body)
            .map_err(|error| ModelError::new(ErrorKind::Invalid, format!("invalid request body: {error}")))?;
        let mut messages = body.messages;
        for message in &mut messages {
            if message.get("content").is_none_or(Value::is_null) {
                message["content"] = "".into();
            }
            if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
                calls.iter_mut().for_each(opened_arguments);
            }
        }
        Ok(LocalRequest {
            messages,
            tools: body.tools,
            temperature: body.temperature.unwrap_or(TEMPERATURE).max(0.0),
            top_p: body.top_p.unwrap_or(TOP_P),
            seed: body.seed.unwrap_or(SEED),
            max_tokens: body.max_tokens.or(body.max_completion_tokens),
            grammar: body
                .grammar
                .or_else(|| body.response_format.and_then(schema).map(|schema| grammar(&schema))),
        })
    }

    /// The messages for the template, and the prefilled beginning of the assistant's reply, if any.
    pub(super) fn turns(&self) -> (&[Value], Option<&str>) {
        match self.messages.split_last() {
            Some((last, before)) if last["role"] == "assistant" && last.get("tool_calls").is_none() => {
                (before, last["content"].as_str())
            }
            _ => (&self.messages, None),
        }
    }
}

fn schema(format: ResponseFormat) -> Option<Value> {
    match format.kind.as_str() {
        "json_schema" => format.json_schema.get("schema").cloned(),
        "json_object" => Some(serde_json::json!({ "type": "object" })),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
