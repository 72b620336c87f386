//! Request for a task: a self-contained value with everything resolved, so that it can be journaled.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::template::{ContextOverrides, LimitOverrides};

/// A task to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubtaskRequest {
    /// Task type; always `atomic`.
    #[serde(rename = "type", default = "atomic")]
    pub kind: String,
    /// Template name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Subtype: finds the template if no name is given, and overrides the template's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// Task in words: finds the template if neither name nor subtype is given, and serves as the query for
    /// the file search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Values of the template's parameters.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Files to include instead of the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_paths: Option<Vec<String>>,
    /// Context settings that override the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_management: Option<ContextOverrides>,
    /// How much of the caller's conversation is included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_config: Option<HistoryConfig>,
    /// The caller's context and findings, as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_context: Option<InheritedContext>,
    /// Limits that override the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitOverrides>,
    /// Model that overrides the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

fn atomic() -> String {
    "atomic".to_owned()
}

impl SubtaskRequest {
    /// Creates a request for the template of this name.
    pub fn named(name: impl Into<String>, inputs: Map<String, Value>) -> Self {
        Self { name: Some(name.into()), inputs, ..Self::default() }
    }

    /// Returns a title for messages: name, subtype or description.
    pub fn title(&self) -> &str {
        let named = self.name.as_deref().or(self.subtype.as_deref());
        named.or(self.description.as_deref()).unwrap_or("a task")
    }
}

impl Default for SubtaskRequest {
    fn default() -> Self {
        Self {
            kind: atomic(),
            name: None,
            subtype: None,
            description: None,
            inputs: Map::new(),
            file_paths: None,
            context_management: None,
            history_config: None,
            inherited_context: None,
            limits: None,
            model: None,
        }
    }
}

/// How a task relates to the caller's conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryConfig {
    /// Whether the conversation is shown to the task.
    pub use_session_history: bool,
    /// Maximum number of last turns to include; as many as fit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_turns_to_include: Option<u32>,
    /// Whether the result is kept for later tasks that accumulate data.
    pub record_in_session_history: bool,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self { use_session_history: false, history_turns_to_include: None, record_in_session_history: true }
    }
}

/// Context and findings of the caller. Plain text deserialises to one part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InheritedContext {
    /// Parts, oldest first.
    pub parts: Vec<ContextPart>,
    /// Files that belong to the context.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// One piece of context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPart {
    /// Source: `parent`, or the name of an earlier task.
    #[serde(default = "parent")]
    pub source: String,
    /// The content.
    pub text: String,
}

fn parent() -> String {
    "parent".to_owned()
}

impl InheritedContext {
    /// Creates a context of one part from the parent.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![ContextPart { source: parent(), text: text.into() }], files: Vec::new() }
    }

    /// Whether it has no parts and no files.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.files.is_empty()
    }
}

impl<'de> Deserialize<'de> for InheritedContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Text(String),
            Whole {
                #[serde(default)]
                parts: Vec<ContextPart>,
                #[serde(default)]
                files: Vec<String>,
            },
        }
        Ok(match Given::deserialize(deserializer)? {
            Given::Text(text) => Self::text(text),
            Given::Whole { parts, files } => Self { parts, files },
        })
    }
}
