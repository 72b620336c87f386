//! A part of a prompt, as its author gives it. `build.rs` checks a tree of these and numbers it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::delegation::{self, DelegationPrompt};
use super::documents::Document;

/// What is said of the tools that look.
const WORKSPACE: &str = "You can look at every file of the project: list, find, search and read.";

/// The tools that look.
const LOOKING: [&str; 5] = ["list_dir", "find_files", "search_text", "read_file", "read_files"];

/// Whether a section is shown whole or by its summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Whole.
    #[default]
    Full,
    /// By its summary, until it is opened.
    Summary,
}

/// Decides something from the values a prompt is bound to.
pub type Condition<T> = Arc<dyn Fn(&dyn Fn(&str) -> Option<String>) -> T + Send + Sync>;

/// How a section is shown, fixed or decided when the prompt is bound.
#[derive(Clone)]
pub enum Visibility {
    /// Always so, until opened.
    Fixed(Shown),
    /// By the bound values.
    Decided(Condition<Shown>),
}

impl fmt::Debug for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(shown) => write!(f, "{shown:?}"),
            Self::Decided(_) => f.write_str("Decided"),
        }
    }
}

/// One section and what it holds.
#[derive(Clone)]
pub struct Section {
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) body: Body,
    pub(crate) summary: Option<String>,
    pub(crate) visibility: Visibility,
    pub(crate) enabled: Option<Condition<bool>>,
    pub(crate) params: BTreeMap<String, Value>,
    pub(crate) tools: Vec<String>,
    pub(crate) children: Vec<Section>,
    pub(crate) delegation: Option<DelegationPrompt>,
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("key", &self.key)
            .field("visibility", &self.visibility)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Template(String),
    Literal(String),
    Task,
}

impl Section {
    /// A section whose body is a template.
    pub fn text(key: impl Into<String>, title: impl Into<String>, body: impl Into<String>) -> Self {
        Self::with(key.into(), title.into(), Body::Template(body.into()))
    }

    /// A section whose body is literal text, such as a project's own file.
    pub fn literal(key: impl Into<String>, title: impl Into<String>, body: impl Into<String>) -> Self {
        Self::with(key.into(), title.into(), Body::Literal(body.into()))
    }

    /// The section that shows the task.
    pub fn task() -> Self {
        Self::with("task".to_owned(), "Task".to_owned(), Body::Task)
    }

    /// The section with the instructions of a project's AGENTS.md.
    pub fn instructions(text: &str) -> Self {
        Self::literal("agents", "The Project's Instructions (AGENTS.md)", text.trim())
    }

    /// The section with skills, each closed until it is opened.
    pub fn skills(words: impl Into<String>, skills: &[Document]) -> Self {
        let parent = Self::literal("skills", "Skills", words);
        skills.iter().fold(parent, |parent, skill| parent.child(skill.section()))
    }

    /// The section with a project in a page.
    pub fn workspace_digest(digest: impl Into<String>) -> Self {
        Self::literal("workspace-digest", "Workspace Digest", digest)
    }

    /// The section that says what can be looked at, and brings the tools for it.
    pub fn workspace() -> Self {
        let section = Self::literal("workspace", "Workspace", WORKSPACE);
        LOOKING.into_iter().fold(section, Self::tool)
    }

    /// The section that lets a model hand parts of its task over, each to a task with this prompt. It brings the tool.
    pub fn delegation(prompt: DelegationPrompt) -> Self {
        Self {
            delegation: Some(prompt),
            ..Self::literal("delegation", "Delegation", delegation::TEXT).tool(delegation::SPAWNING)
        }
    }

    /// With another body, a template.
    #[must_use]
    pub fn saying(self, body: impl Into<String>) -> Self {
        Self { body: Body::Template(body.into()), ..self }
    }

    /// Whether tasks are handed over by it or inside it.
    pub(crate) fn delegates(&self) -> bool {
        self.delegation.is_some() || self.children.iter().any(Self::delegates)
    }

    fn with(key: String, title: String, body: Body) -> Self {
        Self {
            key,
            title,
            body,
            summary: None,
            visibility: Visibility::Fixed(Shown::Full),
            enabled: None,
            params: BTreeMap::new(),
            tools: Vec::new(),
            children: Vec::new(),
            delegation: None,
        }
    }

    /// Under another key and title.
    #[must_use]
    pub fn named(self, key: impl Into<String>, title: impl Into<String>) -> Self {
        Self { key: key.into(), title: title.into(), ..self }
    }

    /// Closed until opened, showing this meanwhile.
    #[must_use]
    pub fn summarised(self, summary: impl Into<String>) -> Self {
        Self { summary: Some(summary.into()), visibility: Visibility::Fixed(Shown::Summary), ..self }
    }

    /// With a summary that is shown when `visibility` says so.
    #[must_use]
    pub fn with_summary(self, summary: impl Into<String>, visibility: Visibility) -> Self {
        Self { summary: Some(summary.into()), visibility, ..self }
    }

    /// Shown at all only when this holds.
    #[must_use]
    pub fn enabled(self, condition: Condition<bool>) -> Self {
        Self { enabled: Some(condition), ..self }
    }

    /// With a default for a placeholder.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// With a tool that is offered while the section is open.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// With a section inside.
    #[must_use]
    pub fn child(mut self, section: Section) -> Self {
        self.children.push(section);
        self
    }
}
