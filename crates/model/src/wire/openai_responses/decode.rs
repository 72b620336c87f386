//! Decodes OpenAI responses into a growing reply. Fragments are used as they arrive; content that a server
//! sends only as a complete item, or only in its last event, is taken from there.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::wire::more_in_call;
use crate::wire::stream::accumulator::{CallFragment, ReplyAccumulator};
use crate::wire::stream::{DeltaSink, event_data, not_a_reply};
use crate::{ErrorKind, ModelError, StopReason, Usage, error_classifier};

/// Maximum number of items; more are a server error.
const MAX_ITEMS: usize = 4_096;

/// State of the items of one reply, by the server's index.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// Items of which fragments arrived.
    pieced: HashSet<u64>,
    /// Complete items.
    whole: HashSet<u64>,
    calls: u64,
    called: HashSet<u64>,
}

impl Items {
    /// Decodes the data of one server-sent event.
    pub(crate) fn event(
        &mut self,
        reply: &mut ReplyAccumulator,
        data: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        let Some(event) = event_data::<Value>(reply, data)? else { return Ok(()) };
        let Some(kind) = event["type"].as_str() else {
            return Err(error_classifier::in_reply(data)
                .filter(|_| event.get("error").is_some())
                .unwrap_or_else(|| not_a_reply(data)));
        };
        if kind == "error" {
            return Err(failure(&event));
        }
        reply.begin();
        let number = event["output_index"].as_u64().unwrap_or_default();
        let delta = event["delta"].as_str().unwrap_or_default();
        match kind {
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                self.call(number, &event["item"], "", reply, sink)
            }
            "response.output_item.done" => self.item(number, &event["item"], reply, sink),
            "response.output_text.delta" => {
                self.piece(number)?;
                reply.text(delta, sink)
            }
            "response.refusal.delta" => {
                self.piece(number)?;
                reply.refuse();
                reply.text(delta, sink)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.piece(number)?;
                reply.reasoning(delta, sink)
            }
            "response.function_call_arguments.delta" => {
                self.piece(number)?;
                reply.call(
                    CallFragment { number: Some(number), arguments: delta, ..CallFragment::default() },
                    sink,
                )
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(&event["response"], reply, sink)
            }
            _ => Ok(()),
        }
    }

    /// Decodes a complete reply from a server that does not stream.
    pub(crate) fn document(
        &mut self,
        reply: &mut ReplyAccumulator,
        text: &str,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let response: Value = match serde_json::from_str(text) {
            Ok(response) => response,
            Err(error) if error.is_eof() => {
                return Err(ModelError::new(ErrorKind::Cut, "the reply ended prematurely"));
            }
            Err(_) => return Err(not_a_reply(text)),
        };
        if !response["output"].is_array() {
            return Err(error_classifier::in_reply(text)
                .filter(|_| response.get("error").is_some())
                .unwrap_or_else(|| not_a_reply(text)));
        }
        self.end(&response, reply, sink)
    }

    /// Handles the last event: content that only it contains, the token counts, and the stop reason.
    fn end(
        &mut self,
        response: &Value,
        reply: &mut ReplyAccumulator,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        if response["error"].is_object() || response["status"] == "failed" {
            return Err(failure(response));
        }
        for (number, item) in response["output"].as_array().into_iter().flatten().enumerate() {
            self.item(number as u64, item, reply, sink)?;
        }
        if let Some(usage) = usage(&response["usage"]) {
            reply.usage(usage);
        }
        reply.stop(match response["incomplete_details"]["reason"].as_str() {
            None => StopReason::End,
            Some("max_output_tokens" | "max_tokens") => StopReason::Length,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
        });
        reply.done();
        Ok(())
    }

    /// Handles a complete item. Uses only the content that did not arrive in fragments.
    fn item(
        &mut self,
        number: u64,
        item: &Value,
        reply: &mut ReplyAccumulator,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        if self.whole.len() >= MAX_ITEMS {
            return Err(too_many());
        }
        if !self.whole.insert(number) {
            return Ok(());
        }
        let is_new = !self.pieced.contains(&number);
        match item["type"].as_str() {
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten().filter(|_| is_new) {
                    if let Some(refusal) = part["refusal"].as_str() {
                        reply.refuse();
                        reply.text(refusal, sink)?;
                    }
                    reply.text(part["text"].as_str().unwrap_or_default(), sink)?;
                }
                Ok(())
            }
            Some("function_call") => {
                let arguments = item["arguments"].as_str().filter(|_| is_new).unwrap_or_default();
                self.call(number, item, arguments, reply, sink)
            }
            _ => {
                if is_new {
                    for part in
                        item["summary"].as_array().into_iter().chain(item["content"].as_array()).flatten()
                    {
                        reply.reasoning(part["text"].as_str().unwrap_or_default(), sink)?;
                    }
                }
                // Reasoning and unknown items are returned unchanged, in their original position.
                reply.opaque(json!({ "after_calls": self.calls, "item": item }))
            }
        }
    }

    fn call(
        &mut self,
        number: u64,
        item: &Value,
        arguments: &str,
        reply: &mut ReplyAccumulator,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        if self.called.insert(number) {
            self.calls += 1;
        }
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        let more = more_in_call(item, &["type", "id", "status", "call_id", "name", "arguments"]);
        let (id, name, more) = (text("call_id"), text("name"), Some(&more));
        reply.call(CallFragment { number: Some(number), id, name, arguments, more }, sink)
    }

    fn piece(&mut self, number: u64) -> Result<(), ModelError> {
        if self.pieced.len() >= MAX_ITEMS {
            return Err(too_many());
        }
        self.pieced.insert(number);
        Ok(())
    }
}

fn too_many() -> ModelError {
    ModelError::new(ErrorKind::Protocol, format!("the reply has more than {MAX_ITEMS} items"))
}

/// The error in an error event or a failed response.
fn failure(value: &Value) -> ModelError {
    let text = match value["error"].is_object() {
        true => json!({ "error": value["error"] }).to_string(),
        false => value.to_string(),
    };
    error_classifier::in_reply(&text).unwrap_or_else(|| not_a_reply(&text))
}

fn usage(usage: &Value) -> Option<Usage> {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    usage.is_object().then(|| Usage {
        input_tokens: number(&usage["input_tokens"]),
        output_tokens: number(&usage["output_tokens"]),
        cached_tokens: number(&usage["input_tokens_details"]["cached_tokens"]),
        reasoning_tokens: number(&usage["output_tokens_details"]["reasoning_tokens"]),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests;
