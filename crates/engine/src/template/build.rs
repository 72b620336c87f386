//! Builds a template from a valid document, with the checks that the schema table cannot express. Placeholder
//! checks are in `build/placeholders.rs`.

mod placeholders;

use std::collections::HashSet;

use fusee_text::xml::{ElementId, XmlDocument, XmlElement};
use fusee_text::{Diagnostic, Diagnostics, Source, Span, suggest};
use serde_json::Value;

use super::schema::{is_input_name, read_bool};
use super::{
    ContextOverrides, FilePaths, FreshContext, InheritContext, InputType, LimitOverrides, OutputFormat,
    OutputKind, SectionText, Template, TemplateInput, inputs,
};

/// Builds the template, and adds semantic problems.
pub(super) fn make(source: &Source, document: &XmlDocument, problems: &mut Diagnostics) -> Option<Template> {
    let root = document.root()?;
    let mut make = TemplateBuilder { source, document, problems };
    let template = make.template(root);
    make.check(root, &template);
    Some(template)
}

/// Runs only the semantic checks, on a document that does not match the schema.
pub(super) fn check_meaning(source: &Source, document: &XmlDocument, problems: &mut Diagnostics) {
    let Some(root) = document.root().filter(|root| document.element(*root).name == "task") else { return };
    let mut make = TemplateBuilder { source, document, problems };
    let template = make.template(root);
    make.check(root, &template);
}

struct TemplateBuilder<'a> {
    source: &'a Source,
    document: &'a XmlDocument,
    problems: &'a mut Diagnostics,
}

impl TemplateBuilder<'_> {
    fn error(&mut self, code: &'static str, span: Span, message: String, help: impl Into<Option<String>>) {
        self.problems.push(Diagnostic::error(code, self.source, span, message).maybe_help(help.into()));
    }

    fn child(&self, parent: ElementId, name: &str) -> Option<ElementId> {
        self.document.children(parent).find(|(_, element)| element.name == name).map(|(id, _)| id)
    }

    /// Returns the dedented text of a child element.
    fn text(&self, parent: ElementId, name: &str) -> Option<String> {
        let text = dedent(&self.document.text(self.child(parent, name)?));
        (!text.is_empty()).then_some(text)
    }

    fn flag(&self, parent: ElementId, name: &str) -> Option<bool> {
        self.text(parent, name).map(|text| read_bool(&text))
    }

    /// Parses an enumeration word.
    fn word<T: serde::de::DeserializeOwned>(&self, parent: ElementId, name: &str) -> Option<T> {
        serde_json::from_value(Value::String(self.text(parent, name)?.trim().to_owned())).ok()
    }

    fn template(&mut self, root: ElementId) -> Template {
        let task = self.document.element(root);
        let attribute = |name: &str| task.attribute(name).map(|attribute| attribute.value.trim().to_owned());
        Template {
            name: attribute("name").unwrap_or_default(),
            subtype: attribute("subtype"),
            is_default: attribute("default").is_some_and(|value| read_bool(&value)),
            description: self.text(root, "description").unwrap_or_default(),
            instructions: self.text(root, "instructions"),
            system: self.text(root, "system"),
            inputs: self.inputs(root),
            sections: self.sections(root),
            output_format: self.output_format(root),
            context_management: self.context_management(root),
            file_paths: self.file_paths(root),
            context_relevance: self.context_relevance(root),
            provider: self.text(root, "provider"),
            model: self.text(root, "model"),
            criteria: self.text(root, "criteria"),
            allowed_tools: self.tools(root, "allow"),
            blocked_tools: self.tools(root, "block").unwrap_or_default(),
            limits: self.limits(root),
            flow: self.text(root, "flow"),
            manual_xml: self.flag(root, "manual_xml").unwrap_or_default(),
            disable_reparsing: self.flag(root, "disable_reparsing").unwrap_or_default(),
        }
    }

    fn inputs(&mut self, root: ElementId) -> Vec<TemplateInput> {
        let document = self.document;
        let mut inputs: Vec<TemplateInput> = Vec::new();
        let declared = self.child(root, "inputs");
        for (id, element) in declared.into_iter().flat_map(|inputs| document.children(inputs)) {
            if element.name == "input" {
                let input = self.input(id, element);
                if inputs.iter().any(|other| other.name == input.name) {
                    let span = element.attribute("name").map_or(element.tag_span, |name| name.value_span);
                    let message = format!("the input `{}` is declared twice", input.name);
                    self.error("duplicate-input", span, message, "keep one of them".to_owned());
                } else {
                    inputs.push(input);
                }
            }
        }
        let Some(params) = document.element(root).attribute("params") else { return inputs };
        let mut names: Vec<&str> = Vec::new();
        // Invalid names are reported by the schema check.
        for name in params.value.split(',').map(str::trim).filter(|name| is_input_name(name)) {
            if names.contains(&name) {
                let message = format!("the input `{name}` is declared twice");
                self.error("duplicate-input", params.value_span, message, "keep one of them".to_owned());
            } else {
                names.push(name);
            }
        }
        if declared.is_none() {
            return names.into_iter().map(plain_input).collect();
        }
        let named: HashSet<&str> = names.iter().copied().collect();
        // A missing name is reported by the schema check.
        let listed: HashSet<&str> =
            inputs.iter().map(|input| input.name.as_str()).filter(|name| !name.is_empty()).collect();
        let mut different: Vec<&str> = named.symmetric_difference(&listed).copied().collect();
        if !different.is_empty() {
            different.sort_unstable();
            let message = format!("`params` and `<inputs>` disagree on `{}`", different.join("`, `"));
            let help = "declare the same inputs in both, or remove `params`".to_owned();
            self.error("inputs-disagree", params.value_span, message, help);
        }
        inputs
    }

    fn input(&mut self, id: ElementId, element: &XmlElement) -> TemplateInput {
        let value = |name: &str| element.attribute(name).map(|attribute| attribute.value.trim().to_owned());
        let kind = value("type").and_then(|kind| InputType::named(&kind)).unwrap_or_default();
        let default = element.attribute("default").map(|attribute| {
            let value = inputs::typed(kind, &attribute.value);
            if !kind.accepts(&value) {
                let message = format!("the default `{}` is not of type {}", attribute.value, kind.as_str());
                let help = "write lists and objects as JSON".to_owned();
                self.error("default-type", attribute.value_span, message, help);
            }
            value
        });
        let description = Some(dedent(&self.document.text(id))).filter(|text| !text.is_empty());
        TemplateInput { name: value("name").unwrap_or_default(), kind, default, description }
    }

    fn sections(&mut self, parent: ElementId) -> Vec<SectionText> {
        let document = self.document;
        let mut sections: Vec<SectionText> = Vec::new();
        for (id, element) in document.children(parent).filter(|(_, element)| element.name == "section") {
            let value =
                |name: &str| element.attribute(name).map(|attribute| attribute.value.trim().to_owned());
            let key = value("key").unwrap_or_default().to_lowercase();
            let section = SectionText {
                title: value("title").unwrap_or_else(|| key.clone()),
                closed: value("visibility").as_deref() == Some("summary"),
                summary: self.text(id, "summary"),
                body: dedent(&document.text(id)),
                sections: self.sections(id),
                key,
            };
            let span = element.attribute("key").map_or(element.tag_span, |key| key.value_span);
            if sections.iter().any(|other| other.key == section.key) {
                let message = format!("duplicate section key `{}`", section.key);
                self.error("duplicate-section", span, message, "give one of them another key".to_owned());
            }
            if section.closed && section.summary.is_none() {
                let message = format!("the section `{}` is closed and has no `<summary>`", section.key);
                let help = "add one; the model sees it until it opens the section".to_owned();
                self.error("missing-summary", element.tag_span, message, help);
            }
            sections.push(section);
        }
        sections
    }

    fn output_format(&mut self, root: ElementId) -> Option<OutputFormat> {
        let element = self.document.element(self.child(root, "output_format")?);
        let value = |name: &str| element.attribute(name).map(|attribute| attribute.value.trim().to_owned());
        let kind = OutputKind::named(&value("type")?).unwrap_or(OutputKind::Text);
        if let (OutputKind::Text, Some(schema)) = (kind, element.attribute("schema")) {
            let message = "`schema` is not allowed for a text answer".to_owned();
            let help = "set `type=\"json\"`, or remove `schema`".to_owned();
            self.error("schema-of-text", schema.name_span, message, help);
        }
        let schema = value("schema").filter(|schema| !schema.is_empty());
        if let (Some(word), Some(at)) = (&schema, element.attribute("schema")) {
            let words = OutputFormat::SCHEMA_WORDS;
            let is_path = word.contains(['/', '.']);
            if kind == OutputKind::Json && !is_path && !words.contains(&word.as_str()) {
                let all = || format!("expected {}, or the path of a JSON Schema file", words.join(", "));
                let help = suggest::did_you_mean(word, words.iter().copied()).unwrap_or_else(all);
                self.error("unknown-schema", at.value_span, format!("`{word}` is not a schema"), help);
            }
        }
        Some(OutputFormat { kind, schema })
    }

    fn context_management(&self, root: ElementId) -> ContextOverrides {
        let Some(block) = self.child(root, "context_management") else { return ContextOverrides::default() };
        ContextOverrides {
            inherit_context: self.word(block, "inherit_context"),
            accumulate_data: self.flag(block, "accumulate_data"),
            accumulation_format: self.word(block, "accumulation_format"),
            fresh_context: self.word(block, "fresh_context"),
        }
    }

    fn file_paths(&mut self, root: ElementId) -> Option<FilePaths> {
        let id = self.child(root, "file_paths")?;
        let element = self.document.element(id);
        let source = element.attribute("source").map_or("literal", |source| source.value.trim());
        let wanted = match source {
            "command" => "command",
            "description" => "description",
            "context_description" => "context_query",
            _ => "path",
        };
        self.foreign_files(id, source, wanted);
        if wanted == "path" {
            let paths = self.document.children(id).filter(|(_, child)| child.name == "path");
            let paths: Vec<String> =
                paths.map(|(path, _)| self.document.text(path).trim().to_owned()).collect();
            return Some(FilePaths::Literal(paths));
        }
        let Some(text) = self.text(id, wanted) else {
            // An empty element is reported by the schema check.
            if self.document.children(id).next().is_some() {
                let message = format!("`<file_paths source=\"{source}\">` is missing `<{wanted}>`");
                let help = format!("add `<{wanted}>…</{wanted}>`");
                self.error("missing-element", element.tag_span, message, help);
            }
            return None;
        };
        Some(match source {
            "command" => FilePaths::Command(text),
            "description" => FilePaths::Description(text),
            _ => FilePaths::ContextDescription(text),
        })
    }

    /// Reports elements that belong to another source of files.
    fn foreign_files(&mut self, id: ElementId, source: &str, wanted: &str) {
        let document = self.document;
        for (_, child) in document.children(id) {
            let meant = match child.name.as_str() {
                "path" => "literal",
                "command" => "command",
                "description" => "description",
                "context_query" => "context_description",
                _ => continue,
            };
            if child.name != wanted {
                let message =
                    format!("`<{}>` is not allowed in `<file_paths source=\"{source}\">`", child.name);
                let help = format!("set `source=\"{meant}\"`, or use `<{wanted}>`");
                self.error("foreign-element", child.name_span, message, help);
            }
        }
    }

    fn context_relevance(&self, root: ElementId) -> Option<Vec<(String, bool)>> {
        let block = self.child(root, "context_relevance")?;
        let inputs = self.document.children(block).filter(|(_, element)| element.name == "input");
        let relevance = inputs.map(|(_, element)| {
            let name = element.attribute("name").map(|name| name.value.trim().to_owned());
            let include = element.attribute("include").is_none_or(|include| read_bool(&include.value));
            (name.unwrap_or_default(), include)
        });
        Some(relevance.collect())
    }

    fn tools(&self, root: ElementId, name: &str) -> Option<Vec<String>> {
        let element = self.document.element(self.child(root, "tools")?);
        let names = element.attribute(name)?.value.split(',').map(str::trim).filter(|name| !name.is_empty());
        Some(names.map(str::to_owned).collect())
    }

    fn limits(&self, root: ElementId) -> LimitOverrides {
        let Some(id) = self.child(root, "limits") else { return LimitOverrides::default() };
        let element = self.document.element(id);
        let value =
            |name: &str| element.attribute(name).map(|value| value.value.trim().trim_start_matches('+'));
        LimitOverrides {
            max_turns: value("max_turns").and_then(|value| value.parse().ok()),
            max_tokens: value("max_tokens").and_then(|value| value.parse().ok()),
            context_fraction: value("context_fraction").and_then(|value| value.parse().ok()),
            timeout: value("timeout").and_then(|value| value.parse().ok()),
        }
    }

    fn check(&mut self, root: ElementId, template: &Template) {
        self.check_placeholders(root, template);
        self.check_relevance(root, template);
        self.check_context(root, template);
        self.check_flow(root, template);
        self.check_provider(root, template);
    }

    /// Warns about a provider without a model, which has no effect.
    fn check_provider(&mut self, root: ElementId, template: &Template) {
        if let (Some(_), None, Some(id)) = (&template.provider, &template.model, self.child(root, "provider"))
        {
            let span = self.document.element(id).tag_span;
            let message = "`<provider>` has no effect without `<model>`: the configured model is used";
            let warning = Diagnostic::warning("provider-without-model", self.source, span, message);
            self.problems.push(warning.help("add `<model>…</model>`, or remove `<provider>`"));
        }
    }

    /// Reports JSON output in `direct`, whose answer consists of files. Without a schema it is only a warning:
    /// an answer that is not JSON is kept as text.
    fn check_flow(&mut self, root: ElementId, template: &Template) {
        let json = template.output_format.as_ref().filter(|format| format.is_json());
        let (Some(format), Some("direct"), Some(flow)) =
            (json, template.flow.as_deref(), self.child(root, "flow"))
        else {
            return;
        };
        let span = self.document.element(flow).tag_span;
        let message = "the `direct` flow answers with files and cannot answer with JSON";
        let report = if format.schema.is_some() { Diagnostic::error } else { Diagnostic::warning };
        let problem = report("format-not-held", self.source, span, message);
        self.problems.push(problem.help("use another flow, or remove `<output_format>`"));
    }

    /// Returns where an input is declared.
    fn declaration(&self, root: ElementId, name: &str) -> Span {
        let element = self.document.element(root);
        let inputs = self.child(root, "inputs").into_iter().flat_map(|inputs| self.document.children(inputs));
        let declared = inputs
            .filter_map(|(_, input)| input.attribute("name"))
            .find(|attribute| attribute.value.trim() == name);
        declared.or(element.attribute("params")).map_or(element.tag_span, |attribute| attribute.value_span)
    }

    fn check_relevance(&mut self, root: ElementId, template: &Template) {
        let Some(block) = self.child(root, "context_relevance") else { return };
        let document = self.document;
        for (_, element) in document.children(block) {
            let Some(name) = element.attribute("name") else { continue };
            let word = name.value.trim();
            if element.name == "input" && template.input(word).is_none() {
                let known = template.inputs.iter().map(|input| input.name.as_str());
                let message = format!("`{word}` is not an input of this task");
                self.error("undeclared-input", name.value_span, message, suggest::did_you_mean(word, known));
            }
        }
    }

    /// Reports `fresh_context` combined with inheritance, which are mutually exclusive.
    fn check_context(&mut self, root: ElementId, template: &Template) {
        let settings = template.context_management;
        let Some(block) = self.child(root, "context_management") else { return };
        let inherits = settings.inherit_context.is_some_and(|inherit| inherit != InheritContext::None);
        if settings.fresh_context == Some(FreshContext::Enabled) && inherits {
            let place = self.child(block, "fresh_context").unwrap_or(block);
            let span = self.document.element(place).text_span();
            let message = "`fresh_context` can only be enabled if `inherit_context` is none";
            let help = "set `<inherit_context>none</inherit_context>`, or disable `fresh_context`".to_owned();
            self.error("context-conflict", span, message.to_owned(), help);
        }
    }
}

fn plain_input(name: &str) -> TemplateInput {
    TemplateInput { name: name.to_owned(), kind: InputType::String, default: None, description: None }
}

/// Removes the common indentation, and blank space at both ends.
pub(crate) fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let lines = || text.lines().skip(usize::from(!text.starts_with('\n') && !text.is_empty()));
    let common = lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    for (n, line) in text.lines().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let cut = if n == 0 { 0 } else { common.min(indent(line)) };
        out.push_str(line[cut..].trim_end());
    }
    out.trim().to_owned()
}
