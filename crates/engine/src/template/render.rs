//! Fills in a template's placeholders: one pass over every text that may contain them.

use fusee_text::placeholder::{Placeholder, PlaceholderSyntax, TextPart, parse};
use serde_json::{Map, Value};

use super::shell_quoting::fill_command;
use super::{FilePaths, SectionText, Template};

impl Template {
    /// Returns the template with every placeholder filled in from these inputs, or all problems.
    pub fn filled(&self, inputs: &Map<String, Value>) -> Result<Self, Vec<String>> {
        let (mut missing, mut wrong) = (Vec::new(), Vec::new());
        let mut text = |text: &str| fill(text, inputs, &mut missing);
        let mut maybe = |given: &Option<String>| given.as_deref().map(&mut text);
        let filled = Self {
            instructions: maybe(&self.instructions),
            system: maybe(&self.system),
            criteria: maybe(&self.criteria),
            description: text(&self.description),
            sections: self.sections.iter().map(|section| filled_section(section, &mut text)).collect(),
            file_paths: self.file_paths.as_ref().map(|paths| match paths {
                FilePaths::Literal(paths) => {
                    FilePaths::Literal(paths.iter().map(|path| text(path)).collect())
                }
                FilePaths::Command(command) => FilePaths::Command(fill_command(command, inputs, &mut wrong)),
                FilePaths::Description(words) => FilePaths::Description(text(words)),
                FilePaths::ContextDescription(words) => FilePaths::ContextDescription(text(words)),
            }),
            ..self.clone()
        };
        let missing = missing.iter().map(|name| format!("`{{{{{name}}}}}` has no value"));
        let messages: Vec<String> = missing.collect();
        wrong.retain(|problem| !messages.contains(problem));
        let messages = [messages, wrong].concat();
        if messages.is_empty() { Ok(filled) } else { Err(messages) }
    }
}

fn filled_section(section: &SectionText, text: &mut dyn FnMut(&str) -> String) -> SectionText {
    SectionText {
        key: section.key.clone(),
        title: text(&section.title),
        closed: section.closed,
        summary: section.summary.as_deref().map(&mut *text),
        body: text(&section.body),
        sections: section.sections.iter().map(|inner| filled_section(inner, text)).collect(),
    }
}

/// Fills in every placeholder of a text. Names without a value are added to `missing` as written.
pub fn fill(text: &str, inputs: &Map<String, Value>, missing: &mut Vec<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    for part in parse(text, PlaceholderSyntax::Braces) {
        match part {
            TextPart::Text(text) | TextPart::Malformed { text, .. } => filled.push_str(text),
            TextPart::Name(name) => match value_of(&name, inputs) {
                Some(value) => filled.push_str(&shown(value)),
                None if missing.contains(&name.path()) => {}
                None => missing.push(name.path()),
            },
        }
    }
    filled
}

/// Returns the value that a placeholder refers to.
pub(super) fn value_of<'v>(
    placeholder: &Placeholder<'_>,
    inputs: &'v Map<String, Value>,
) -> Option<&'v Value> {
    placeholder.fields.iter().try_fold(inputs.get(placeholder.name)?, |value, field| match value {
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
