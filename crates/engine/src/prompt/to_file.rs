//! Serialises a prompt built in Rust to the text of a prompt file, so that it can be stored with the run's
//! settings. Conditions are evaluated when the prompt is bound; from then on the output is byte-identical.
//! `file.rs` reads it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::builder::{NodeBody, Prompt, PromptNode};
use super::delegation::{DelegationPrompt, SPAWNING};
use super::placeholder::PlaceholderText;
use super::render::{BoundPrompt, RenderProblem};
use super::section::{PromptSection, SectionBody, Visibility};
use super::task_fields::{EXPANSION, TaskFields};

/// Stands in for the one value that changes in each cycle while the text around it is written.
const CYCLE: &str = "\u{1}cycle\u{1}";

impl<T: TaskFields> Prompt<T> {
    /// Returns the prompt for this task as the text of a prompt file.
    pub fn written(&self, task: &T) -> Result<String, RenderProblem> {
        let bound = self.bind(task)?;
        let writing = FileWriter { bound: &bound, delegation: self.delegation() };
        let sections = writing.sections(bound.nodes)?;
        Ok(json!({ "sections": sections }).to_string())
    }
}

struct FileWriter<'b> {
    bound: &'b BoundPrompt<'b>,
    delegation: Option<&'b DelegationPrompt>,
}

impl FileWriter<'_> {
    fn sections(&self, nodes: &[PromptNode]) -> Result<Vec<Value>, RenderProblem> {
        let (mut written, mut at) = (Vec::new(), 0);
        while let Some(node) = nodes.get(at) {
            let inside = at + 1..at + 1 + node.inside;
            written.push(self.section(node, nodes.get(inside).unwrap_or_default())?);
            at += 1 + node.inside;
        }
        Ok(written)
    }

    fn section(&self, node: &PromptNode, inside: &[PromptNode]) -> Result<Value, RenderProblem> {
        let key = node.path.as_str().rsplit('.').next().unwrap_or_default();
        let mut section = Map::from_iter([
            ("key".to_owned(), key.into()),
            ("title".to_owned(), node.title.as_str().into()),
        ]);
        if !self.bound.is_enabled(node) {
            let mut absent = absent(node, inside);
            absent["enabled"] = false.into();
            return Ok(absent);
        }
        let mut params: BTreeMap<String, Value> = node
            .params
            .iter()
            .filter(|(name, _)| *name == EXPANSION)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        match &node.body {
            NodeBody::Task => {
                section.insert("kind".to_owned(), "task".into());
            }
            NodeBody::Text(template) => {
                section.insert("body".to_owned(), self.frozen(node, template, "text", &mut params)?.into());
            }
        }
        if let Some(summary) = &node.summary {
            section.insert("summary".to_owned(), self.frozen(node, summary, "summary", &mut params)?.into());
            let shown = self.bound.shown(node, &std::collections::BTreeSet::new());
            section.insert("visibility".to_owned(), json!(shown));
        }
        let hands_over = |tool: &&String| self.delegation.is_some() && *tool == SPAWNING;
        if let Some(delegation) = self.delegation.filter(|_| node.tools.iter().any(|tool| hands_over(&tool)))
        {
            let prompt: Result<Vec<Value>, RenderProblem> =
                delegation.sections().iter().map(write_delegated).collect();
            section.insert("kind".to_owned(), "delegation".into());
            section.insert("prompt".to_owned(), prompt?.into());
        }
        let tools: Vec<&String> = node.tools.iter().filter(|tool| !hands_over(tool)).collect();
        if !tools.is_empty() {
            section.insert("tools".to_owned(), json!(tools));
        }
        if !params.is_empty() {
            section.insert("params".to_owned(), json!(params));
        }
        if !inside.is_empty() {
            section.insert("sections".to_owned(), self.sections(inside)?.into());
        }
        Ok(section.into())
    }

    /// Returns a template that renders like this one for the task. Its text becomes parameters, which are not
    /// expanded.
    fn frozen(
        &self,
        node: &PromptNode,
        template: &PlaceholderText,
        name: &str,
        params: &mut BTreeMap<String, Value>,
    ) -> Result<String, RenderProblem> {
        let words =
            self.bound.filled(node, template, &|name| (name == EXPANSION).then(|| CYCLE.to_owned()))?;
        let mut text = String::new();
        for (n, part) in words.split(CYCLE).enumerate() {
            if n > 0 {
                text.push_str(&format!("${{{EXPANSION}}}"));
            }
            if !part.is_empty() {
                let name = self.free_name(&format!("_{name}{n}"));
                text.push_str(&format!("${{{name}}}"));
                params.insert(name, part.into());
            }
        }
        Ok(text)
    }

    /// Returns a name that no task field uses, because task fields take precedence.
    fn free_name(&self, name: &str) -> String {
        let mut name = name.to_owned();
        while self.bound.has_field(&name) {
            name.insert(0, '_');
        }
        name
    }
}

/// Writes a section that is never shown: its position and tools are kept, its text is not.
fn absent(node: &PromptNode, mut inside: &[PromptNode]) -> Value {
    let mut sections = Vec::new();
    while let Some((child, rest)) = inside.split_first() {
        let (within, rest) = rest.split_at(child.inside.min(rest.len()));
        sections.push(absent(child, within));
        inside = rest;
    }
    let key = node.path.as_str().rsplit('.').next().unwrap_or_default();
    let mut section = json!({ "key": key, "title": node.title, "tools": node.tools, "sections": sections });
    if matches!(node.body, NodeBody::Task) {
        section["kind"] = "task".into();
    }
    section
}

/// Writes a section of a delegation prompt. The task fields are not known yet, so conditions cannot be
/// evaluated.
fn write_delegated(section: &PromptSection) -> Result<Value, RenderProblem> {
    let Visibility::Fixed(shown) = section.visibility else { return Err(undecided(section, "visibility")) };
    if section.enabled.is_some() {
        return Err(undecided(section, "presence"));
    }
    let mut params = section.params.clone();
    let body = match &section.body {
        SectionBody::Template(text) => text.clone(),
        SectionBody::Literal(text) => {
            params.insert("_text".to_owned(), text.as_str().into());
            "${_text}".to_owned()
        }
        SectionBody::Task => String::new(),
    };
    let sections: Result<Vec<Value>, RenderProblem> = section.children.iter().map(write_delegated).collect();
    let mut written = json!({
        "key": section.key, "title": section.title, "body": body, "params": params, "tools": section.tools,
        "sections": sections?,
    });
    if let Some(summary) = &section.summary {
        written["summary"] = summary.as_str().into();
        written["visibility"] = json!(shown);
    }
    Ok(written)
}

fn undecided(section: &PromptSection, what: &str) -> RenderProblem {
    let message = format!("its {what} is decided by code, which cannot be stored for delegated tasks");
    RenderProblem::new("undecided_section", Some(&section.key), message)
}
