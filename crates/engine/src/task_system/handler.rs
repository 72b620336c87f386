//! Limits, tools and model of one task's handler.

use std::sync::Arc;

use fusee_journal::event::Event;
use fusee_text::suggest;
use fusee_tools::{Tool, Toolbox};

use super::error::{Reason, TemplateTaskError};
use super::pipeline::{TaskScope, TaskSystem};
use super::request::{LimitOverrides, SubtaskRequest};
use crate::agent::{Limits, Remaining, SPAWN_SUBTASK, TaskContext, control_names};
use crate::template::Template;

impl TaskSystem {
    /// Creates a separate handler for each task, so that nothing leaks between tasks.
    pub(super) fn handler(
        &self,
        toolbox: Toolbox,
        limits: Limits,
        options: fusee_model::RequestOptions,
    ) -> TaskContext {
        TaskContext { toolbox, options, ..self.base.for_child(limits) }
    }

    /// Switches to the requested model. A model named by the request is used or refused; a model named by the
    /// template falls back to the run's model with a warning.
    pub(super) fn asked_for_model(
        &self,
        session: TaskContext,
        template: &Template,
        request: &SubtaskRequest,
        place: &TaskScope,
    ) -> Result<TaskContext, TemplateTaskError> {
        // The main task's model was chosen when the run started.
        let Some(parent) = &place.parent else { return Ok(session) };
        let Some(wanted) = request.model.as_ref().or(template.model.as_ref()) else { return Ok(session) };
        let has = session.model.name();
        if has == wanted {
            return Ok(session);
        }
        if self.base.others.contains_key(wanted) {
            return Ok(session.with_model(wanted));
        }
        if request.model.is_some() {
            let message =
                format!("`{}` requests the model `{wanted}`, but this run only has `{has}`", template.name);
            return Err(TemplateTaskError::failure(Reason::ConfigurationError, message));
        }
        let message = format!(
            "`{}` names the model `{wanted}`, but this run only has `{has}`, which is used instead",
            template.name
        );
        self.engine.emit(parent, Event::Warning { code: "other_model".to_owned(), message });
        Ok(session)
    }
}

/// Merges the limits of a task: configuration, then template, then request, capped by the remaining budget.
pub fn limits(
    base: Limits,
    template: &LimitOverrides,
    request: Option<&LimitOverrides>,
    left: Option<Remaining>,
) -> Limits {
    let mut limits = base;
    for layer in [Some(template), request].into_iter().flatten() {
        limits.max_turns = layer.max_turns.unwrap_or(limits.max_turns);
        // The context window is fixed, so a template can only lower the limit.
        limits.max_tokens = layer.max_tokens.map_or(limits.max_tokens, |most| most.min(limits.max_tokens));
        limits.task_timeout_s = layer.timeout.or(limits.task_timeout_s);
    }
    let Some(left) = left else { return limits };
    limits.max_turns = limits.max_turns.min(left.turns);
    limits.budget_usd = left.usd.or(limits.budget_usd);
    if let Some(ms) = left.ms {
        let seconds = ms.div_ceil(1000);
        limits.task_timeout_s = Some(limits.task_timeout_s.map_or(seconds, |own| own.min(seconds)));
    }
    limits
}

/// Reports tool names in a template that look like typos of known tools, before anything starts. A name
/// unlike all others may belong to an MCP server that is not connected yet; [`toolbox`] checks those.
pub fn check_tools(base: &Toolbox, template: &Template) -> Result<(), TemplateTaskError> {
    let named = template.allowed_tools.iter().flatten().chain(&template.blocked_tools);
    let slips: Vec<String> = named
        .filter(|name| is_not_control_tool(name) && in_any_case(base, name).is_none())
        .filter_map(|name| {
            let known = base.definitions().map(|definition| definition.name.as_ref());
            Some(format!("`{name}` ({})", suggest::did_you_mean(name, known)?))
        })
        .collect();
    if slips.is_empty() { Ok(()) } else { Err(not_there(template, &slips)) }
}

/// Finds a tool by name or alias, ignoring case.
fn in_any_case<'b>(base: &'b Toolbox, name: &str) -> Option<&'b Arc<dyn Tool>> {
    base.find(name).or_else(|| base.find(&name.to_lowercase()))
}

/// Whether a name is not a control tool; those are always available or offered elsewhere.
fn is_not_control_tool(name: &str) -> bool {
    name != SPAWN_SUBTASK && !control_names().any(|known| known == name)
}

fn not_there(template: &Template, tools: &[String]) -> TemplateTaskError {
    let message = format!("`{}` names unknown tools: {}", template.name, tools.join(", "));
    TemplateTaskError::invalid(Reason::ConfigurationError, message)
}

/// Returns the tools of a template, resolved by name or alias.
pub fn toolbox(base: &Toolbox, template: &Template) -> Result<Toolbox, TemplateTaskError> {
    let mut unknown: Vec<String> = Vec::new();
    let mut resolve = |names: &[String]| -> Vec<String> {
        names
            .iter()
            .filter(|name| is_not_control_tool(name))
            .filter_map(|name| match in_any_case(base, name) {
                Some(tool) => Some(tool.definition().name.to_string()),
                None => {
                    let near = base.nearest(name);
                    let hint =
                        near.first().map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                    unknown.push(format!("`{name}`{hint}"));
                    None
                }
            })
            .collect()
    };
    let allowed = template.allowed_tools.as_deref().map(&mut resolve);
    let blocked = resolve(&template.blocked_tools);
    if !unknown.is_empty() {
        return Err(not_there(template, &unknown));
    }
    let mut chosen = Toolbox::new();
    for tool in base.iter() {
        let name = tool.definition().name.to_string();
        if allowed.as_ref().is_none_or(|allowed| allowed.contains(&name)) && !blocked.contains(&name) {
            // Names are unique in the source toolbox.
            let _ = chosen.insert(Arc::clone(tool));
        }
    }
    Ok(chosen)
}

/// Whether tasks of a template may call `spawn_subtask`; the tool lists apply to it like to any tool.
pub(super) fn may_spawn(template: &Template) -> bool {
    let names = |names: &[String]| names.iter().any(|name| name == SPAWN_SUBTASK);
    template.allowed_tools.as_deref().is_none_or(names) && !names(&template.blocked_tools)
}
