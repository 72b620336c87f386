//! Placeholder checks: each placeholder is well-formed, declared and, in a command, a separate word; each
//! declared input is used somewhere.

use std::collections::HashSet;

use fusee_text::placeholder::{FORMS, PlaceholderSyntax, TextPart, parse};
use fusee_text::xml::{ElementId, XmlContent};
use fusee_text::{Diagnostic, Span, suggest};

use super::TemplateBuilder;
use crate::template::Template;
use crate::template::schema::is_input_name;
use crate::template::shell_quoting::{ADVICE, CommandReader};

/// Elements whose text is filled in from the inputs.
const SUBSTITUTED: &[&str] = &["instructions", "system", "description", "section", "file_paths", "criteria"];

impl TemplateBuilder<'_> {
    pub(super) fn check_placeholders(&mut self, root: ElementId, template: &Template) {
        let document = self.document;
        let mut used: HashSet<String> = HashSet::new();
        let mut open: Vec<ElementId> = document
            .children(root)
            .filter(|(_, element)| SUBSTITUTED.contains(&element.name.as_str()))
            .map(|(id, _)| id)
            .collect();
        while let Some(id) = open.pop() {
            open.extend(document.children(id).map(|(child, _)| child));
            let mut command = (document.element(id).name == "command").then(CommandReader::new);
            for content in &document.element(id).content {
                if let XmlContent::Text { text, span } = content {
                    self.check_text(text, *span, template, &mut used, command.as_mut());
                }
            }
        }
        let relevant = template.context_relevance.iter().flatten().map(|(name, _)| name.clone());
        used.extend(relevant);
        // Invalid names are reported by the schema check.
        let unused =
            template.inputs.iter().filter(|input| is_input_name(&input.name) && !used.contains(&input.name));
        let unused: Vec<&str> = unused.map(|input| input.name.as_str()).collect();
        for name in unused {
            let span = self.declaration(root, name);
            let message = format!("unused input `{name}`");
            let help = format!("use `{{{{{name}}}}}` in a text, or remove the input");
            self.problems.push(Diagnostic::warning("unused-input", self.source, span, message).help(help));
        }
    }

    fn check_text(
        &mut self,
        text: &str,
        span: Span,
        template: &Template,
        used: &mut HashSet<String>,
        mut command: Option<&mut CommandReader>,
    ) {
        let raw = self.source.slice(span);
        let mut from = 0;
        for part in parse(text, PlaceholderSyntax::Braces) {
            let name = match part {
                TextPart::Name(placeholder) => placeholder.name,
                TextPart::Text(text) => {
                    command.iter_mut().for_each(|reading| reading.pass(text));
                    continue;
                }
                TextPart::Malformed { text: wrong, .. } => {
                    command.iter_mut().for_each(|reading| reading.pass(wrong));
                    // Its name counts as used, whatever was intended.
                    used.extend(wrong.split(|c| !is_name_character(c)).map(str::to_owned));
                    let found = raw.get(from..).and_then(|rest| rest.find(wrong)).map(|at| from + at);
                    from = found.map_or(from, |at| at + wrong.len());
                    let place = found
                        .map_or(span, |at| Span::new(span.start() + at, span.start() + at + wrong.len()));
                    let message = format!("`{wrong}` is not a valid placeholder");
                    self.error("malformed-placeholder", place, message, FORMS.to_owned());
                    continue;
                }
            };
            used.insert(name.to_owned());
            // Entities shift positions in the decoded text, so the placeholder is located in the raw text.
            let found = raw.get(from..).and_then(|rest| find_placeholder(rest, name)).map(|at| from + at);
            from = found.map_or(from, |at| at + 2);
            let place = found.map_or(span, |at| {
                let end = raw[at..].find("}}").map_or(raw.len(), |length| at + length + 2);
                Span::new(span.start() + at, span.start() + end)
            });
            if let Some(reading) = command.as_deref_mut() {
                if let Some(stands) = reading.refusal() {
                    let message = format!("`{{{{{name}}}}}` is {stands} in a command");
                    self.error("quoted-placeholder", place, message, ADVICE.to_owned());
                }
                reading.pass_word();
            }
            if template.input(name).is_some() {
                continue;
            }
            let known = template.inputs.iter().map(|input| input.name.as_str());
            let help = suggest::did_you_mean(name, known).unwrap_or_else(|| {
                format!(
                    "declare it: `<input name=\"{name}\"/>` in `<inputs>`; `{{{{{{{{` is a literal `{{{{`"
                )
            });
            let message = format!("`{{{{{name}}}}}` refers to an undeclared input");
            self.error("undeclared-input", place, message, help);
        }
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Finds a placeholder of this name.
fn find_placeholder(text: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("{{").map(|at| from + at) {
        if text[at + 2..].trim_start().starts_with(name) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}
