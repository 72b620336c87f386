//! Decodes Anthropic messages into a growing reply.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::wire::more_in_call;
use crate::wire::stream::accumulator::{CallFragment, ReplyAccumulator};
use crate::wire::stream::{DeltaSink, event_data, not_a_reply};
use crate::{ErrorKind, ModelError, StopReason, Usage, error_classifier};

/// Maximum number of blocks; more are a server error.
const MAX_BLOCKS: usize = 4_096;

/// State of the blocks of one reply.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// Kind of each block, by the server's index.
    sorts: HashMap<u64, BlockKind>,
    /// Counts from the start of the reply, completed by those at its end.
    usage: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Call,
    /// Thinking, and everything else that must be returned to the server unchanged.
    Opaque,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    input: u64,
    read: u64,
    written: u64,
    output: u64,
    reasoning: u64,
}

impl Blocks {
    /// Decodes the data of one server-sent event.
    pub(crate) fn event(
        &mut self,
        reply: &mut ReplyAccumulator,
        data: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        let Some(event) = event_data::<Value>(reply, data)? else { return Ok(()) };
        match event["type"].as_str() {
            Some("message_start") => {
                reply.begin();
                self.count(&event["message"]["usage"], reply);
            }
            Some("content_block_start") => self.start(&event, reply, sink)?,
            Some("content_block_delta") => self.delta(&event, reply, sink)?,
            Some("message_delta") => {
                self.count(&event["usage"], reply);
                if let Some(word) = event["delta"]["stop_reason"].as_str() {
                    reply.stop(stop_reason(word));
                }
            }
            Some("message_stop") => reply.done(),
            Some("error") => {
                return Err(error_classifier::in_reply(data).unwrap_or_else(|| not_a_reply(data)));
            }
            // `ping`, the end of a block, and unknown events.
            Some(_) => {}
            None => {
                return Err(error_classifier::in_reply(data)
                    .filter(|_| event.get("error").is_some())
                    .unwrap_or_else(|| not_a_reply(data)));
            }
        }
        Ok(())
    }

    /// Decodes a complete reply from a server that does not stream.
    pub(crate) fn document(
        &mut self,
        reply: &mut ReplyAccumulator,
        text: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let message: Value = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) if error.is_eof() => {
                return Err(ModelError::new(ErrorKind::Cut, "the reply ended prematurely"));
            }
            Err(_) => return Err(not_a_reply(text)),
        };
        let Some(blocks) = message["content"].as_array() else {
            return Err(error_classifier::in_reply(text)
                .filter(|_| message.get("error").is_some())
                .unwrap_or_else(|| not_a_reply(text)));
        };
        for (index, block) in blocks.iter().enumerate() {
            self.open(index as u64, block, reply, sink)?;
        }
        self.count(&message["usage"], reply);
        reply.stop(stop_reason(message["stop_reason"].as_str().unwrap_or("end_turn")));
        reply.done();
        Ok(())
    }

    fn start(
        &mut self,
        event: &Value,
        reply: &mut ReplyAccumulator,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let index = event["index"].as_u64().unwrap_or(self.sorts.len() as u64);
        self.open(index, &event["content_block"], reply, sink)
    }

    fn open(
        &mut self,
        index: u64,
        block: &Value,
        reply: &mut ReplyAccumulator,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        if self.sorts.len() >= MAX_BLOCKS {
            let message = format!("the reply has more than {MAX_BLOCKS} blocks");
            return Err(ModelError::new(ErrorKind::Protocol, message));
        }
        let sort = match block["type"].as_str() {
            Some("text") => {
                reply.text(block["text"].as_str().unwrap_or_default(), sink)?;
                BlockKind::Text
            }
            Some("tool_use") => {
                // Some servers send the entire input at once.
                let input = block["input"].as_object().filter(|input| !input.is_empty());
                let arguments = input.map(|_| block["input"].to_string()).unwrap_or_default();
                let text = |key: &str| block[key].as_str().unwrap_or_default();
                let piece = CallFragment {
                    number: Some(index),
                    id: text("id"),
                    name: text("name"),
                    arguments: &arguments,
                    more: Some(&more_in_call(block, &["type", "id", "name", "input"])),
                };
                reply.call(piece, sink)?;
                BlockKind::Call
            }
            _ => {
                reply.reasoning(block["thinking"].as_str().unwrap_or_default(), sink)?;
                let mut block = block.clone();
                if let Some(fields) = block.as_object_mut() {
                    fields.insert("index".into(), index.into());
                    reply.opaque(block)?;
                }
                BlockKind::Opaque
            }
        };
        self.sorts.insert(index, sort);
        Ok(())
    }

    fn delta(
        &mut self,
        event: &Value,
        reply: &mut ReplyAccumulator,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let delta = &event["delta"];
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        let index = event["index"].as_u64().unwrap_or_default();
        match delta["type"].as_str() {
            Some("text_delta") => reply.text(text("text"), sink),
            Some("input_json_delta") => {
                let piece = CallFragment {
                    number: Some(index),
                    arguments: text("partial_json"),
                    ..CallFragment::default()
                };
                reply.call(piece, sink)
            }
            Some("thinking_delta") => {
                reply.reasoning(text("thinking"), sink)?;
                reply.opaque(json!({ "type": "thinking", "index": index, "thinking": text("thinking") }))
            }
            Some("signature_delta") => {
                reply.opaque(json!({ "type": "thinking", "index": index, "signature": text("signature") }))
            }
            _ => Ok(()),
        }
    }

    /// Updates the counts; later ones replace earlier ones. Anthropic counts cached tokens separately,
    /// whereas our input count includes them.
    fn count(&mut self, usage: &Value, reply: &mut ReplyAccumulator) {
        let Some(usage) = usage.as_object() else { return };
        let counts = &mut self.usage;
        let take = |key: &str, into: &mut u64| {
            if let Some(number) = usage.get(key).and_then(Value::as_u64) {
                *into = number;
            }
        };
        take("input_tokens", &mut counts.input);
        take("cache_read_input_tokens", &mut counts.read);
        take("cache_creation_input_tokens", &mut counts.written);
        take("output_tokens", &mut counts.output);
        take("thinking_tokens", &mut counts.reasoning);
        reply.usage(Usage {
            input_tokens: counts.input.saturating_add(counts.read).saturating_add(counts.written),
            output_tokens: counts.output,
            cached_tokens: counts.read,
            reasoning_tokens: counts.reasoning,
            cache_write_tokens: counts.written,
            held_tokens: 0,
        });
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" | "stop_sequence" => StopReason::End,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
