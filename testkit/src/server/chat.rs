//! Builds chat-completions replies: deltas of text, reasoning and tool calls, usage, and the end.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::Reply;

/// Default characters per delta: small enough to split words and JSON.
pub(super) const DELTA: usize = 16;

/// One reply of the model.
#[derive(Clone, Debug, Default)]
pub struct Message {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Message {
    /// A text answer.
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// A tool call and nothing else; [`Message::and_call`] adds more.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// Adds a tool call with an id that is unique in this process.
    #[must_use]
    pub fn and_call(self, name: &str, arguments: Value) -> Self {
        static IDS: AtomicUsize = AtomicUsize::new(0);
        let id = format!("call_{:04}", IDS.fetch_add(1, Ordering::Relaxed));
        self.and_call_as(&id, name, &arguments.to_string())
    }

    /// Adds a tool call with this id and the exact text of its arguments, which need not be JSON.
    #[must_use]
    pub fn and_call_as(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.calls.push(Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() });
        self
    }

    /// Adds reasoning before the rest.
    #[must_use]
    pub fn reasoning(mut self, reasoning: &str) -> Self {
        reasoning.clone_into(&mut self.reasoning);
        self
    }

    /// Sets the reported usage.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some((input, output));
        self
    }

    /// Builds a stream with deltas of `DELTA` characters.
    pub fn stream(&self) -> Reply {
        self.stream_in_deltas_of(DELTA)
    }

    /// Builds a stream with deltas of this many characters.
    pub fn stream_in_deltas_of(&self, characters: usize) -> Reply {
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        let fragments = |text: &str| split(text, characters);
        deltas.extend(fragments(&self.reasoning).map(|part| json!({"reasoning_content": part})));
        deltas.extend(fragments(&self.text).map(|part| json!({"content": part})));
        for (index, call) in self.calls.iter().enumerate() {
            let function = json!({"name": call.name, "arguments": ""});
            let head = json!({"index": index, "id": call.id, "type": "function", "function": function});
            deltas.push(json!({"tool_calls": [head]}));
            deltas.extend(
                fragments(&call.arguments)
                    .map(|part| json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]})),
            );
        }
        let mut chunks: Vec<Value> = deltas
            .into_iter()
            .map(|delta| json!([{"index": 0, "delta": delta, "finish_reason": null}]))
            .collect();
        chunks.push(json!([{"index": 0, "delta": {}, "finish_reason": self.finish_reason()}]));
        let mut events: Vec<String> =
            chunks.into_iter().map(|choices| chunk(choices, Value::Null).to_string()).collect();
        if self.usage.is_some() {
            events.push(chunk(json!([]), self.usage_json()).to_string());
        }
        events.push("[DONE]".to_owned());
        Reply::events(events)
    }

    /// Builds a single JSON document, as sent by a server that does not stream.
    pub fn whole(&self) -> Reply {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|call| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason()});
        let mut body = chunk(json!([choice]), self.usage_json());
        body["object"] = json!("chat.completion");
        Reply::json(200, &body)
    }

    fn finish_reason(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }

    fn usage_json(&self) -> Value {
        self.usage.map_or(Value::Null, |(input, output)| {
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
        })
    }
}

impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        message.stream()
    }
}

fn chunk(choices: Value, usage: Value) -> Value {
    let mut chunk = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "scripted", "choices": choices,
    });
    if !usage.is_null() {
        chunk["usage"] = usage;
    }
    chunk
}

pub(super) fn split(text: &str, characters: usize) -> impl Iterator<Item = String> + use<> {
    let all: Vec<char> = text.chars().collect();
    let parts: Vec<String> = all.chunks(characters.max(1)).map(|part| part.iter().collect()).collect();
    parts.into_iter()
}
