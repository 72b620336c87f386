//! OpenAI chat completions: how messages look in bytes. The other direction, from a server's stream to a
//! reply, is in [`decode`].
//!
//! The messages stand first in the body and everything else after them, so that request n is a prefix of
//! request n+1 up to the closing fields.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub mod decode;

use super::{Before, json};
use crate::profile::{LimitField, ReasoningReplay, ToolFormat, Traits};
use crate::{Message, Reasoning, RequestOptions, ToolCall, ToolChoice, ToolSpec};

pub(crate) fn opening(system: &str) -> Bytes {
    let mut out = BytesMut::new();
    out.put_slice(b"{\"messages\":[");
    if !system.is_empty() {
        json(&mut out, &Wired::System { content: system });
    }
    out.freeze()
}

pub(crate) fn message(out: &mut BytesMut, message: &Message, before: Before<'_>, traits: Traits) {
    if !matches!(before, Before::Nothing) {
        out.put_u8(b',');
    }
    match message {
        Message::User { text } => json(out, &Wired::User { content: text }),
        Message::Assistant { text, reasoning, tool_calls } => json(
            out,
            &Wired::Assistant {
                content: if text.is_empty() && !tool_calls.is_empty() { None } else { Some(text) },
                reasoning_content: readable(reasoning.as_ref(), traits),
                reasoning_details: opaque(reasoning.as_ref(), traits),
                tool_calls: tool_calls.iter().map(WiredCall::from).collect(),
            },
        ),
        Message::Tool { call_id, content, .. } => json(out, &Wired::Tool { tool_call_id: call_id, content }),
    }
}

fn readable(reasoning: Option<&Reasoning>, traits: Traits) -> &str {
    match traits.reasoning_replay {
        ReasoningReplay::Text => reasoning.map_or("", |reasoning| &reasoning.text),
        ReasoningReplay::Opaque | ReasoningReplay::Nothing => "",
    }
}

fn opaque(reasoning: Option<&Reasoning>, traits: Traits) -> &[Value] {
    match traits.reasoning_replay {
        ReasoningReplay::Opaque | ReasoningReplay::Text => {
            reasoning.map_or(&[], |reasoning| &reasoning.opaque)
        }
        ReasoningReplay::Nothing => &[],
    }
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Vec<WiredTool<'_>> {
    tools.iter().map(|function| WiredTool { kind: "function", function }).collect()
}

pub(crate) fn closing(id: &str, options: &RequestOptions, traits: Traits) -> Map<String, Value> {
    let RequestOptions {
        model: _,
        temperature,
        top_p,
        max_output_tokens,
        reasoning_effort,
        stream,
        tool_choice,
        output_schema,
        open: _,
        extra,
    } = options;
    let mut fields = Map::new();
    fields.insert("model".into(), id.into());
    fields.extend(temperature.map(|value| ("temperature".into(), value.into())));
    fields.extend(top_p.map(|value| ("top_p".into(), value.into())));
    let limit = match traits.limit_field {
        LimitField::MaxTokens => "max_tokens",
        LimitField::MaxCompletionTokens => "max_completion_tokens",
    };
    fields.extend(max_output_tokens.map(|value| (limit.into(), value.into())));
    fields.extend(reasoning_effort.as_ref().map(|value| ("reasoning_effort".into(), value.as_str().into())));
    fields.extend(choice(tool_choice).map(|value| ("tool_choice".into(), value)));
    if traits.one_call && traits.tool_format == ToolFormat::Native {
        fields.insert("parallel_tool_calls".into(), false.into());
    }
    fields.extend(output_schema.as_ref().map(|schema| ("response_format".into(), response_format(schema))));
    fields.insert("stream".into(), (*stream).into());
    if *stream {
        fields.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    // A field the user gave word for word wins over the one we would send.
    fields.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));
    fields
}

fn choice(tool_choice: &ToolChoice) -> Option<Value> {
    match tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::Nothing => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

/// The field that holds an answer to a JSON Schema.
pub(crate) fn response_format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "answer", "strict": true, "schema": schema } })
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Wired<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        reasoning_content: &'a str,
        #[serde(skip_serializing_if = "<[Value]>::is_empty")]
        reasoning_details: &'a [Value],
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WiredCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct WiredCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: WiredFunction<'a>,
}

#[derive(Serialize)]
struct WiredFunction<'a> {
    name: &'a str,
    arguments: std::borrow::Cow<'a, str>,
}

impl<'a> From<&'a ToolCall> for WiredCall<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let arguments = super::arguments_text(&call.arguments);
        WiredCall { id: &call.id, kind: "function", function: WiredFunction { name: &call.name, arguments } }
    }
}

#[derive(Serialize)]
pub(crate) struct WiredTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: &'a ToolSpec,
}

#[cfg(test)]
mod tests;
