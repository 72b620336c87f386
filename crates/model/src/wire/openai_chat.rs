//! Encodes OpenAI chat completions. [`decode`] is the other direction.
//!
//! The messages come first in the body and everything else after them, so that request n is a prefix of
//! request n+1 up to the closing fields.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub mod decode;

use super::body_tail::BodyTail;
use super::{DataUrl, MessagePrefix, arguments_text, is_of_call, json, more_of_call, without_images};
use crate::profile::{LimitField, ModelTraits, ReasoningReplay, ToolFormat};
use crate::{Image, Message, Reasoning, RequestOptions, ToolCall, ToolSpec};

pub(crate) fn opening(system: &str) -> Bytes {
    let mut out = BytesMut::new();
    out.put_slice(b"{\"messages\":[");
    if !system.is_empty() {
        json(&mut out, &Wired::System { content: system });
    }
    out.freeze()
}

pub(crate) fn message(
    out: &mut BytesMut,
    message: &Message,
    before: MessagePrefix<'_>,
    owed: &mut BytesMut,
    traits: ModelTraits,
) {
    let mut settled = false;
    if !matches!(message, Message::Tool { .. }) && !owed.is_empty() {
        pictures(out, owed);
        owed.clear();
        settled = true;
    }
    match message {
        // Some servers reject two user messages in a row, so the text is joined to the images.
        Message::User { text, images } if settled => {
            out.truncate(out.len() - IMAGES_END.len());
            for part in user_parts(text, images, traits) {
                out.put_u8(b',');
                json(out, &part);
            }
            out.put_slice(IMAGES_END);
            return;
        }
        _ if !matches!(before, MessagePrefix::Nothing) => out.put_u8(b','),
        _ => {}
    }
    match message {
        Message::User { text, images } if traits.images && !images.is_empty() => {
            json(out, &Wired::UserParts { content: user_parts(text, images, traits) });
        }
        Message::User { text, images } => json(out, &Wired::User { content: &without_images(text, images) }),
        Message::Assistant { text, reasoning, tool_calls } => json(
            out,
            &Wired::Assistant {
                content: if text.is_empty() && !tool_calls.is_empty() { None } else { Some(text) },
                reasoning_content: reasoning_text(reasoning.as_ref(), traits),
                reasoning_details: opaque(reasoning.as_ref(), traits),
                tool_calls: tool_calls
                    .iter()
                    .enumerate()
                    .map(|(index, call)| WiredCall::new(call, more_of_call(reasoning.as_ref(), index)))
                    .collect(),
            },
        ),
        Message::Tool { call_id, content, images, name, .. } => {
            let content = if traits.images { content.into() } else { without_images(content, images) };
            json(out, &Wired::Tool { tool_call_id: call_id, content: &content });
            if traits.images && !images.is_empty() {
                defer_tail(owed, name, images);
            }
        }
    }
}

/// The parts of a message of the user.
fn user_parts<'a>(text: &'a str, images: &'a [Image], traits: ModelTraits) -> Vec<Part<'a>> {
    let images = images.iter().filter(|_| traits.images);
    let images = images.map(|image| Part::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } });
    std::iter::once(Part::Text { text }).chain(images).collect()
}

/// Tool results contain only text in this format and must be adjacent; their images follow the last of them.
fn defer_tail(owed: &mut BytesMut, tool: &str, images: &[Image]) {
    let text = format!("From the result of {tool}:");
    let parts = images.iter().map(|image| Part::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } });
    for part in std::iter::once(Part::Text { text: &text }).chain(parts) {
        if !owed.is_empty() {
            owed.put_u8(b',');
        }
        json(owed, &part);
    }
}

const IMAGES_END: &[u8] = b"]}";

/// Writes the user message that holds the owed images.
pub(crate) fn pictures(out: &mut BytesMut, owed: &[u8]) {
    if !owed.is_empty() {
        out.put_slice(b",{\"role\":\"user\",\"content\":[");
        out.put_slice(owed);
        out.put_slice(IMAGES_END);
    }
}

fn reasoning_text(reasoning: Option<&Reasoning>, traits: ModelTraits) -> &str {
    match traits.reasoning_replay {
        ReasoningReplay::Text => reasoning.map_or("", |reasoning| &reasoning.text),
        ReasoningReplay::Opaque | ReasoningReplay::Nothing => "",
    }
}

fn opaque(reasoning: Option<&Reasoning>, traits: ModelTraits) -> Vec<&Value> {
    match traits.reasoning_replay {
        ReasoningReplay::Opaque | ReasoningReplay::Text => {
            let kept = reasoning.into_iter().flat_map(|reasoning| &reasoning.opaque);
            kept.filter(|item| !is_of_call(item)).collect()
        }
        ReasoningReplay::Nothing => Vec::new(),
    }
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Vec<WiredTool<'_>> {
    tools.iter().map(|function| WiredTool { kind: "function", function }).collect()
}

pub(crate) fn closing(id: &str, options: &RequestOptions, traits: ModelTraits) -> BodyTail {
    let limit = match traits.limit_field {
        LimitField::MaxTokens => "max_tokens",
        LimitField::MaxCompletionTokens => "max_completion_tokens",
    };
    let one_call = traits.one_call && traits.tool_format == ToolFormat::Native;
    BodyTail::new(id)
        .sampling(options, traits)
        .field(limit, options.max_output_tokens)
        .field("reasoning_effort", options.reasoning_effort.as_deref())
        .choice(&options.tool_choice, |name| json!({ "type": "function", "function": { "name": name } }))
        .field("parallel_tool_calls", one_call.then_some(false))
        .field("response_format", options.output_schema.as_ref().map(response_format))
        .field("stream", Some(options.stream))
        .field("stream_options", options.stream.then(|| json!({ "include_usage": true })))
        .with_overrides(options)
}

/// The field that constrains an answer to a JSON Schema.
pub(crate) fn response_format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "answer", "strict": true, "schema": schema } })
}

/// A part of a message with more than text.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
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
    #[serde(rename = "user")]
    UserParts {
        content: Vec<Part<'a>>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        reasoning_content: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<&'a Value>,
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
    #[serde(flatten)]
    more: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct WiredFunction<'a> {
    name: &'a str,
    arguments: std::borrow::Cow<'a, str>,
}

impl<'a> WiredCall<'a> {
    fn new(ToolCall { id, name, arguments }: &'a ToolCall, more: Option<&'a Map<String, Value>>) -> Self {
        let arguments = arguments_text(arguments);
        WiredCall { id, kind: "function", function: WiredFunction { name, arguments }, more }
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
