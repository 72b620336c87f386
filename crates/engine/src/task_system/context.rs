//! Context settings of a task, merged field by field: subtype defaults, then the template, then the request.

use std::collections::HashSet;

use serde::Serialize;

use super::request::InheritedContext;
use crate::template::{AccumulationFormat, ContextOverrides, FreshContext, InheritContext, words};

/// Minimum share of the task's words that a context part must contain to count as relevant.
const RELEVANT: f64 = 0.08;

/// Effective context settings of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContextSettings {
    /// How much of the parent's context is inherited.
    pub inherit_context: InheritContext,
    /// Whether the results of earlier tasks are included.
    pub accumulate_data: bool,
    /// How much of them is included.
    pub accumulation_format: AccumulationFormat,
    /// Whether files are searched for.
    pub fresh_context: FreshContext,
}

/// The layer that set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// Default of the subtype.
    Subtype,
    /// Set by the template.
    Template,
    /// Set by the request.
    Request,
}

/// Two mutually exclusive settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Subtype of the task.
    pub subtype: String,
    /// Value of `inherit_context`.
    pub inherit_context: InheritContext,
    /// Layer that set `inherit_context`.
    pub inherit_set_by: SetBy,
    /// Layer that enabled `fresh_context`.
    pub fresh_set_by: SetBy,
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = |by: SetBy| match by {
            SetBy::Subtype => format!("the default of the subtype `{}`", self.subtype),
            SetBy::Template => "set by the template".to_owned(),
            SetBy::Request => "set by the request".to_owned(),
        };
        let inherit = match self.inherit_context {
            InheritContext::Full => "full",
            InheritContext::None => "none",
            InheritContext::Subset => "subset",
        };
        write!(
            f,
            "`fresh_context` is enabled ({}), but `inherit_context` is {inherit} ({}); set \
             `inherit_context` to none, or disable `fresh_context`",
            who(self.fresh_set_by),
            who(self.inherit_set_by)
        )
    }
}

/// Returns the default settings of a subtype.
pub fn defaults(subtype: &str) -> ContextSettings {
    let (inherit_context, accumulate_data, fresh_context) = match subtype {
        "subtask" | "aider_automatic" => (InheritContext::None, false, FreshContext::Enabled),
        "aider_interactive" => (InheritContext::None, true, FreshContext::Enabled),
        _ => (InheritContext::Full, false, FreshContext::Disabled),
    };
    let accumulation_format = AccumulationFormat::NotesOnly;
    ContextSettings { inherit_context, accumulate_data, accumulation_format, fresh_context }
}

/// Merges the layers; fails if `fresh_context` and `inherit_context` conflict.
pub fn effective(
    subtype: &str,
    template: &ContextOverrides,
    request: Option<&ContextOverrides>,
) -> Result<ContextSettings, Conflict> {
    let defaults = defaults(subtype);
    let request = request.copied().unwrap_or_default();
    let (inherit_context, inherit_set_by) =
        pick(defaults.inherit_context, template.inherit_context, request.inherit_context);
    let (fresh_context, fresh_set_by) =
        pick(defaults.fresh_context, template.fresh_context, request.fresh_context);
    if fresh_context == FreshContext::Enabled && inherit_context != InheritContext::None {
        return Err(Conflict { subtype: subtype.to_owned(), inherit_context, inherit_set_by, fresh_set_by });
    }
    Ok(ContextSettings {
        inherit_context,
        fresh_context,
        accumulate_data: pick(defaults.accumulate_data, template.accumulate_data, request.accumulate_data).0,
        accumulation_format: pick(
            defaults.accumulation_format,
            template.accumulation_format,
            request.accumulation_format,
        )
        .0,
    })
}

fn pick<T>(default: T, template: Option<T>, request: Option<T>) -> (T, SetBy) {
    match (request, template) {
        (Some(value), _) => (value, SetBy::Request),
        (None, Some(value)) => (value, SetBy::Template),
        (None, None) => (default, SetBy::Subtype),
    }
}

/// Decides what a task is shown of its parent's context: all, nothing, or what shares words with its own work.
pub(super) struct InheritanceFilter {
    inherit: InheritContext,
    /// Words of the task, for `subset`.
    asked: HashSet<String>,
}

impl InheritanceFilter {
    /// Creates the filter of a task that is described by `task_words`.
    pub(super) fn new(inherit: InheritContext, task_words: &str) -> Self {
        let asked = match inherit {
            InheritContext::Subset => words(task_words),
            InheritContext::Full | InheritContext::None => HashSet::new(),
        };
        Self { inherit, asked }
    }

    /// Whether a text of the parent's context, a part or a file, is inherited.
    pub(super) fn inherits(&self, text: &str) -> bool {
        match self.inherit {
            InheritContext::None => false,
            InheritContext::Full => true,
            InheritContext::Subset => self.concerns(text),
        }
    }

    /// Whether the result of an earlier task is included. Only `subset` leaves one out: `accumulate_data` by itself
    /// includes all.
    pub(super) fn accumulates(&self, text: &str) -> bool {
        self.inherit != InheritContext::Subset || self.concerns(text)
    }

    /// Selects the parts to inherit; files are selected once they are read.
    pub(super) fn select(&self, context: Option<&InheritedContext>) -> InheritedContext {
        let Some(context) = context else { return InheritedContext::default() };
        if self.inherit == InheritContext::None {
            return InheritedContext::default();
        }
        let parts = context.parts.iter().filter(|part| self.inherits(&part.text)).cloned().collect();
        InheritedContext { parts, files: context.files.clone() }
    }

    fn concerns(&self, text: &str) -> bool {
        let known = words(text);
        let shared = self.asked.intersection(&known).count() as f64;
        let smaller = self.asked.len().min(known.len()).max(1);
        shared > 0.0 && shared / smaller as f64 >= RELEVANT
    }
}

#[cfg(test)]
mod tests;
