//! Calls as `<tool_call>…</tool_call>` with JSON or `<function=NAME>` inside, or as
//! `<function=NAME>…</function>` alone. Only at the start of a line and outside fenced blocks: anywhere else
//! the text merely mentions a call.

use serde_json::{Map, Value};

use super::{TextCall, TextCalls, call_in};

pub(super) const CALL: &str = "<tool_call>";
pub(super) const FUNCTION: &str = "<function=";

pub(super) fn find(text: &str) -> Option<TextCalls> {
    let mut found = TextCalls::default();
    let mut rest = text;
    let mut fenced = false;
    while let Some((line, after)) = next_line(rest) {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            fenced = !fenced;
        }
        let at = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        match (!fenced).then(|| element(&rest[at..])).flatten() {
            Some((call, end)) => {
                found.calls.push(call);
                rest = rest[at..][end..].trim_start();
            }
            None => {
                found.text.push_str(line);
                rest = after;
            }
        }
    }
    found.text = found.text.trim().to_owned();
    (!found.calls.is_empty()).then_some(found)
}

fn next_line(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() {
        return None;
    }
    Some(text.split_at(text.find('\n').map_or(text.len(), |end| end + 1)))
}

/// The call at the start of `text`, and its end.
fn element(text: &str) -> Option<(TextCall, usize)> {
    if let Some(inner) = text.strip_prefix(CALL) {
        let (inside, end) = until(inner, "</tool_call>");
        let inside = inside.trim();
        let call = match inside.starts_with(FUNCTION) {
            true => function(inside)?.0,
            false => json_call(inside)?,
        };
        return Some((call, CALL.len() + end));
    }
    text.starts_with(FUNCTION).then(|| function(text)).flatten()
}

/// The text before `close`, and its end; everything if the end was truncated.
fn until<'a>(text: &'a str, close: &str) -> (&'a str, usize) {
    match text.find(close) {
        Some(at) => (&text[..at], at + close.len()),
        None => (text, text.len()),
    }
}

/// Parses `<function=NAME>` with parameters or a JSON object.
fn function(text: &str) -> Option<(TextCall, usize)> {
    let after = text.strip_prefix(FUNCTION)?;
    let (name, body) = after.split_once('>')?;
    let name = name.trim().trim_matches(['"', '\'']);
    if name.is_empty() || name.len() > 64 || name.contains(char::is_whitespace) {
        return None;
    }
    let (inside, end) = until(body, "</function>");
    let arguments = match inside.trim_start().starts_with('{') {
        true => inside.trim().to_owned(),
        false => parameters(inside),
    };
    let call = TextCall { name: super::bare_name(name).to_owned(), arguments };
    Some((call, FUNCTION.len() + (after.len() - body.len()) + end))
}

/// Parses a sequence of `<parameter=KEY>VALUE</parameter>`. A value that is a number, a boolean, a list or an
/// object is used as such; anything else is a string, without the line breaks next to the tags.
fn parameters(mut text: &str) -> String {
    const OPEN: &str = "<parameter=";
    let mut fields = Map::new();
    while let Some(at) = text.find(OPEN) {
        let Some((key, after)) = text[at + OPEN.len()..].split_once('>') else { break };
        let (value, end) = until(after, "</parameter>");
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let typed = serde_json::from_str::<Value>(value.trim()).ok().filter(|typed| !typed.is_string());
        fields.insert(key.trim().to_owned(), typed.unwrap_or_else(|| value.into()));
        text = &after[end..];
    }
    Value::Object(fields).to_string()
}

/// Parses a call as JSON; invalid arguments are left to the caller to repair or reject.
pub(super) fn json_call(text: &str) -> Option<TextCall> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return call_in(&value);
    }
    let (_, after) = text.split_once("\"name\"")?;
    let name = after.split('"').nth(1).filter(|name| !name.is_empty() && name.len() <= 64)?;
    let (_, after) = ["\"arguments\"", "\"parameters\""].iter().find_map(|key| text.split_once(key))?;
    let arguments = after.trim_start().strip_prefix(':')?.trim();
    // The last brace closes the call itself.
    let arguments = arguments.strip_suffix('}').unwrap_or(arguments).trim_end();
    Some(TextCall { name: super::bare_name(name).to_owned(), arguments: arguments.to_owned() })
}
