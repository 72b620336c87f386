//! Builds a [`Message`] in the formats of OpenAI responses and Anthropic messages; `chat` does chat
//! completions.

use serde_json::{Value, json};

use super::chat::{DELTA, split};
use super::{Message, Reply};

impl Message {
    /// Builds a stream of OpenAI responses, with encrypted reasoning if there is reasoning.
    pub fn responses(&self) -> Reply {
        let (mut events, mut output) =
            (vec![json!({"type": "response.created", "response": {}})], Vec::new());
        if !self.reasoning.is_empty() {
            let item = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": format!("sealed:{}", self.reasoning),
                              "summary": [{"type": "summary_text", "text": self.reasoning}]});
            events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
            output.push(item);
        }
        if !self.text.is_empty() {
            let number = output.len();
            events.extend(split(&self.text, DELTA).map(
                |delta| json!({"type": "response.output_text.delta", "output_index": number, "delta": delta}),
            ));
            let item = json!({"type": "message", "role": "assistant",
                              "content": [{"type": "output_text", "text": self.text}]});
            events.push(json!({"type": "response.output_item.done", "output_index": number, "item": item}));
            output.push(item);
        }
        for call in &self.calls {
            let number = output.len();
            let item = |arguments: &str| json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments});
            events.push(
                json!({"type": "response.output_item.added", "output_index": number, "item": item("")}),
            );
            events.extend(split(&call.arguments, DELTA).map(|delta| {
                json!({"type": "response.function_call_arguments.delta", "output_index": number, "delta": delta})
            }));
            let item = item(&call.arguments);
            events.push(json!({"type": "response.output_item.done", "output_index": number, "item": item}));
            output.push(item);
        }
        let usage = self.usage.map(|(input, output)| json!({"input_tokens": input, "output_tokens": output}));
        let response = json!({"status": "completed", "error": null, "output": output, "usage": usage});
        events.push(json!({"type": "response.completed", "response": response}));
        Reply::events(events.iter().map(Value::to_string))
    }

    /// Builds a stream of Anthropic messages, with a signature if there is reasoning.
    pub fn anthropic(&self) -> Reply {
        let (input, output) = self.usage.unwrap_or_default();
        let usage = json!({"input_tokens": input, "output_tokens": 1});
        let mut events =
            vec![json!({"type": "message_start", "message": {"role": "assistant", "usage": usage}})];
        let mut blocks = 0;
        let mut block = |start: Value, deltas: Vec<Value>| {
            let index = blocks;
            blocks += 1;
            events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            for delta in deltas {
                events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            events.push(json!({"type": "content_block_stop", "index": index}));
        };
        if !self.reasoning.is_empty() {
            let thoughts =
                split(&self.reasoning, DELTA).map(|part| json!({"type": "thinking_delta", "thinking": part}));
            let signature =
                json!({"type": "signature_delta", "signature": format!("signed:{}", self.reasoning)});
            block(json!({"type": "thinking", "thinking": ""}), thoughts.chain([signature]).collect());
        }
        if !self.text.is_empty() {
            let texts = split(&self.text, DELTA).map(|part| json!({"type": "text_delta", "text": part}));
            block(json!({"type": "text", "text": ""}), texts.collect());
        }
        for call in &self.calls {
            let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
            let parts = split(&call.arguments, DELTA)
                .map(|part| json!({"type": "input_json_delta", "partial_json": part}));
            block(start, parts.collect());
        }
        let reason = if self.calls.is_empty() { "end_turn" } else { "tool_use" };
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": output}}));
        events.push(json!({"type": "message_stop"}));
        Reply::events(events.iter().map(Value::to_string))
    }
}
