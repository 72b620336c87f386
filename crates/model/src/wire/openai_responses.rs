//! OpenAI responses: how messages look in bytes. The other direction is in [`decode`].
//!
//! A reply is a list of items here: reasoning, words, calls. What the server encrypted goes back as it came and where
//! it stood, because each piece of reasoning belongs to the item after it.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value, json};

pub mod decode;

use super::{Before, arguments_text, json};
use crate::profile::{ReasoningReplay, Traits};
use crate::{Message, Reasoning, RequestOptions, ToolCall, ToolChoice, ToolSpec};

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

pub(crate) fn message(out: &mut BytesMut, message: &Message, before: Before<'_>, traits: Traits) {
    let mut follows = !matches!(before, Before::Nothing);
    let mut item = |value: &Value| {
        if std::mem::replace(&mut follows, true) {
            out.put_u8(b',');
        }
        json(out, value);
    };
    match message {
        Message::User { text } => item(&json!({ "type": "message", "role": "user", "content": text })),
        Message::Tool { call_id, content, .. } => {
            item(&json!({ "type": "function_call_output", "call_id": call_id, "output": content }));
        }
        Message::Assistant { text, reasoning, tool_calls } => {
            let mut opaque = placed(reasoning.as_ref(), traits).into_iter().peekable();
            while let Some((_, thought)) = opaque.next_if(|(place, _)| *place == 0) {
                item(thought);
            }
            if !text.is_empty() || tool_calls.is_empty() {
                let content = json!([{ "type": "output_text", "text": text }]);
                item(&json!({ "type": "message", "role": "assistant", "content": content }));
            }
            for (index, call) in tool_calls.iter().enumerate() {
                item(&wired_call(call));
                while let Some((_, thought)) = opaque.next_if(|(place, _)| *place <= index + 1) {
                    item(thought);
                }
            }
        }
    }
}

/// The server's items and after how many calls each stood.
fn placed(reasoning: Option<&Reasoning>, traits: Traits) -> Vec<(usize, &Value)> {
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

fn wired_call(call: &ToolCall) -> Value {
    let arguments = arguments_text(&call.arguments);
    json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments })
}

pub(crate) fn tools(tools: &[ToolSpec]) -> Vec<Value> {
    let wired = |ToolSpec { name, description, parameters }: &ToolSpec| {
        // Strict schemas would want every parameter to be required.
        json!({ "type": "function", "name": name, "description": description, "parameters": parameters,
                "strict": false })
    };
    tools.iter().map(wired).collect()
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
    fields.extend(max_output_tokens.map(|value| ("max_output_tokens".into(), value.into())));
    if let Some(effort) = reasoning_effort {
        fields.insert("reasoning".into(), json!({ "effort": effort, "summary": "auto" }));
    }
    fields.extend(choice(tool_choice).map(|value| ("tool_choice".into(), value)));
    if traits.one_call {
        fields.insert("parallel_tool_calls".into(), false.into());
    }
    if let Some(schema) = output_schema {
        let format = json!({ "type": "json_schema", "name": "answer", "strict": true, "schema": schema });
        fields.insert("text".into(), json!({ "format": format }));
    }
    // The conversation is ours to keep. Reasoning must then come along, and comes encrypted.
    fields.insert("store".into(), false.into());
    if traits.reasoning_replay != ReasoningReplay::Nothing {
        fields.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    fields.insert("stream".into(), (*stream).into());
    fields.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));
    fields
}

fn choice(tool_choice: &ToolChoice) -> Option<Value> {
    match tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::Nothing => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({ "type": "function", "name": name })),
    }
}

#[cfg(test)]
mod tests;
