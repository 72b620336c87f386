//! Wire formats. Each codec has its own folder and does no I/O: it writes messages into a buffer and is fed
//! the bytes a server sent. [`crate::http`] transfers them.
//!
//! A body consists of an opening, the messages, their end, the tools, and the closing fields. A message may
//! be left open, so that the next one can be joined to it: `Dialect::end` closes the last one in a request.
//! Bytes once written never change, so everything before that end in request n is a prefix of request n+1.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::profile::{ModelTraits, ToolFormat};
use crate::wire::stream::DeltaSink;
use crate::wire::stream::accumulator::ReplyAccumulator;
use crate::{Image, Message, ModelError, Reasoning, RequestOptions, ToolSpec};

pub mod anthropic;
mod body_tail;
pub mod openai_chat;
pub mod openai_responses;
pub mod stream;
pub mod text_protocol;

/// A wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// OpenAI chat completions, supported by almost every server.
    #[default]
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Anthropic,
}

impl Wire {
    /// Path of the endpoint, appended to the base URL.
    pub fn path(self) -> &'static str {
        match self {
            Wire::Chat => "chat/completions",
            Wire::Responses => "responses",
            Wire::Anthropic => "messages",
        }
    }
}

/// A wire format with the traits of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dialect {
    /// The format.
    #[serde(default)]
    pub wire: Wire,
    /// Traits from the model's profile.
    #[serde(default, skip_serializing_if = "ModelTraits::is_default")]
    pub traits: ModelTraits,
}

impl From<Wire> for Dialect {
    fn from(wire: Wire) -> Self {
        Dialect { wire, traits: ModelTraits::default() }
    }
}

/// The predecessor of a message in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MessagePrefix<'a> {
    /// The message is the first in the list.
    Nothing,
    /// The system prompt, in the same list.
    System,
    /// A preceding message.
    Message(&'a Message),
}

enum Codec {
    Chat,
    Plain,
    Responses,
    Anthropic,
}

impl Dialect {
    fn codec(self) -> Codec {
        match (self.wire, self.traits.tool_format) {
            (Wire::Chat, ToolFormat::Native) => Codec::Chat,
            (Wire::Chat, ToolFormat::Text | ToolFormat::Schema) => Codec::Plain,
            (Wire::Responses, _) => Codec::Responses,
            (Wire::Anthropic, _) => Codec::Anthropic,
        }
    }

    /// Bytes before the first message.
    pub(crate) fn opening(self, system: &str, tools: &[ToolSpec]) -> Bytes {
        match self.codec() {
            Codec::Chat => openai_chat::opening(system),
            Codec::Plain => openai_chat::opening(&text_protocol::system(system, tools, self.traits)),
            Codec::Responses => openai_responses::opening(system),
            Codec::Anthropic => anthropic::opening(system),
        }
    }

    /// The predecessor of the first message in its list.
    pub(crate) fn before_first(self, system: &str, tools: &[ToolSpec]) -> MessagePrefix<'static> {
        let listed = match self.codec() {
            Codec::Chat => !system.is_empty(),
            Codec::Plain => !system.is_empty() || !tools.is_empty(),
            Codec::Responses | Codec::Anthropic => false,
        };
        if listed { MessagePrefix::System } else { MessagePrefix::Nothing }
    }

    /// Whether images in tool results are sent to the model.
    pub fn takes_images(self) -> bool {
        match self.codec() {
            Codec::Chat | Codec::Responses | Codec::Anthropic => self.traits.images,
            // Results are text in a message that is left open.
            Codec::Plain => false,
        }
    }

    /// Encodes one message. Content that must follow the last of several tool results is added to `owed`; the
    /// next message of another kind, or the end of a request ([`Self::write_deferred`]), writes it.
    pub(crate) fn message(
        self,
        out: &mut BytesMut,
        message: &Message,
        before: MessagePrefix<'_>,
        owed: &mut BytesMut,
    ) {
        match self.codec() {
            Codec::Chat => openai_chat::message(out, message, before, owed, self.traits),
            Codec::Plain => text_protocol::message(out, message, before, self.traits),
            Codec::Responses => openai_responses::message(out, message, before, self.traits),
            Codec::Anthropic => anthropic::message(out, message, before, self.traits),
        }
    }

    /// Writes the content owed to the last tool results at the end of a request.
    pub(crate) fn write_deferred(self, out: &mut BytesMut, owed: &[u8]) {
        match self.codec() {
            Codec::Chat => openai_chat::pictures(out, owed),
            Codec::Plain | Codec::Responses | Codec::Anthropic => {}
        }
    }

    /// Bytes that close the last message of a request.
    pub(crate) fn end(self, last: Option<&Message>) -> &'static [u8] {
        match (self.codec(), last) {
            (_, None) | (Codec::Chat | Codec::Responses, _) => b"",
            (Codec::Plain, Some(_)) => text_protocol::END,
            (Codec::Anthropic, Some(last)) => anthropic::end(last),
        }
    }

    /// Bytes after the last message that do not depend on the options.
    pub(crate) fn tools(self, tools: &[ToolSpec]) -> Bytes {
        match self.codec() {
            Codec::Chat => list_end(&openai_chat::tools(tools)),
            Codec::Plain => list_end::<Value>(&[]),
            Codec::Responses => list_end(&openai_responses::tools(tools)),
            Codec::Anthropic => list_end(&anthropic::tools(tools, self.traits)),
        }
    }

    /// The rest of the body.
    pub(crate) fn closing(self, id: &str, options: &RequestOptions) -> Bytes {
        let closing = match self.codec() {
            Codec::Chat => openai_chat::closing(id, options, self.traits),
            Codec::Plain => text_protocol::closing(id, options, self.traits),
            Codec::Responses => openai_responses::closing(id, options, self.traits),
            Codec::Anthropic => anthropic::closing(id, options, self.traits),
        };
        closing.into_bytes()
    }
}

/// Decoder state of a codec, in addition to the growing reply.
pub(crate) enum DecodeState {
    Chat,
    Responses(openai_responses::decode::Items),
    Anthropic(anthropic::decode::Blocks),
}

impl DecodeState {
    pub(crate) fn new(wire: Wire) -> Self {
        match wire {
            Wire::Chat => DecodeState::Chat,
            Wire::Responses => DecodeState::Responses(openai_responses::decode::Items::default()),
            Wire::Anthropic => DecodeState::Anthropic(anthropic::decode::Blocks::default()),
        }
    }

    /// Decodes the data of one server-sent event.
    pub(crate) fn event(
        &mut self,
        reply: &mut ReplyAccumulator,
        data: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        match self {
            DecodeState::Chat => openai_chat::decode::event(reply, data, sink),
            DecodeState::Responses(items) => items.event(reply, data, sink),
            DecodeState::Anthropic(blocks) => blocks.event(reply, data, sink),
        }
    }

    /// Decodes a complete reply from a server that does not stream.
    pub(crate) fn document(
        &mut self,
        reply: &mut ReplyAccumulator,
        text: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        match self {
            DecodeState::Chat => openai_chat::decode::document(reply, text, sink),
            DecodeState::Responses(items) => items.document(reply, text, sink),
            DecodeState::Anthropic(blocks) => blocks.document(reply, text, sink),
        }
    }
}

/// The end of the message list, and the tools if there are any.
fn list_end<T: Serialize>(tools: &[T]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(b']');
    if !tools.is_empty() {
        out.put_slice(b",\"tools\":");
        json(&mut out, &tools);
    }
    out.freeze()
}

/// Serializes a value as JSON.
pub(crate) fn json(out: &mut BytesMut, value: &impl Serialize) {
    let from = out.len();
    // Serializing to memory cannot fail; should that ever change, the body stays valid JSON.
    if serde_json::to_writer(out.writer(), value).is_err() {
        out.truncate(from);
        out.put_slice(b"null");
    }
}

/// Marks an opaque item that holds the additional fields of a call.
const OF_CALL: &str = "of_call";

/// Wraps additional fields of the call at `index` as an opaque item, stored with the reasoning.
pub(crate) fn opaque_call_fields(index: usize, fields: Map<String, Value>) -> Value {
    serde_json::json!({ OF_CALL: index, "fields": fields })
}

/// Additional fields that the server sent for the call at `index`.
fn more_of_call(reasoning: Option<&Reasoning>, index: usize) -> Option<&Map<String, Value>> {
    let kept = reasoning?.opaque.iter().find(|kept| kept.get(OF_CALL).is_some_and(|of| *of == index))?;
    kept.get("fields")?.as_object()
}

/// Whether an opaque item holds fields of a call.
fn is_of_call(item: &Value) -> bool {
    item.get(OF_CALL).is_some()
}

/// The fields of a call except the standard ones.
fn more_in_call(call: &Value, ours: &[&str]) -> Map<String, Value> {
    let fields = call.as_object().into_iter().flatten();
    let others = fields.filter(|(name, _)| !ours.contains(&name.as_str()));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Text of a message for a model that does not accept images.
pub(crate) fn without_images<'a>(content: &'a str, images: &[Image]) -> std::borrow::Cow<'a, str> {
    match images {
        [] => content.into(),
        [_] => format!("{content}\n[1 image is left out here: this model takes none]").into(),
        several => {
            format!("{content}\n[{} images are left out here: this model takes none]", several.len()).into()
        }
    }
}

/// An image as a data URL.
#[derive(Clone, Copy)]
pub(crate) struct DataUrl<'a>(pub(crate) &'a Image);

impl Serialize for DataUrl<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("data:{};base64,{}", self.0.media_type, self.0.data))
    }
}

/// A call's arguments as a JSON text. llama.cpp, vLLM and Anthropic reject the entire request if a past call
/// has invalid JSON.
pub(crate) fn arguments_text(arguments: &str) -> std::borrow::Cow<'_, str> {
    if serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok() {
        arguments.into()
    } else if arguments.trim().is_empty() {
        "{}".into()
    } else {
        serde_json::json!({ "malformed_arguments": arguments }).to_string().into()
    }
}

#[cfg(test)]
mod tests;
