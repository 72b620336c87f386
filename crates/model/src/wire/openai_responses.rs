//! Encodes OpenAI responses. [`decode`] is the other direction.
//!
//! A reply is a list of items: reasoning, messages, calls. Encrypted items are returned unchanged and in
//! their original position, because each reasoning item belongs to the item after it.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub mod decode;

use super::body_tail::BodyTail;
use super::{DataUrl, MessagePrefix, arguments_text, json, more_of_call, without_images};
use crate::profile::{ModelTraits, ReasoningReplay};
use crate::{Image, Message, Reasoning, RequestOptions, ToolCall, ToolSpec};

pub(crate) fn opening(system: &str) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(b'{');
    if !system.is_empty() {
        out.put_slice(b"\"instructions\":");
        json(&mut out, &system);
        out.put_u8(b',');
    }
    out.put_slice(b"\"input\":[");
    out.freeze()
}

pub(crate) fn message(out: &mut BytesMut, message: &Message, before: MessagePrefix<'_>, traits: ModelTraits) {
    let mut follows = !matches!(before, MessagePrefix::Nothing);
    let mut item = |value: Item<'_>| {
        if std::mem::replace(&mut follows, true) {
            out.put_u8(b',');
        }
        json(out, &value);
    };
    match message {
        Message::User { text, images } => {
            item(Item::Message { role: "user", content: output(text, images, traits) });
        }
        Message::Tool { call_id, content, images, .. } => {
            item(Item::FunctionCallOutput { call_id, output: output(content, images, traits) });
        }
        Message::Assistant { text, reasoning, tool_calls } => {
            let mut opaque = opaque_items(reasoning.as_ref(), traits).into_iter().peekable();
            while let Some((_, thought)) = opaque.next_if(|(place, _)| *place == 0) {
                item(Item::Kept(thought));
            }
            if !text.is_empty() || tool_calls.is_empty() {
                let content = Content::Parts(vec![Part::OutputText { text }]);
                item(Item::Message { role: "assistant", content });
            }
            for (index, ToolCall { id, name, arguments }) in tool_calls.iter().enumerate() {
                let (arguments, more) = (arguments_text(arguments), more_of_call(reasoning.as_ref(), index));
                item(Item::FunctionCall { call_id: id, name, arguments, more });
                while let Some((_, thought)) = opaque.next_if(|(place, _)| *place <= index + 1) {
                    item(Item::Kept(thought));
                }
            }
        }
    }
}

fn output<'a>(content: &'a str, images: &'a [Image], traits: ModelTraits) -> Content<'a> {
    if images.is_empty() || !traits.images {
        return Content::Text(without_images(content, images));
    }
    let images = images.iter().map(|image| Part::InputImage { image_url: DataUrl(image) });
    Content::Parts(std::iter::once(Part::InputText { text: content }).chain(images).collect())
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: Cow<'a, str>,
        #[serde(flatten)]
        more: Option<&'a Map<String, Value>>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    /// An item returned as received.
    #[serde(untagged)]
    Kept(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    OutputText { text: &'a str },
    InputText { text: &'a str },
    InputImage { image_url: DataUrl<'a> },
}

/// The server's opaque items, each with the number of calls before it.
fn opaque_items(reasoning: Option<&Reasoning>, traits: ModelTraits) -> Vec<(usize, &Value)> {
    let keep = traits.reasoning_replay != ReasoningReplay::Nothing;
    let opaque = reasoning.filter(|_| keep).map_or(&[][..], |reasoning| &reasoning.opaque);
    opaque
        .iter()
        .filter_map(|kept| {
            let place = kept["after_calls"].as_u64()?;
            Some((usize::try_from(place).unwrap_or(usize::MAX), kept.get("item")?))
        })
        .collect()
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Vec<Value> {
    let wired = |ToolSpec { name, description, parameters }: &ToolSpec| {
        // Strict schemas would require every parameter.
        json!({ "type": "function", "name": name, "description": description, "parameters": parameters,
                "strict": false })
    };
    tools.iter().map(wired).collect()
}

pub(crate) fn closing(id: &str, options: &RequestOptions, traits: ModelTraits) -> BodyTail {
    let effort = options.reasoning_effort.as_deref();
    let schema = options.output_schema.as_ref().map(|schema| {
        let format = json!({ "type": "json_schema", "name": "answer", "strict": true, "schema": schema });
        json!({ "format": format })
    });
    // We keep the conversation ourselves, so the server must send its reasoning along, in encrypted form.
    let replayed = traits.reasoning_replay != ReasoningReplay::Nothing;
    BodyTail::new(id)
        .sampling(options, traits)
        .field("max_output_tokens", options.max_output_tokens)
        .field("reasoning", effort.map(|effort| json!({ "effort": effort, "summary": "auto" })))
        .choice(&options.tool_choice, |name| json!({ "type": "function", "name": name }))
        .field("parallel_tool_calls", traits.one_call.then_some(false))
        .field("text", schema)
        .field("store", Some(false))
        .field("include", replayed.then(|| json!(["reasoning.encrypted_content"])))
        .field("stream", Some(options.stream))
        .with_overrides(options)
}

#[cfg(test)]
mod tests;
