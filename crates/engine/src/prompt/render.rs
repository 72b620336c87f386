//! Rendering: a pure function from a bound prompt and its open sections to the bytes the model receives.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::builder::{NodeBody, PromptNode};
use super::section::{SectionDisplay, Visibility};
use super::task_fields::{AnyTask, EXPANSION, Fields, text};
use super::task_section::TaskSection;

/// A prompt bound to a task, ready to be rendered.
#[derive(Clone)]
pub struct BoundPrompt<'p> {
    pub(crate) nodes: &'p [PromptNode],
    fields: Fields,
}

/// Error while binding or rendering a prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", section_path.as_ref().map(|at| format!("section `{at}`: ")).unwrap_or_default())]
pub struct RenderProblem {
    /// Stable code of the problem kind.
    pub code: &'static str,
    /// Description of the problem.
    pub message: String,
    /// Path of the affected section, if any.
    pub section_path: Option<String>,
}

impl RenderProblem {
    pub(crate) fn new(code: &'static str, at: Option<&str>, message: String) -> Self {
        Self { code, message, section_path: at.map(str::to_owned) }
    }
}

/// A rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedText {
    /// The text for the model.
    pub text: String,
    /// Tools of open sections, followed by the tools that open or read the others.
    pub tools: Vec<String>,
    /// The visible sections, in order.
    pub sections: Vec<RenderedSection>,
    /// Paths of all closed sections, including those inside closed ones.
    pub closed: Vec<String>,
}

/// One visible section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedSection {
    /// Path of the section.
    pub path: String,
    /// Section number.
    pub number: String,
    /// Whether it is shown in full or as a summary.
    pub shown: SectionDisplay,
    /// Its own text, without its children.
    pub text: Arc<str>,
    /// Index of the section in the flattened tree.
    at: usize,
}

impl<'p> BoundPrompt<'p> {
    pub(crate) fn new(nodes: &'p [PromptNode], fields: Fields) -> Self {
        Self { nodes, fields }
    }

    /// Sets the instructions for the cycle after an expansion.
    #[must_use]
    pub fn expanded(self, instructions: String) -> Self {
        Self { fields: self.fields.expanded(instructions), ..self }
    }

    /// Renders the prompt; `open` holds the paths of opened sections.
    pub fn render(&self, open: &BTreeSet<String>) -> Result<RenderedText, RenderProblem> {
        self.render_from(&[], open)
    }

    /// Renders the cycle after an expansion, reusing the text of unchanged full sections. `before` must come
    /// from the same prompt and, apart from the expansion instructions, the same task.
    pub fn render_after(
        &self,
        before: &RenderedText,
        open: &BTreeSet<String>,
    ) -> Result<RenderedText, RenderProblem> {
        self.render_from(&before.sections, open)
    }

    fn render_from(
        &self,
        before: &[RenderedSection],
        open: &BTreeSet<String>,
    ) -> Result<RenderedText, RenderProblem> {
        let mut before = before.iter().peekable();
        let mut rendered =
            RenderedText { text: String::new(), tools: Vec::new(), sections: Vec::new(), closed: Vec::new() };
        let mut readable = false;
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            if !self.is_enabled(node) {
                at += 1 + node.inside;
                continue;
            }
            let shown = self.shown(node, open);
            while before.next_if(|earlier| earlier.at < at).is_some() {}
            let earlier = before.next_if(|earlier| earlier.at == at);
            let own: Arc<str> = match earlier.filter(|earlier| earlier.shown == shown && stays(node, shown)) {
                Some(earlier) => Arc::clone(&earlier.text),
                None => self.section(node, shown, at)?.into(),
            };
            if !rendered.text.is_empty() {
                rendered.text.push_str("\n\n");
            }
            rendered.text.push_str(&own);
            let (path, number) = (node.path.to_string(), node.number.clone());
            rendered.sections.push(RenderedSection { path, number, shown, text: own, at });
            at += 1;
            match shown {
                SectionDisplay::Full => rendered.tools.extend(node.tools.iter().cloned()),
                SectionDisplay::Summary => {
                    let inside = &self.nodes[at..at + node.inside];
                    readable |= node.tools.is_empty() && inside.iter().all(|node| node.tools.is_empty());
                    rendered.closed.push(node.path.to_string());
                    let hidden =
                        self.enabled(inside).filter(|node| self.shown(node, open) == SectionDisplay::Summary);
                    rendered.closed.extend(hidden.map(|node| node.path.to_string()));
                    at += node.inside;
                }
            }
        }
        if readable {
            rendered.tools.push("read_section".to_owned());
        }
        if !rendered.closed.is_empty() {
            rendered.tools.push("open_sections".to_owned());
        }
        Ok(rendered)
    }

    /// Filters the enabled nodes of a slice; the descendants of disabled nodes are skipped.
    pub(super) fn enabled<'n>(&self, nodes: &'n [PromptNode]) -> impl Iterator<Item = &'n PromptNode> {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let node = nodes.get(at)?;
                if self.is_enabled(node) {
                    at += 1;
                    return Some(node);
                }
                at += 1 + node.inside;
            }
        })
    }

    /// Returns the task the prompt is bound to.
    pub(crate) fn fields(&self) -> AnyTask {
        self.fields.to_task()
    }

    /// Checks that a section is enabled, closed, and provides no tools. The error tells the model what to do
    /// instead.
    pub(crate) fn may_read(&self, path: &str, open: &BTreeSet<String>) -> Result<(), RenderProblem> {
        let path = super::section_key::normalise_path(path);
        let Some(at) = self.nodes.iter().position(|node| node.path.as_str() == path) else {
            // `read_section` reports unknown paths, with suggestions.
            return Ok(());
        };
        let node = &self.nodes[at];
        let problem = |code, message: &str| Err(RenderProblem::new(code, Some(&path), message.to_owned()));
        let around =
            |other: &&PromptNode| node.path.ancestors().any(|ancestor| ancestor == other.path.as_str());
        let around: Vec<&PromptNode> = self.nodes[..at].iter().filter(around).collect();
        if !around.iter().copied().chain([node]).all(|node| self.is_enabled(node)) {
            return problem("unknown_section", "there is no such section now");
        }
        if around.iter().copied().chain([node]).all(|node| self.shown(node, open) == SectionDisplay::Full) {
            return problem("already_open", "it is shown in full in the prompt already");
        }
        if self.nodes[at..=at + node.inside].iter().any(|node| !node.tools.is_empty()) {
            return problem("section_with_tools", "it brings tools: open it with `open_sections`");
        }
        Ok(())
    }

    /// Returns the full text of a section and its descendants, as if it were open.
    pub fn read_section(&self, path: &str) -> Result<String, RenderProblem> {
        let path = super::section_key::normalise_path(path);
        let at = self.nodes.iter().position(|node| node.path.as_str() == path);
        let Some(at) = at else {
            let known = self.nodes.iter().map(|node| node.path.as_str());
            let near = fusee_text::suggest::nearest(&path, known);
            let hint = if near.is_empty() {
                String::new()
            } else {
                format!("; did you mean `{}`?", near.join("` or `"))
            };
            return Err(RenderProblem::new(
                "unknown_section",
                Some(&path),
                format!("there is no such section{hint}"),
            ));
        };
        let mut parts = Vec::new();
        let mut here = at;
        while here <= at + self.nodes[at].inside {
            let node = &self.nodes[here];
            if self.is_enabled(node) {
                parts.push(self.section(node, SectionDisplay::Full, here)?);
                here += 1;
            } else {
                here += 1 + node.inside;
            }
        }
        Ok(parts.join("\n\n"))
    }

    pub(crate) fn shown(&self, node: &PromptNode, open: &BTreeSet<String>) -> SectionDisplay {
        if open.contains(node.path.as_str()) {
            return SectionDisplay::Full;
        }
        match &node.visibility {
            Visibility::Fixed(shown) => *shown,
            Visibility::Decided(decide) => decide(&|name| self.value(node, name)),
        }
    }

    pub(crate) fn is_enabled(&self, node: &PromptNode) -> bool {
        node.enabled.as_ref().is_none_or(|condition| condition(&|name| self.value(node, name)))
    }

    fn value(&self, node: &PromptNode, name: &str) -> Option<String> {
        self.fields.value(name).or_else(|| node.params.get(name).map(text))
    }

    pub(super) fn section(
        &self,
        node: &PromptNode,
        shown: SectionDisplay,
        at: usize,
    ) -> Result<String, RenderProblem> {
        let heading = format!("{} {}. {}", "#".repeat(node.depth + 2), node.number, node.title);
        let body = match (shown, &node.body, &node.summary) {
            (SectionDisplay::Summary, _, Some(summary)) => {
                let summary = self.fill(node, summary)?;
                format!("{summary}\n\n---\n{}", self.invitation(node, at))
            }
            (_, NodeBody::Task, _) => TaskSection::render(&self.fields),
            (_, NodeBody::Text(template), _) => self.fill(node, template)?,
        };
        Ok(if body.is_empty() { heading } else { format!("{heading}\n\n{body}") })
    }

    /// Whether the task has a field of this name.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.fields.value(name).is_some()
    }

    fn fill(
        &self,
        node: &PromptNode,
        template: &super::placeholder::PlaceholderText,
    ) -> Result<String, RenderProblem> {
        self.filled(node, template, &|_| None)
    }

    /// Fills a template; values from `other` take precedence.
    pub(super) fn filled(
        &self,
        node: &PromptNode,
        template: &super::placeholder::PlaceholderText,
        other: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, RenderProblem> {
        template.fill(&|name| other(name).or_else(|| self.value(node, name))).map_err(|name| {
            let message = format!("`${{{name}}}` has no value: set it in `params` or as a task field");
            RenderProblem::new("missing_value", Some(node.path.as_str()), message)
        })
    }

    /// Returns the line that tells the model how to open a closed section and which children it has.
    fn invitation(&self, node: &PromptNode, at: usize) -> String {
        let mut inside = Vec::new();
        let mut here = at + 1;
        while here <= at + node.inside {
            let child = &self.nodes[here];
            if self.is_enabled(child) {
                inside.push(format!("`{}`", child.path));
            }
            here += 1 + child.inside;
        }
        let behind =
            if inside.is_empty() { String::new() } else { format!(" Inside: {}.", inside.join(", ")) };
        format!("[Summary only. To see all of it, call `open_sections` with key `{}`.{behind}]", node.path)
    }
}

/// Whether a section's text stays the same after an expansion if it is shown the same way. Summaries are
/// always rendered again, because their last line names the enabled children.
fn stays(node: &PromptNode, shown: SectionDisplay) -> bool {
    match (&node.body, shown) {
        (NodeBody::Text(template), SectionDisplay::Full) => template.names().all(|name| name != EXPANSION),
        _ => false,
    }
}
