//! What is asked of a task: everything is resolved before, so that a request is a value that can be written down.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A task to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubtaskRequest {
    /// The sort of task: `atomic`, the only one there is.
    #[serde(rename = "type", default = "atomic")]
    pub kind: String,
    /// The template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The subtype: it finds the template where no name is given, and wins over the template's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// The task in words: it finds the template where neither name nor subtype is given, and is what files are
    /// searched by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values of the template's parameters.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Files to include, instead of the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_paths: Option<Vec<String>>,
    /// Settings of the context that win over the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_management: Option<ContextOverrides>,
    /// What of the caller's conversation goes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_config: Option<HistoryConfig>,
    /// What the caller was given and has found out, as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_context: Option<InheritedContext>,
    /// Limits that win over the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitOverrides>,
    /// A model instead of the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

fn atomic() -> String {
    "atomic".to_owned()
}

impl SubtaskRequest {
    /// A request for the template of this name.
    pub fn named(name: impl Into<String>, inputs: Map<String, Value>) -> Self {
        Self { name: Some(name.into()), inputs, ..Self::default() }
    }

    /// What it is called where it is told of: its name, its subtype or its words.
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

/// How much of the parent's context a task is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InheritContext {
    /// All of it.
    Full,
    /// Nothing.
    None,
    /// What is relevant to this task.
    Subset,
}

/// What is kept of earlier steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccumulationFormat {
    /// Their notes.
    #[default]
    NotesOnly,
    /// Their whole output.
    FullOutput,
}

/// Whether files are searched for this task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshContext {
    /// Yes; then nothing is inherited.
    Enabled,
    /// No.
    Disabled,
}

/// Settings of a task's context as one layer gives them; what is absent is left to the layer below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextOverrides {
    /// How much of the parent's context is given on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherit_context: Option<InheritContext>,
    /// Whether earlier steps' results are kept for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulate_data: Option<bool>,
    /// What is kept of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulation_format: Option<AccumulationFormat>,
    /// Whether files are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh_context: Option<FreshContext>,
}

/// What of the caller's conversation goes into a task, and whether the task goes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryConfig {
    /// Whether the conversation is shown to the task.
    pub use_session_history: bool,
    /// How many of its last turns; all that fit where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_turns_to_include: Option<u32>,
    /// Whether the task's result is kept for tasks that are begun after it and accumulate what came before.
    pub record_in_session_history: bool,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self { use_session_history: false, history_turns_to_include: None, record_in_session_history: true }
    }
}

/// Limits of one task as a request or a template gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOverrides {
    /// Assistant messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Tokens the context may hold at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The share of the context that what was prepared may fill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_fraction: Option<f64>,
    /// Working time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// What the caller of a task was given and has found out. Text alone is one part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InheritedContext {
    /// In the order they were found out.
    pub parts: Vec<ContextPart>,
    /// Files that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// One thing that was found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPart {
    /// Where it comes from: `parent`, or the name of an earlier task.
    #[serde(default = "parent")]
    pub source: String,
    /// What it says.
    pub text: String,
}

fn parent() -> String {
    "parent".to_owned()
}

impl InheritedContext {
    /// One part, from the parent.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![ContextPart { source: parent(), text: text.into() }], files: Vec::new() }
    }

    /// Whether there is nothing in it.
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
