//! Calls as JSON, bare or in fenced blocks. Answers may contain JSON too, so this parser is strict about where a call
//! stands: the reply must begin or end with it.
//!
//! It is lenient about the call itself, because a reply that is a call must never pass as the answer: a call with
//! additional fields, of a tool that does not exist or with broken arguments goes on to whoever answers it.

use serde_json::Value;

use super::{TextCall, TextCalls, call_in, tagged};

const FENCE: &str = "```";

pub(super) fn find(text: &str, known: &dyn Fn(&str) -> bool) -> Option<TextCalls> {
    let parts: Vec<Part<'_>> = parts(text.trim()).filter(|part| !part.inside.trim().is_empty()).collect();
    let is_whole = parts.len() == 1;
    let mut found = TextCalls::default();
    let mut is_call = Vec::with_capacity(parts.len());
    for part in &parts {
        let calls = match &part.language {
            Some(_) => block_calls(part, is_whole, known),
            None if is_whole => json_calls(part.inside, is_whole, known),
            None => None,
        };
        is_call.push(calls.is_some());
        match calls {
            Some(calls) => found.calls.extend(calls),
            None => found.text.push_str(part.source),
        }
    }
    found.text = found.text.trim().to_owned();
    (is_call.first() == Some(&true) || is_call.last() == Some(&true)).then_some(found)
}

/// Prose or a fenced block of a reply.
struct Part<'t> {
    /// The language of a block, in lower case; `None` for prose.
    language: Option<String>,
    inside: &'t str,
    /// Includes the fences of a block.
    source: &'t str,
}

impl Part<'_> {
    /// Whether a block may hold calls, by its language.
    fn holds_calls(&self) -> bool {
        self.language
            .as_deref()
            .is_some_and(|language| matches!(language, "" | "json" | "tool_call" | "tool" | "tool_code"))
    }
}

/// Splits a reply into prose and blocks. A block that is not closed was cut off and reaches to the end.
fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, after) = match block(rest) {
            Some(block) => block,
            None => {
                let end = lines(rest)
                    .skip(1)
                    .find(|(at, _)| block(&rest[*at..]).is_some())
                    .map_or(rest.len(), |(at, _)| at);
                (Part { language: None, inside: &rest[..end], source: &rest[..end] }, &rest[end..])
            }
        };
        rest = after;
        Some(part)
    })
}

/// The lines of a text with their offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

/// The block at the beginning of a text, and what follows it.
fn block(text: &str) -> Option<(Part<'_>, &str)> {
    let opened = text.trim_start_matches([' ', '\t']).strip_prefix(FENCE)?;
    let start = text.len() - opened.len();
    let language_end = opened.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(opened.len());
    let language = opened[..language_end].to_ascii_lowercase();
    let body = start + language_end;
    let mut part = Part { language: Some(language), inside: &text[body..], source: text };
    for (at, line) in lines(&text[body..]) {
        let line = line.trim_end();
        // A fence with a language opens another block. Models put the closing fence of a call on its last line, too.
        let closes = line.trim_start() == FENCE && at > 0 || part.holds_calls() && line.ends_with(FENCE);
        if closes {
            let end = body + at + line.len();
            part.inside = &text[body..end - FENCE.len()];
            part.source = &text[..end];
            return Some((part, &text[end..]));
        }
    }
    Some((part, ""))
}

fn block_calls(part: &Part<'_>, is_whole: bool, known: &dyn Fn(&str) -> bool) -> Option<Vec<TextCall>> {
    // Elsewhere, a block with tags shows how a call is written.
    let tagged = || tagged::find(part.inside).filter(|found| is_whole && found.text.is_empty());
    match part.holds_calls() {
        true => json_calls(part.inside, is_whole, known).or_else(|| tagged().map(|found| found.calls)),
        false => tagged().map(|found| found.calls),
    }
}

/// The calls in a sequence or a list of JSON objects.
fn json_calls(text: &str, is_whole: bool, known: &dyn Fn(&str) -> bool) -> Option<Vec<TextCall>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let Ok(values) = values else {
        return tagged::json_call(text.trim()).filter(|call| known(&call.name)).map(|call| vec![call]);
    };
    let mut calls = Vec::new();
    for value in &values {
        match value {
            Value::Array(list) => {
                for value in list {
                    calls.push(call(value, is_whole, known)?);
                }
            }
            value => calls.push(call(value, is_whole, known)?),
        }
    }
    (!calls.is_empty()).then_some(calls)
}

fn call(value: &Value, is_whole: bool, known: &dyn Fn(&str) -> bool) -> Option<TextCall> {
    let object = value.as_object()?;
    let single = object.iter().next().filter(|_| object.len() == 1);
    // {"read_file": {"path": …}}
    if let Some((name, arguments @ Value::Object(_))) = single
        && known(name)
    {
        return Some(TextCall { name: name.clone(), arguments: arguments.to_string() });
    }
    let has = |names: &[&str]| names.iter().any(|name| object.contains_key(*name));
    let has_arguments = has(&["arguments", "parameters", "args", "input"])
        || object.get("function").is_some_and(Value::is_object);
    let found = call_in(value).filter(|_| has_arguments)?;
    if known(&found.name) {
        return Some(found);
    }
    // A tool that does not exist: only in the exact form of a call, which no other answer is likely to have.
    let is_exact =
        object.keys().all(|key| ["name", "arguments", "parameters", "type", "id"].contains(&key.as_str()))
            && object.get("name").is_some_and(Value::is_string)
            && ["arguments", "parameters"].iter().any(|key| object.get(*key).is_some_and(Value::is_object));
    (is_whole && is_exact).then_some(found)
}
