//! Placeholders `{{name}}` and `{{name.field}}`: parsed, and filled in from a request's inputs in one pass.

use serde_json::{Map, Value};

use super::schema::is_input_name;

/// Maximum length of a placeholder, in bytes between its braces.
const LONGEST: usize = 1024;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextPart<'t> {
    /// Literal text.
    Text(&'t str),
    /// A literal `{{`, written `{{{{`.
    Braces,
    /// A placeholder: its offset, the input's name, and the fields after it.
    Name { at: usize, name: &'t str, fields: Vec<&'t str> },
}

/// Splits a text into parts. Braces around anything that is not a name are text.
pub(crate) fn parts(text: &str) -> Vec<TextPart<'_>> {
    let (mut parts, mut plain, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("{{")) {
        let start = at + found;
        let after = start + 2;
        if text[after..].starts_with("{{") {
            push_text(&mut parts, &text[plain..start]);
            parts.push(TextPart::Braces);
            at = after + 2;
            plain = at;
            continue;
        }
        let end = closing(text, after);
        let named = end.and_then(|end| names(&text[after..end]).map(|names| (end, names)));
        match named {
            Some((end, (name, fields))) => {
                push_text(&mut parts, &text[plain..start]);
                parts.push(TextPart::Name { at: start, name, fields });
                at = end + 2;
                plain = at;
            }
            // Advance by one, so that a brace before a placeholder is text.
            None => at = start + 1,
        }
    }
    push_text(&mut parts, &text[plain..]);
    parts
}

/// Returns everything that begins like a placeholder with a name but is not one, including its braces.
pub(crate) fn malformed(text: &str) -> Vec<&str> {
    let mut wrong = Vec::new();
    for part in parts(text) {
        let TextPart::Text(text) = part else { continue };
        let mut at = 0;
        while let Some(start) = text.get(at..).and_then(|rest| rest.find("{{")).map(|found| at + found) {
            at = start + 2;
            let Some(end) = closing(text, at) else { continue };
            let inside = text[at..end].trim();
            let like_a_name = inside.starts_with(|c: char| c.is_alphabetic() || c == '_');
            // Other languages use double braces too, spanning lines or nested.
            if like_a_name && !inside.contains(['{', '}', '\n']) {
                wrong.push(&text[start..end + 2]);
                at = end + 2;
            }
        }
    }
    wrong
}

/// Finds the closing braces within the maximum length of a placeholder.
fn closing(text: &str, from: usize) -> Option<usize> {
    let near = text.as_bytes().get(from..)?;
    let near = &near[..near.len().min(LONGEST)];
    near.windows(2).position(|pair| pair == b"}}").map(|length| from + length)
}

fn push_text<'t>(parts: &mut Vec<TextPart<'t>>, text: &'t str) {
    if !text.is_empty() {
        parts.push(TextPart::Text(text));
    }
}

fn names(inside: &str) -> Option<(&str, Vec<&str>)> {
    let mut names = inside.trim().split('.');
    let name = names.next().filter(|name| is_input_name(name))?;
    let fields: Vec<&str> = names.collect();
    let legal = |field: &&str| !field.is_empty() && !field.contains(['{', '}', ' ', '\n']);
    fields.iter().all(legal).then_some((name, fields))
}

/// Fills in every placeholder. Names without a value are added to `missing` as written.
pub(crate) fn fill(text: &str, inputs: &Map<String, Value>, missing: &mut Vec<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            TextPart::Text(text) => filled.push_str(text),
            TextPart::Braces => filled.push_str("{{"),
            TextPart::Name { name, fields, .. } => match value_of(name, &fields, inputs) {
                Some(value) => filled.push_str(&shown(value)),
                None => {
                    let path: Vec<&str> = std::iter::once(name).chain(fields).collect();
                    let path = path.join(".");
                    if !missing.contains(&path) {
                        missing.push(path);
                    }
                }
            },
        }
    }
    filled
}

/// Returns the value that a placeholder refers to.
pub(crate) fn value_of<'v>(name: &str, fields: &[&str], inputs: &'v Map<String, Value>) -> Option<&'v Value> {
    fields.iter().try_fold(inputs.get(name)?, |value, field| match value {
        Value::Object(object) => object.get(*field),
        Value::Array(list) => field.parse::<usize>().ok().and_then(|index| list.get(index)),
        _ => None,
    })
}

/// Renders a value as text: strings unquoted, null as empty, the rest as JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
