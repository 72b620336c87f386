//! Calls as JSON, bare or in a fenced block. Answers may contain JSON too, so this parser is strict: the
//! reply must end with it, it must name an available tool, and have nothing but a name and arguments.

use serde_json::Value;

use super::{TextCall, TextCalls, call_in};

pub(super) fn find(text: &str, known: &dyn Fn(&str) -> bool) -> Option<TextCalls> {
    let text = text.trim();
    let (before, inside) = match last_block(text) {
        Some(block) => block,
        None if text.starts_with(['{', '[']) => ("", text),
        None => return None,
    };
    let calls = calls_in(inside, known)?;
    Some(TextCalls { text: before.trim().to_owned(), reasoning: String::new(), calls })
}

/// The block that ends the text, preceded by the text before it.
fn last_block(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_suffix("```")?.trim_end();
    let open = inner.rfind("```")?;
    let begins_line = open == 0 || inner[..open].ends_with('\n');
    // With an odd number of fences before it, this one would close another block.
    let nested = inner[..open].lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1;
    if !begins_line || nested {
        return None;
    }
    let (language, inside) = inner[open + 3..].split_once('\n')?;
    let language = language.trim().to_ascii_lowercase();
    matches!(language.as_str(), "" | "json" | "tool_call" | "tool" | "tool_code")
        .then_some((&inner[..open], inside))
}

fn calls_in(text: &str, known: &dyn Fn(&str) -> bool) -> Option<Vec<TextCall>> {
    // A sequence of objects, or a list of them.
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut calls = Vec::new();
    for value in values {
        match value.ok()? {
            Value::Array(list) => {
                for value in &list {
                    calls.push(only_call(value, known)?);
                }
            }
            value => calls.push(only_call(&value, known)?),
        }
    }
    (!calls.is_empty()).then_some(calls)
}

fn only_call(value: &Value, known: &dyn Fn(&str) -> bool) -> Option<TextCall> {
    let object = value.as_object()?;
    const WORDS: &[&str] =
        &["name", "tool", "tool_name", "function", "arguments", "parameters", "args", "input", "type", "id"];
    let plain = object.keys().all(|key| WORDS.contains(&key.as_str()));
    let has_arguments = object.len() > 1 || object.get("function").is_some_and(Value::is_object);
    call_in(value).filter(|call| plain && has_arguments && known(&call.name))
}
