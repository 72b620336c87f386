//! OpenAI chat completions: how messages look in bytes. The other direction, from a server's stream to a
//! reply, is in [`decode`].
//!
//! The messages stand first in the body and everything else after them, so that request n is a prefix of
//! request n+1 up to the closing fields.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

pub mod decode;

use crate::{Message, Reasoning, RequestOptions, ToolCall, ToolSpec};

pub(crate) fn opening(system: &str) -> Bytes {
    let mut out = BytesMut::new();
    out.put_slice(b"{\"messages\":[");
    if !system.is_empty() {
        json(&mut out, &Wired::System { content: system });
    }
    out.freeze()
}

pub(crate) fn message(out: &mut BytesMut, message: &Message, follows: bool) {
    if follows {
        out.put_u8(b',');
    }
    match message {
        Message::User { text } => json(out, &Wired::User { content: text }),
        Message::Assistant { text, reasoning, tool_calls } => json(
            out,
            &Wired::Assistant {
                content: if text.is_empty() && !tool_calls.is_empty() { None } else { Some(text) },
                reasoning_details: reasoning.as_ref().map_or(&[], |Reasoning { opaque, .. }| opaque),
                tool_calls: tool_calls.iter().map(WiredCall::from).collect(),
            },
        ),
        Message::Tool { call_id, content, .. } => json(out, &Wired::Tool { tool_call_id: call_id, content }),
    }
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(b']');
    if !tools.is_empty() {
        out.put_slice(b",\"tools\":");
        let wired: Vec<_> = tools.iter().map(|function| WiredTool { kind: "function", function }).collect();
        json(&mut out, &wired);
    }
    out.freeze()
}

pub(crate) fn closing(id: &str, options: &RequestOptions) -> Bytes {
    let RequestOptions { model: _, temperature, top_p, max_output_tokens, reasoning_effort, stream, extra } =
        options;
    let mut fields = Map::new();
    fields.insert("model".into(), id.into());
    fields.extend(temperature.map(|value| ("temperature".into(), value.into())));
    fields.extend(top_p.map(|value| ("top_p".into(), value.into())));
    fields.extend(max_output_tokens.map(|value| ("max_tokens".into(), value.into())));
    fields.extend(reasoning_effort.as_ref().map(|value| ("reasoning_effort".into(), value.as_str().into())));
    fields.insert("stream".into(), (*stream).into());
    if *stream {
        fields.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    // A field the user gave word for word wins over the one we would send.
    fields.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));

    let mut out = BytesMut::new();
    json(&mut out, &Value::Object(fields));
    if let Some(brace) = out.first_mut() {
        *brace = b',';
    }
    out.freeze()
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
        let arguments = if serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok() {
            call.arguments.as_str().into()
        } else if call.arguments.trim().is_empty() {
            "{}".into()
        } else {
            // llama.cpp and vLLM parse the arguments of past calls and fail the whole request on bad JSON.
            json!({ "malformed_arguments": call.arguments }).to_string().into()
        };
        WiredCall { id: &call.id, kind: "function", function: WiredFunction { name: &call.name, arguments } }
    }
}

#[derive(Serialize)]
struct WiredTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: &'a ToolSpec,
}

fn json(out: &mut BytesMut, value: &impl Serialize) {
    let from = out.len();
    // Strings, numbers and lists into memory cannot fail; should that ever change, the body stays valid JSON.
    if serde_json::to_writer(out.writer(), value).is_err() {
        out.truncate(from);
        out.put_slice(b"null");
    }
}

#[cfg(test)]
mod tests;
