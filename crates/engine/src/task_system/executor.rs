//! Executes the body of one task: its own handler, the model's turns, and the check of the answer against the
//! declared format. `pipeline.rs` prepares the body.

use std::sync::Arc;

use fusee_journal::RunAborted;

use super::TaskSystem;
use super::handler::may_spawn;
use super::output_handling::{OutputJudge, result_of};
use super::pipeline::{PreparedTask, TaskScope};
use super::prompt::PreparedContext;
use super::request::SubtaskRequest;
use super::result::TaskResult;
use super::subtasks::Subtasks;
use crate::agent::flow::{FlowMode, FlowSettings};
use crate::agent::{FinishedTask, TaskOutcome};
use crate::template::Template;

/// Executes the body of one atomic task.
pub(super) struct AtomicTaskExecutor {
    pub(super) system: Arc<TaskSystem>,
    pub(super) place: TaskScope,
    /// Whether the start of the task was already announced.
    pub(super) announced: bool,
}

impl AtomicTaskExecutor {
    /// Runs the task to its end. The template's placeholders were filled in from the request's inputs alone.
    pub(super) async fn execute_body(
        &self,
        work: PreparedTask,
        request: &SubtaskRequest,
    ) -> Result<(TaskOutcome, TaskResult, PreparedContext), RunAborted> {
        let Self { system, place, announced } = self;
        let PreparedTask { template, prepared, composed, schema, session, spent } = work;
        let subtasks = Arc::new(Subtasks::new(Arc::clone(system), place, request, prepared.for_subtasks()));
        let finishing = Arc::new(OutputJudge::new(&template, schema, Arc::clone(&subtasks)));
        let task = system
            .task(Arc::new(session), &composed.system, &composed.request, place)
            .announced(*announced)
            .with_spent(spent)
            .with_finalizer(Arc::clone(&finishing) as Arc<dyn crate::agent::AnswerHandler>)
            .with_cancel(place.cancel.clone(), Arc::clone(&place.progress));
        let task = match composed.disclosure {
            Some(disclosure) => task.with_prompt(disclosure),
            None => task,
        };
        let task = if may_spawn(&template) { task.with_subtasks(subtasks) } else { task };
        let outcome = match flow_of(&template) {
            FlowMode::Flat => {
                let FinishedTask { outcome, facts, .. } = task.run_to_end(place.started_ms).await?;
                place.progress.leave_facts(facts);
                outcome
            }
            mode => {
                let flow = FlowSettings { mode, ..FlowSettings::default() };
                Box::pin(crate::agent::flow::work(task, &flow, place.started_ms)).await?
            }
        };
        let result = result_of(&outcome, &finishing);
        Ok((outcome, result, prepared))
    }
}

/// Returns the flow of a template; the template checker validates the name.
fn flow_of(template: &Template) -> FlowMode {
    template.flow.as_deref().and_then(FlowMode::named).unwrap_or_default()
}
