//! Decodes OpenAI chat completions into a growing reply. Tolerant by design: dozens of servers interpret the
//! format differently, and a field of the wrong type must not lose the reply.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::stream::accumulator::{CallFragment, ReplyAccumulator};
use crate::wire::stream::{DeltaSink, event_data, not_a_reply};
use crate::{ErrorKind, ModelError, StopReason, Usage, error_classifier};

/// Decodes the data of one server-sent event.
pub(crate) fn event(
    reply: &mut ReplyAccumulator,
    data: &str,
    sink: &mut DeltaSink<'_>,
) -> Result<(), ModelError> {
    let data = data.trim();
    let Some(chunk) = event_data::<Chunk<'_>>(reply, data)? else { return Ok(()) };
    reply.begin();
    chunk.apply(reply, data, sink).map(|_| ())
}

/// Decodes a complete reply from a server that does not stream.
pub(crate) fn document(
    reply: &mut ReplyAccumulator,
    text: &str,
    sink: &mut DeltaSink<'_>,
) -> Result<(), ModelError> {
    let chunk: Chunk<'_> = match serde_json::from_str(text) {
        Ok(chunk) => chunk,
        Err(error) if error.is_eof() => {
            return Err(ModelError::new(ErrorKind::Cut, "the reply ended prematurely"));
        }
        Err(_) => return Err(error_classifier::in_reply(text).unwrap_or_else(|| not_a_reply(text))),
    };
    let DecodedChunk::Choice = chunk.apply(reply, text, sink)? else { return Err(not_a_reply(text)) };
    reply.done();
    Ok(())
}

enum DecodedChunk {
    Choice,
    Nothing,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    /// Groq reports usage here.
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<MessageFragment<'a>>,
    #[serde(borrow, default)]
    message: Option<MessageFragment<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct MessageFragment<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Default)]
struct Call<'a> {
    index: Option<u64>,
    id: Option<&'a RawValue>,
    function: Option<Function<'a>>,
    /// Fields outside the format: Gemini's servers send a signature here and expect it back.
    more: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Call<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CallFields)
    }
}

/// Visits the fields of a call one by one, because values buffered by `flatten` cannot be borrowed.
struct CallFields;

impl<'de> Visitor<'de> for CallFields {
    type Value = Call<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Call<'de>, A::Error> {
        let mut call = Call::default();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match &*name {
                "index" => call.index = fields.next_value()?,
                "id" => call.id = fields.next_value()?,
                "function" => call.function = fields.next_value()?,
                "type" => _ = fields.next_value::<IgnoredAny>()?,
                _ => _ = call.more.insert(name.into_owned(), fields.next_value()?),
            }
        }
        Ok(call)
    }
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl Chunk<'_> {
    fn apply(
        self,
        reply: &mut ReplyAccumulator,
        whole: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<DecodedChunk, ModelError> {
        let error_object = self.object.and_then(string).is_some_and(|object| object == "error");
        if error_object || self.error.is_some_and(|error| error.get() != "null") {
            return Err(error_classifier::in_reply(whole).unwrap_or_else(|| not_a_reply(whole)));
        }
        if let Some(usage) = self.usage.and_then(usage) {
            reply.usage(usage);
        } else if let Some(usage) = self.x_groq.and_then(groq_usage) {
            reply.usage(usage);
        }
        let mut found = DecodedChunk::Nothing;
        for choice in self.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) == 0 {
                found = DecodedChunk::Choice;
                choice.apply(reply, sink)?;
            }
        }
        Ok(found)
    }
}

impl Choice<'_> {
    fn apply(self, reply: &mut ReplyAccumulator, sink: &mut DeltaSink<'_>) -> Result<(), ModelError> {
        if let Some(piece) = self.delta.or(self.message) {
            piece.apply(reply, sink)?;
        }
        match self.finish_reason.as_deref() {
            None | Some("") => {}
            Some("error") => {
                return Err(ModelError::new(ErrorKind::Server, "the server ended the reply with an error"));
            }
            Some(word) => reply.stop(stop_reason(word)),
        }
        Ok(())
    }
}

impl MessageFragment<'_> {
    fn apply(self, reply: &mut ReplyAccumulator, sink: &mut DeltaSink<'_>) -> Result<(), ModelError> {
        // Two names for the same field; a server that sends both sends the same value.
        let thought = [self.reasoning_content, self.reasoning].into_iter().flatten().find_map(string);
        if let Some(thought) = thought {
            reply.reasoning(&thought, sink)?;
        }
        let details: Option<Vec<Value>> =
            self.reasoning_details.and_then(|raw| serde_json::from_str(raw.get()).ok());
        for detail in details.unwrap_or_default() {
            reply.opaque(detail)?;
        }
        if let Some(content) = self.content {
            match string(content) {
                Some(text) => reply.text(&text, sink)?,
                None => content_parts(content, reply, sink)?,
            }
        }
        if let Some(refusal) = self.refusal.and_then(string)
            && !refusal.is_empty()
        {
            reply.text(&refusal, sink)?;
            reply.refuse();
        }
        if let Some(calls) = self.tool_calls {
            let calls: Option<Vec<Call<'_>>> =
                serde_json::from_str(calls.get()).map_err(|_| not_a_reply(calls.get()))?;
            for call in calls.unwrap_or_default() {
                call.apply(reply, sink)?;
            }
        }
        Ok(())
    }
}

impl Call<'_> {
    fn apply(self, reply: &mut ReplyAccumulator, sink: &mut DeltaSink<'_>) -> Result<(), ModelError> {
        let id = self.id.map(string_or_number).unwrap_or_default();
        let function = self.function.unwrap_or(Function { name: None, arguments: None });
        let arguments = match function.arguments {
            None => Cow::Borrowed(""),
            Some(raw) => match string(raw) {
                Some(text) => text,
                None if raw.get() == "null" => Cow::Borrowed(""),
                // An object instead of a string; use its text.
                None => Cow::Borrowed(raw.get()),
            },
        };
        let name = function.name.unwrap_or_default();
        let (number, more) = (self.index, Some(&self.more));
        reply.call(CallFragment { number, id: &id, name: &name, arguments: &arguments, more }, sink)
    }
}

/// Decodes content as a list of parts, as sent by Mistral.
fn content_parts(
    raw: &RawValue,
    reply: &mut ReplyAccumulator,
    sink: &mut DeltaSink<'_>,
) -> Result<(), ModelError> {
    let Ok(Value::Array(parts)) = serde_json::from_str(raw.get()) else { return Ok(()) };
    for part in &parts {
        if let Some(text) = part["text"].as_str() {
            reply.text(text, sink)?;
        }
        match &part["thinking"] {
            Value::String(thought) => reply.reasoning(thought, sink)?,
            Value::Array(thoughts) => {
                for thought in thoughts {
                    reply.reasoning(thought["text"].as_str().unwrap_or_default(), sink)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

fn string_or_number(raw: &RawValue) -> Cow<'_, str> {
    match string(raw) {
        Some(text) => text,
        None if raw.get().starts_with(|first: char| first.is_ascii_digit()) => raw.get().into(),
        None => Cow::Borrowed(""),
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" => StopReason::End,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "content_filter" | "refusal" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

fn usage(raw: &RawValue) -> Option<Usage> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Wired {
        prompt_tokens: Option<u64>,
        input_tokens: Option<u64>,
        completion_tokens: Option<u64>,
        output_tokens: Option<u64>,
        prompt_tokens_details: Option<Details>,
        completion_tokens_details: Option<Details>,
        prompt_cache_hit_tokens: Option<u64>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Details {
        cached_tokens: Option<u64>,
        reasoning_tokens: Option<u64>,
    }
    let wired: Wired = serde_json::from_str(raw.get()).ok()?;
    let cached = wired.prompt_tokens_details.and_then(|details| details.cached_tokens);
    let reasoning = wired.completion_tokens_details.and_then(|details| details.reasoning_tokens);
    Some(Usage {
        input_tokens: wired.prompt_tokens.or(wired.input_tokens).unwrap_or(0),
        output_tokens: wired.completion_tokens.or(wired.output_tokens).unwrap_or(0),
        cached_tokens: cached.filter(|cached| *cached > 0).or(wired.prompt_cache_hit_tokens).unwrap_or(0),
        reasoning_tokens: reasoning.unwrap_or(0),
        ..Usage::default()
    })
}

fn groq_usage(raw: &RawValue) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Groq<'a> {
        #[serde(borrow)]
        usage: &'a RawValue,
    }
    usage(serde_json::from_str::<Groq<'_>>(raw.get()).ok()?.usage)
}

#[cfg(test)]
mod tests;
