//! `{{name}}` and `{{name.field}}`: found in a text, and filled from a request's inputs in one pass.

use serde_json::{Map, Value};

use super::schema::is_input_name;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// As it stands.
    Text(&'t str),
    /// A literal `{{`, written `{{{{`.
    Braces,
    /// A placeholder: its place in the text, the input's name, and the fields after it.
    Name { at: usize, name: &'t str, fields: Vec<&'t str> },
}

/// The parts of a text, in order. Braces around anything that is no name are text.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut plain, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("{{")) {
        let start = at + found;
        let after = start + 2;
        if text[after..].starts_with("{{") {
            push_text(&mut parts, &text[plain..start]);
            parts.push(Part::Braces);
            at = after + 2;
            plain = at;
            continue;
        }
        let end = text[after..].find("}}").map(|length| after + length);
        let named = end.and_then(|end| names(&text[after..end]).map(|names| (end, names)));
        match named {
            Some((end, (name, fields))) => {
                push_text(&mut parts, &text[plain..start]);
                parts.push(Part::Name { at: start, name, fields });
                at = end + 2;
                plain = at;
            }
            // One further, so that a brace before a placeholder is text.
            None => at = start + 1,
        }
    }
    push_text(&mut parts, &text[plain..]);
    parts
}

fn push_text<'t>(parts: &mut Vec<Part<'t>>, text: &'t str) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

fn names(inside: &str) -> Option<(&str, Vec<&str>)> {
    let mut names = inside.trim().split('.');
    let name = names.next().filter(|name| is_input_name(name))?;
    let fields: Vec<&str> = names.collect();
    let legal = |field: &&str| !field.is_empty() && !field.contains(['{', '}', ' ', '\n']);
    fields.iter().all(legal).then_some((name, fields))
}

/// The text with every placeholder filled. Names without a value, as they were written, are added to `missing`.
pub(crate) fn fill(text: &str, inputs: &Map<String, Value>, missing: &mut Vec<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Braces => filled.push_str("{{"),
            Part::Name { name, fields, .. } => {
                let value = fields.iter().try_fold(inputs.get(name), |value, field| {
                    let value = value?;
                    let inner = match value {
                        Value::Object(object) => object.get(*field),
                        Value::Array(list) => field.parse::<usize>().ok().and_then(|index| list.get(index)),
                        _ => None,
                    };
                    Some(inner)
                });
                match value.flatten() {
                    Some(value) => filled.push_str(&shown(value)),
                    None => {
                        let path: Vec<&str> = std::iter::once(name).chain(fields).collect();
                        let path = path.join(".");
                        if !missing.contains(&path) {
                            missing.push(path);
                        }
                    }
                }
            }
        }
    }
    filled
}

/// A value as text: strings bare, nothing for null, the rest as JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
