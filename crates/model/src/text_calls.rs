//! Tool calls written as text, as many models produce them when their server does not parse them. Disabled
//! unless the model's profile enables it, because an answer may legitimately contain such text.
//!
//! [`find`] parses a complete reply; `Holdback` holds back a stream from the first sign of a call until it
//! is clear whether it is one. Each format has its parser: tags in `tagged`, fenced or bare JSON in `fenced`,
//! the channels of gpt-oss in `harmony`.

mod fenced;
mod harmony;
mod holdback;
mod tagged;

use serde_json::Value;

pub(crate) use holdback::Holdback;

use crate::{Reasoning, Reply, StopReason, ToolCall};

/// A tool call found in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextCall {
    /// Name of the tool.
    pub name: String,
    /// Arguments as JSON text, possibly invalid.
    pub arguments: String,
}

/// Result of parsing a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextCalls {
    /// Remaining visible text.
    pub text: String,
    /// Reasoning in the text.
    pub reasoning: String,
    /// Tool calls, in order.
    pub calls: Vec<TextCall>,
}

/// Parses calls of tools accepted by `known` in `text`. `None` if there is only text.
pub fn find(text: &str, known: &dyn Fn(&str) -> bool) -> Option<TextCalls> {
    harmony::find(text).or_else(|| tagged::find(text)).or_else(|| fenced::find(text, known))
}

/// Moves calls from a reply's text to its tool calls. A reply that already has tool calls was parsed by its
/// server and is not changed.
pub(crate) fn extract_calls(reply: &mut Reply, known: &dyn Fn(&str) -> bool, seed: usize) {
    if !reply.tool_calls.is_empty() {
        return;
    }
    let Some(found) = find(&reply.text, known) else { return };
    reply.text = found.text;
    if !found.reasoning.is_empty() {
        let reasoning = reply.reasoning.get_or_insert_with(Reasoning::default);
        reasoning.text.push_str(&found.reasoning);
    }
    let numbered = found.calls.into_iter().enumerate();
    reply.tool_calls.extend(numbered.map(|(index, TextCall { name, arguments })| ToolCall {
        id: format!("call_{seed}_{index}"),
        name,
        arguments,
    }));
    if !reply.tool_calls.is_empty() && reply.stop == StopReason::End {
        reply.stop = StopReason::ToolCalls;
    }
}

/// Interprets a JSON object as a call, with the field names that models use.
fn call_in(value: &Value) -> Option<TextCall> {
    let object = value.as_object()?;
    // {"type": "function", "function": {…}}, as tools appear in the request.
    if let Some(inner) = object.get("function").filter(|inner| inner.is_object()) {
        return call_in(inner);
    }
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|key| object.get(*key)?.as_str())?;
    let arguments = ["arguments", "parameters", "args", "input"].iter().find_map(|key| object.get(*key));
    let arguments = match arguments {
        None => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value @ Value::Object(_)) => value.to_string(),
        Some(_) => return None,
    };
    Some(TextCall { name: bare_name(name).to_owned(), arguments })
}

/// Removes the namespace that some models put before a name.
fn bare_name(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix("functions.").unwrap_or(name)
}

#[cfg(test)]
mod tests;
