//! Sets up delegation for a run whose prompt allows it. The task system runs the delegated parts.

use std::sync::Arc;

use super::{RunSpec, TemplateSource};
use crate::agent::AgentTask;
use crate::prompt::EnvironmentSnapshot;
use crate::task_system::file_reader;
use crate::task_system::{InheritedContext, SubtaskRequest, Subtasks, TaskScope, TaskSystem};

/// Adds the delegation tool to the task if its prompt has a delegation section.
pub(super) fn delegating(
    task: AgentTask,
    settings: &RunSpec,
    environment: &EnvironmentSnapshot,
    templates: TemplateSource,
    started_ms: i64,
) -> AgentTask {
    let delegation =
        task.sectioned_prompt.as_ref().and_then(|sectioned_prompt| sectioned_prompt.delegation()).cloned();
    let Some(delegation) = delegation else { return task };
    let system = TaskSystem {
        registry: templates.registry,
        memory: Arc::new(file_reader::memory(&task.session.workspace, templates.memory_file)),
        base: Arc::clone(&task.session),
        engine: Arc::clone(&task.engine),
        environment: environment.clone(),
        flow: Arc::new(settings.flow.clone()),
    };
    let scope = TaskScope::main(started_ms, task.cancellation(), Arc::clone(&task.progress));
    // Registered as its own ancestor: a task that delegates its own request verbatim would recurse forever.
    let own = SubtaskRequest { description: Some(settings.request.clone()), ..SubtaskRequest::default() };
    let subtasks = Subtasks::new(Arc::new(system), &scope, &own, InheritedContext::default());
    task.with_subtasks(Arc::new(subtasks.delegating(delegation)))
}
