//! Checks a document against the schema table: reports every violation with its position and a suggested fix.
//!
//! Checks that the table cannot express (declared placeholders, matching defaults, …) are in `build.rs`.

use std::collections::HashMap;

use fusee_text::xml::{ElementId, XmlAttribute, XmlContent as Piece, XmlDocument, XmlElement};
use fusee_text::{Diagnostic, Diagnostics, Source, suggest};

use super::schema::{AttributeRule, ElementContent, ElementRule, Occurs, TASK, ValueKind};

/// Checks a document. `whole` means that it was parsed without errors, so that a missing element is really
/// missing.
pub(crate) fn check(source: &Source, document: &XmlDocument, whole: bool, problems: &mut Diagnostics) {
    let Some(root) = document.root() else { return };
    let element = document.element(root);
    let mut check = TemplateChecker { source, document, whole, problems };
    if element.name != TASK.name {
        let message = format!("the root element must be `<task>`, found `<{}>`", element.name);
        check.error("unknown-root", element.name_span, message, None);
        return;
    }
    // A stack instead of recursion: sections nest, and the parser limits the depth.
    let mut open = vec![(root, &TASK)];
    while let Some((id, rule)) = open.pop() {
        check.attributes(document.element(id), rule);
        check.content(id, rule);
        for (child, element) in document.children(id) {
            if let Some(rule) = rule.child(&element.name) {
                open.push((child, rule));
            }
        }
    }
}

struct TemplateChecker<'a> {
    source: &'a Source,
    document: &'a XmlDocument,
    whole: bool,
    problems: &'a mut Diagnostics,
}

impl TemplateChecker<'_> {
    fn error(&mut self, code: &'static str, span: fusee_text::Span, message: String, help: Option<String>) {
        self.problems.push(Diagnostic::error(code, self.source, span, message).maybe_help(help));
    }

    fn warning(&mut self, code: &'static str, span: fusee_text::Span, message: String, help: Option<String>) {
        self.problems.push(Diagnostic::warning(code, self.source, span, message).maybe_help(help));
    }

    fn attributes(&mut self, element: &XmlElement, rule: &ElementRule) {
        for attribute in &element.attributes {
            match rule.attribute(&attribute.name) {
                Some(known) => self.value(attribute, known, rule),
                None if attribute.name == "xmlns" && !attribute.value.is_empty() => {
                    let message = format!("templates must not use a namespace, found `{}`", attribute.value);
                    self.error("namespace", attribute.name_span, message, Some("remove `xmlns`".to_owned()));
                }
                // Attributes of other vocabularies, such as a schema location, are ignored.
                None if attribute.name.contains(':') || attribute.name == "xmlns" => {}
                None => {
                    let known = rule.attributes.iter().map(|attribute| attribute.name);
                    let help = suggest::did_you_mean(&attribute.name, known).or_else(|| listed(rule));
                    let message = format!("`<{}>` has no attribute `{}`", element.name, attribute.name);
                    self.warning("unknown-attribute", attribute.name_span, message, help);
                }
            }
        }
        let missing =
            rule.attributes.iter().filter(|known| known.required && element.attribute(known.name).is_none());
        for known in missing {
            let message = format!("`<{}>` is missing the attribute `{}`", element.name, known.name);
            let help = format!("add `{}=\"…\"`: {}", known.name, known.kind.expects());
            self.error("missing-attribute", element.tag_span, message, Some(help));
        }
    }

    fn value(&mut self, attribute: &XmlAttribute, known: &AttributeRule, rule: &ElementRule) {
        if known.kind.accepts(&attribute.value) {
            return;
        }
        let (name, value) = (&attribute.name, &attribute.value);
        let message = format!("invalid value `{value}` for `{name}` of `<{}>`", rule.name);
        let mut help = expectation(value, known.kind);
        if rule.name == TASK.name && name == "type" {
            help.push_str("; tasks are composed in workflows (`.fusee` files), not in templates");
        }
        self.error("invalid-value", attribute.value_span, message, Some(help));
    }

    fn content(&mut self, id: ElementId, rule: &ElementRule) {
        let element = self.document.element(id);
        match rule.content {
            ElementContent::Elements(_) | ElementContent::SomeElements(_) => {
                self.stray_text(element);
                self.children(id, rule);
            }
            ElementContent::Mixed(_) => self.children(id, rule),
            ElementContent::Text | ElementContent::Note | ElementContent::Value(_) => self.text(id, rule),
        }
    }

    fn stray_text(&mut self, element: &XmlElement) {
        for piece in &element.content {
            if let Piece::Text { text, span } = piece
                && !text.trim().is_empty()
            {
                let raw = self.source.slice(*span);
                let inner = raw.trim();
                let start = span.start() + raw.find(inner).unwrap_or(0);
                let place = fusee_text::Span::new(start, start + inner.len());
                let shown: String = inner.chars().take(30).collect();
                let message = format!("unexpected text in `<{}>`: `{shown}`", element.name);
                let help = "put it into an element, such as `<instructions>`".to_owned();
                self.error("stray-text", place, message, Some(help));
            }
        }
    }

    fn children(&mut self, id: ElementId, rule: &ElementRule) {
        let element = self.document.element(id);
        let mut counted: HashMap<&str, usize> = HashMap::new();
        for (_, child) in self.document.children(id) {
            let Some(known) = rule.child(&child.name) else {
                let names = rule.children().iter().map(|child| child.name);
                let help = suggest::did_you_mean(&child.name, names.clone()).unwrap_or_else(|| {
                    format!("`<{}>` can contain {}", rule.name, names.collect::<Vec<_>>().join(", "))
                });
                let message =
                    format!("unknown element `<{}>` in `<{}>` is ignored", child.name, element.name);
                self.warning("unknown-element", child.name_span, message, Some(help));
                continue;
            };
            let count = counted.entry(known.name).or_default();
            *count += 1;
            if *count > 1 && known.occurs != Occurs::Many {
                let message = format!("duplicate `<{}>` in `<{}>`", child.name, element.name);
                self.error(
                    "duplicate-element",
                    child.name_span,
                    message,
                    Some("keep one of them".to_owned()),
                );
            }
        }
        if !self.whole {
            return;
        }
        if matches!(rule.content, ElementContent::SomeElements(_)) && counted.is_empty() {
            let names: Vec<String> =
                rule.children().iter().map(|child| format!("`<{}>`", child.name)).collect();
            let help = format!("add {}, or remove `<{}>`", names.join(" or "), rule.name);
            let message = format!("`<{}>` is empty", element.name);
            self.error("empty-element", element.tag_span, message, Some(help));
        }
        for known in rule.children() {
            if known.occurs == Occurs::Required && !counted.contains_key(known.name) {
                let message = format!("`<{}>` is missing `<{}>`", element.name, known.name);
                let help = format!("add `<{0}>…</{0}>`: {1}", known.name, known.about);
                self.error("missing-element", element.tag_span, message, Some(help));
            }
        }
        if rule.name == TASK.name && !counted.contains_key("instructions") && !counted.contains_key("section")
        {
            let message = "`<task>` has neither `<instructions>` nor a `<section>`".to_owned();
            let help = "add `<instructions>…</instructions>`: the instructions for the model".to_owned();
            self.error("missing-element", element.tag_span, message, Some(help));
        }
    }

    fn text(&mut self, id: ElementId, rule: &ElementRule) {
        let element = self.document.element(id);
        for (_, child) in self.document.children(id) {
            let message = format!("`<{}>` can only contain text, found `<{}>`", element.name, child.name);
            let help = "write `&lt;` for `<`, or put the text into `<![CDATA[ … ]]>`".to_owned();
            self.error("markup-in-text", child.tag_span, message, Some(help));
        }
        let text = self.document.text(id);
        match rule.content {
            ElementContent::Text if text.trim().is_empty() && self.document.children(id).next().is_none() => {
                let message = format!("`<{}>` is empty", element.name);
                self.error("empty-element", element.tag_span, message, Some(rule.about.to_owned()));
            }
            ElementContent::Value(kind) if !kind.accepts(&text) => {
                let message = format!("invalid value `{}` for `<{}>`", text.trim(), element.name);
                let help = expectation(text.trim(), kind);
                self.error("invalid-value", element.text_span(), message, Some(help));
            }
            _ => {}
        }
    }
}

/// Describes the expected value, with the closest known word first.
fn expectation(value: &str, kind: ValueKind) -> String {
    let nearest = match kind {
        ValueKind::OneOf(words) => suggest::did_you_mean(value, words.iter().copied()),
        ValueKind::InputNames if value.split(',').any(|name| name.trim().is_empty()) => {
            Some("empty name: remove the extra comma.".to_owned())
        }
        _ => None,
    };
    match nearest {
        Some(nearest) => format!("{nearest} Expected {}", kind.expects()),
        None => format!("expected {}", kind.expects()),
    }
}

fn listed(rule: &ElementRule) -> Option<String> {
    let names: Vec<&str> = rule.attributes.iter().map(|attribute| attribute.name).collect();
    (!names.is_empty()).then(|| format!("known attributes: {}", names.join(", ")))
}
