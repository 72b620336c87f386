//! Settings that a template has and a request may override: context and limits. [`crate::task_system`] merges
//! the layers.

use serde::{Deserialize, Serialize};

/// How much of the parent's context a task inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InheritContext {
    /// All of the context.
    Full,
    /// Nothing at all.
    None,
    /// The parts relevant to this task.
    Subset,
}

/// How much is included of earlier results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccumulationFormat {
    /// Their notes.
    #[default]
    NotesOnly,
    /// Their full output.
    FullOutput,
}

/// Whether files are searched for this task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshContext {
    /// Files are searched; nothing can be inherited.
    Enabled,
    /// Files are not searched.
    Disabled,
}

/// Context settings of one layer; absent values are left to the layer below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextOverrides {
    /// How much of the parent's context is inherited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherit_context: Option<InheritContext>,
    /// Whether the results of earlier tasks are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulate_data: Option<bool>,
    /// How much of them is included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulation_format: Option<AccumulationFormat>,
    /// Whether files are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh_context: Option<FreshContext>,
}

/// Limits of one task, set by a request or a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOverrides {
    /// Maximum number of assistant messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Maximum number of tokens in the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Share of the context that the prepared context may fill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_fraction: Option<f64>,
    /// Maximum active time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}
