//! Writes a template as the XML that [`Template::read`] reads, so that a template built by a program is checked,
//! journaled and listed like any other.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::{FilePaths, SectionText, Template, TemplateInput};

impl Template {
    /// The template as XML. Blank space at the ends of its texts is lost, and a line break in a default becomes a
    /// space.
    #[must_use]
    pub fn to_xml(&self) -> String {
        let mut out = Writer::default();
        let default = self.is_default.then(|| "true".to_owned());
        out.open(
            "task",
            &[
                ("name", Some(self.name.clone())),
                ("type", Some("atomic".to_owned())),
                ("subtype", self.subtype.clone()),
                ("default", default),
            ],
        );
        out.text("description", Some(&self.description));
        self.write_inputs(&mut out);
        for (name, text) in [
            ("provider", &self.provider),
            ("model", &self.model),
            ("criteria", &self.criteria),
            ("system", &self.system),
            ("instructions", &self.instructions),
            ("flow", &self.flow),
        ] {
            out.text(name, text.as_deref());
        }
        self.sections.iter().for_each(|section| out.section(section));
        if let Some(format) = &self.output_format {
            out.empty("output_format", &[("type", word(&format.kind)), ("schema", format.schema.clone())]);
        }
        self.write_context(&mut out);
        let blocked = (!self.blocked_tools.is_empty()).then(|| self.blocked_tools.join(","));
        let allowed = self.allowed_tools.as_ref().map(|names| names.join(","));
        if allowed.is_some() || blocked.is_some() {
            out.empty("tools", &[("allow", allowed), ("block", blocked)]);
        }
        let limits = [
            ("max_turns", self.limits.max_turns.map(|value| value.to_string())),
            ("max_tokens", self.limits.max_tokens.map(|value| value.to_string())),
            ("context_fraction", self.limits.context_fraction.map(|value| value.to_string())),
            ("timeout", self.limits.timeout.map(|value| value.to_string())),
        ];
        if limits.iter().any(|(_, value)| value.is_some()) {
            out.empty("limits", &limits);
        }
        for (name, set) in [("manual_xml", self.manual_xml), ("disable_reparsing", self.disable_reparsing)] {
            out.text(name, set.then_some("true"));
        }
        out.close("task");
        out.0
    }

    fn write_inputs(&self, out: &mut Writer) {
        if self.inputs.is_empty() {
            return;
        }
        out.open("inputs", &[]);
        for TemplateInput { name, kind, default, description } in &self.inputs {
            let default = default.as_ref().map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let kind = Some(kind.as_str().to_owned());
            out.open("input", &[("name", Some(name.clone())), ("type", kind), ("default", default)]);
            out.escaped(description.as_deref().unwrap_or_default(), "\n");
            out.close("input");
        }
        out.close("inputs");
    }

    fn write_context(&self, out: &mut Writer) {
        let context = &self.context_management;
        let settings = [
            ("inherit_context", context.inherit_context.and_then(|value| word(&value))),
            ("accumulate_data", context.accumulate_data.map(|value| value.to_string())),
            ("accumulation_format", context.accumulation_format.and_then(|value| word(&value))),
            ("fresh_context", context.fresh_context.and_then(|value| word(&value))),
        ];
        if settings.iter().any(|(_, value)| value.is_some()) {
            out.open("context_management", &[]);
            settings.iter().for_each(|(name, value)| out.text(name, value.as_deref()));
            out.close("context_management");
        }
        if let Some(files) = &self.file_paths {
            let (source, texts): (_, Vec<(&str, &String)>) = match files {
                FilePaths::Literal(paths) => ("literal", paths.iter().map(|path| ("path", path)).collect()),
                FilePaths::Command(text) => ("command", vec![("command", text)]),
                FilePaths::Description(text) => ("description", vec![("description", text)]),
                FilePaths::ContextDescription(text) => ("context_description", vec![("context_query", text)]),
            };
            out.open("file_paths", &[("source", Some(source.to_owned()))]);
            texts.into_iter().for_each(|(name, text)| out.text(name, Some(text)));
            out.close("file_paths");
        }
        if let Some(relevance) = &self.context_relevance {
            out.open("context_relevance", &[]);
            for (name, include) in relevance {
                out.empty("input", &[("name", Some(name.clone())), ("include", Some(include.to_string()))]);
            }
            out.close("context_relevance");
        }
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.to_xml()
    }
}

/// The name of an enumeration value.
fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

type Attributes<'a> = [(&'a str, Option<String>)];

#[derive(Default)]
struct Writer(String);

impl Writer {
    fn tag(&mut self, name: &str, attributes: &Attributes<'_>, end: &str) {
        let _ = write!(self.0, "<{name}");
        for (key, value) in attributes {
            if let Some(value) = value {
                let _ = write!(self.0, " {key}=\"");
                self.escaped(value, "&#10;");
                self.0.push('"');
            }
        }
        let _ = writeln!(self.0, "{end}");
    }

    fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
        self.tag(name, attributes, ">");
    }

    fn empty(&mut self, name: &str, attributes: &Attributes<'_>) {
        self.tag(name, attributes, "/>");
    }

    fn close(&mut self, name: &str) {
        let _ = writeln!(self.0, "</{name}>");
    }

    /// An element with text, which starts on a line of its own so that its indentation is kept.
    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.open(name, &[]);
            self.escaped(text, "\n");
            self.0.push('\n');
            self.close(name);
        }
    }

    fn section(&mut self, section: &SectionText) {
        let visibility = section.closed.then(|| "summary".to_owned());
        let attributes = [
            ("key", Some(section.key.clone())),
            ("title", Some(section.title.clone())),
            ("visibility", visibility),
        ];
        self.open("section", &attributes);
        self.escaped(&section.body, "\n");
        self.0.push('\n');
        self.text("summary", section.summary.as_deref());
        section.sections.iter().for_each(|child| self.section(child));
        self.close("section");
    }

    fn escaped(&mut self, text: &str, line_end: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\n' => self.0.push_str(line_end),
                other => self.0.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests;
