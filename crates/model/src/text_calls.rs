//! Calls that come as text: what many models write where their server does not turn it into calls. Off unless a
//! model's profile says otherwise, because an answer may speak about calls too.
//!
//! [`find`] reads a whole reply; [`Holding`] keeps a stream's pieces back from the first sign of a call until it is
//! clear whether it was one. Each form has its reader: tags in `tagged`, fenced or bare JSON in `fenced`, the
//! channels of gpt-oss in `harmony`.

mod fenced;
mod harmony;
mod holding;
mod tagged;

use serde_json::Value;

pub(crate) use holding::Holding;

use crate::{Reasoning, Reply, StopReason, ToolCall};

/// A call that was found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The tool.
    pub name: String,
    /// Its arguments as JSON text, which need not be valid.
    pub arguments: String,
}

/// What a text turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What is left for the reader.
    pub text: String,
    /// What was thinking.
    pub reasoning: String,
    /// The calls, in order.
    pub calls: Vec<Spoken>,
}

/// Looks for calls in `text`, of tools that `known` knows. `None` if there is nothing but text.
pub fn find(text: &str, known: &dyn Fn(&str) -> bool) -> Option<Found> {
    harmony::find(text).or_else(|| tagged::find(text)).or_else(|| fenced::find(text, known))
}

/// Moves calls from a reply's text to its calls. A reply that has calls already is left alone: its server parsed it.
pub(crate) fn lift(reply: &mut Reply, known: &dyn Fn(&str) -> bool, seed: usize) {
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
    reply.tool_calls.extend(numbered.map(|(index, Spoken { name, arguments })| ToolCall {
        id: format!("call_{seed}_{index}"),
        name,
        arguments,
    }));
    if !reply.tool_calls.is_empty() && reply.stop == StopReason::End {
        reply.stop = StopReason::ToolCalls;
    }
}

/// The call that a JSON object stands for, in the words that models use.
fn call_in(value: &Value) -> Option<Spoken> {
    let object = value.as_object()?;
    // {"type": "function", "function": {…}}, as the request showed the tools.
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
    Some(Spoken { name: bare_name(name).to_owned(), arguments })
}

/// Some models put the name space of their training before a name.
fn bare_name(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix("functions.").unwrap_or(name)
}

#[cfg(test)]
mod tests;
