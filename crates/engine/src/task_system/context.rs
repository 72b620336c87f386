//! What of the context a task is given: the subtype's defaults, then the template, then the request, field by field.

use serde::Serialize;

use super::request::{AccumulationFormat, ContextOverrides, FreshContext, InheritContext, InheritedContext};
use crate::template::words;

/// The share of a part's words that must be the task's for the part to count as relevant to it.
const RELEVANT: f64 = 0.08;

/// What holds for one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContextSettings {
    /// How much of the parent's context is given on.
    pub inherit_context: InheritContext,
    /// Whether earlier steps' results are kept.
    pub accumulate_data: bool,
    /// What is kept of them.
    pub accumulation_format: AccumulationFormat,
    /// Whether files are searched.
    pub fresh_context: FreshContext,
}

/// Who set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The defaults of the subtype.
    Subtype,
    /// The template.
    Template,
    /// The request.
    Request,
}

/// Two settings that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The subtype.
    pub subtype: String,
    /// What is inherited.
    pub inherit_context: InheritContext,
    /// Who said so.
    pub inherit_set_by: SetBy,
    /// Who enabled the search.
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
            "`fresh_context` is enabled ({}) and `inherit_context` is {inherit} ({}): they exclude each other; set \
             `inherit_context` to none, or disable `fresh_context`",
            who(self.fresh_set_by),
            who(self.inherit_set_by)
        )
    }
}

/// What a subtype has where nothing is said.
pub fn defaults(subtype: &str) -> ContextSettings {
    let (inherit_context, accumulate_data, fresh_context) = match subtype {
        "subtask" | "aider_automatic" => (InheritContext::None, false, FreshContext::Enabled),
        "aider_interactive" => (InheritContext::None, true, FreshContext::Enabled),
        _ => (InheritContext::Full, false, FreshContext::Disabled),
    };
    let accumulation_format = AccumulationFormat::NotesOnly;
    ContextSettings { inherit_context, accumulate_data, accumulation_format, fresh_context }
}

/// What holds, or which layers contradict each other.
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

/// What of the parent's context this task is given; listed files always are.
pub(super) fn inherited(
    settings: &ContextSettings,
    context: Option<&InheritedContext>,
    task_words: &str,
) -> InheritedContext {
    let Some(context) = context else { return InheritedContext::default() };
    match settings.inherit_context {
        InheritContext::None => InheritedContext::default(),
        InheritContext::Full => context.clone(),
        InheritContext::Subset => {
            let asked = words(task_words);
            let relevant = |text: &str| {
                let known = words(text);
                let shared = asked.intersection(&known).count() as f64;
                shared > 0.0 && shared / asked.len().max(1) as f64 >= RELEVANT
            };
            let parts = context.parts.iter().filter(|part| relevant(&part.text)).cloned().collect();
            InheritedContext { parts, files: context.files.clone() }
        }
    }
}

#[cfg(test)]
mod tests;
