//! A prompt section as its author writes it. `builder.rs` checks and numbers a tree of these.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::delegation::{self, DelegationPrompt};
use super::documents::Document;

/// Text of the workspace section.
const WORKSPACE: &str = "You can look at every file of the project: list, find, search and read.";

/// The read-only tools of the workspace section.
const LOOKING: [&str; 5] = ["list_dir", "find_files", "search_text", "read_file", "read_files"];

/// Whether a section is shown in full or as a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionDisplay {
    /// The full text.
    #[default]
    Full,
    /// Summary only, until the section is opened.
    Summary,
}

/// Function that decides something from the values a prompt is bound to.
pub type Condition<T> = Arc<dyn Fn(&dyn Fn(&str) -> Option<String>) -> T + Send + Sync>;

/// Initial visibility of a section, fixed or decided when the prompt is bound.
#[derive(Clone)]
pub enum Visibility {
    /// Fixed until the section is opened.
    Fixed(SectionDisplay),
    /// Decided from the bound values.
    Decided(Condition<SectionDisplay>),
}

impl fmt::Debug for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(shown) => write!(f, "{shown:?}"),
            Self::Decided(_) => f.write_str("Decided"),
        }
    }
}

/// A section and its children.
#[derive(Clone)]
pub struct PromptSection {
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) body: SectionBody,
    pub(crate) summary: Option<String>,
    pub(crate) visibility: Visibility,
    pub(crate) enabled: Option<Condition<bool>>,
    pub(crate) params: BTreeMap<String, Value>,
    pub(crate) tools: Vec<String>,
    pub(crate) children: Vec<PromptSection>,
    pub(crate) delegation: Option<DelegationPrompt>,
}

impl fmt::Debug for PromptSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("key", &self.key)
            .field("visibility", &self.visibility)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum SectionBody {
    Template(String),
    Literal(String),
    Task,
}

impl PromptSection {
    /// Creates a section whose body is a template.
    pub fn text(key: impl Into<String>, title: impl Into<String>, body: impl Into<String>) -> Self {
        Self::with(key.into(), title.into(), SectionBody::Template(body.into()))
    }

    /// Creates a section whose body is literal text, such as a project file.
    pub fn literal(key: impl Into<String>, title: impl Into<String>, body: impl Into<String>) -> Self {
        Self::with(key.into(), title.into(), SectionBody::Literal(body.into()))
    }

    /// Creates the section of a [`TaskSection`](super::TaskSection).
    pub(super) fn task(key: String, title: String) -> Self {
        Self::with(key, title, SectionBody::Task)
    }

    /// Creates the section with the instructions of the project's AGENTS.md.
    pub fn instructions(text: &str) -> Self {
        Self::literal("agents", "The Project's Instructions (AGENTS.md)", text.trim())
    }

    /// Creates the section with skills, each initially closed.
    pub fn skills(words: impl Into<String>, skills: &[Document]) -> Self {
        let parent = Self::literal("skills", "Skills", words);
        skills.iter().fold(parent, |parent, skill| parent.child(skill.section()))
    }

    /// Creates the section with the project digest.
    pub fn workspace_digest(digest: impl Into<String>) -> Self {
        Self::literal("workspace-digest", "Workspace Digest", digest)
    }

    /// Creates the section that describes the workspace and provides the read-only tools.
    pub fn workspace() -> Self {
        let section = Self::literal("workspace", "Workspace", WORKSPACE);
        LOOKING.into_iter().fold(section, Self::tool)
    }

    /// Creates the section that lets the model delegate parts of its task, each run with this prompt. It
    /// provides the tool.
    pub fn delegation(prompt: DelegationPrompt) -> Self {
        Self {
            delegation: Some(prompt),
            ..Self::literal("delegation", "Delegation", delegation::TEXT).tool(delegation::SPAWNING)
        }
    }

    /// Replaces the body with a template.
    #[must_use]
    pub fn with_body(self, body: impl Into<String>) -> Self {
        Self { body: SectionBody::Template(body.into()), ..self }
    }

    /// Whether this section or a descendant delegates tasks.
    pub(crate) fn delegates(&self) -> bool {
        self.delegation.is_some() || self.children.iter().any(Self::delegates)
    }

    fn with(key: String, title: String, body: SectionBody) -> Self {
        Self {
            key,
            title,
            body,
            summary: None,
            visibility: Visibility::Fixed(SectionDisplay::Full),
            enabled: None,
            params: BTreeMap::new(),
            tools: Vec::new(),
            children: Vec::new(),
            delegation: None,
        }
    }

    /// Replaces key and title.
    #[must_use]
    pub fn named(self, key: impl Into<String>, title: impl Into<String>) -> Self {
        Self { key: key.into(), title: title.into(), ..self }
    }

    /// Closes the section initially, showing this summary.
    #[must_use]
    pub fn summarised(self, summary: impl Into<String>) -> Self {
        Self { summary: Some(summary.into()), visibility: Visibility::Fixed(SectionDisplay::Summary), ..self }
    }

    /// Adds a summary that is shown when `visibility` says so.
    #[must_use]
    pub fn with_summary(self, summary: impl Into<String>, visibility: Visibility) -> Self {
        Self { summary: Some(summary.into()), visibility, ..self }
    }

    /// Shows the section only if the condition holds.
    #[must_use]
    pub fn enabled(self, condition: Condition<bool>) -> Self {
        Self { enabled: Some(condition), ..self }
    }

    /// Adds a default value for a placeholder.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// Adds a tool that is offered while the section is open.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// Adds a child section.
    #[must_use]
    pub fn child(mut self, section: PromptSection) -> Self {
        self.children.push(section);
        self
    }
}
