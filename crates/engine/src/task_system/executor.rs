//! Executes the body of one atomic task: the handler's session with the model, and the result of its answer.
//! `pipeline.rs` prepares the body.

use std::sync::Arc;

use fusee_journal::RunAborted;

use super::TaskSystem;
use super::handler::{Handler, may_spawn};
use super::output_judge::{OutputJudge, result_of};
use super::prompt::{HandlerPayload, answer_form};
use super::request::SubtaskRequest;
use super::subtasks::Subtasks;
use crate::agent::flow::FlowMode;
use crate::agent::{AnswerCheck, AnswerHandler, Spent, TaskOutcome};
use crate::template::Template;
use crate::template::output::OutputSchema;

/// A fully prepared task: its placeholders were filled in from the request's inputs alone.
pub(super) struct TaskBody {
    pub(super) template: Template,
    pub(super) payload: HandlerPayload,
    pub(super) schema: Option<OutputSchema>,
    /// Resources used by the preparation.
    pub(super) spent: Spent,
}

/// Executes the body of one atomic task.
pub(super) struct AtomicTaskExecutor {
    pub(super) system: Arc<TaskSystem>,
}

impl AtomicTaskExecutor {
    /// Runs the task to its end. The outcome contains the result, with its notes.
    pub(super) async fn execute_body(
        self,
        body: TaskBody,
        request: &SubtaskRequest,
        handler: &Handler,
    ) -> Result<TaskOutcome, RunAborted> {
        let TaskBody { template, payload, schema, spent } = body;
        let settings = Arc::clone(&self.system.flow);
        let subtasks = Subtasks::new(self.system, &handler.scope, request, payload.context.for_subtasks());
        let subtasks = Arc::new(subtasks);
        let judge = Arc::new(OutputJudge::new(&template, schema, Arc::clone(&subtasks)));
        let session = handler
            .session(&payload)
            .with_spent(spent)
            .with_answer_form(template.output_format.as_ref().and_then(answer_form))
            .with_answer_handler(Arc::clone(&judge) as Arc<dyn AnswerHandler>);
        let session = if judge.asks_again() {
            session.with_answer_check(Arc::clone(&judge) as Arc<dyn AnswerCheck>)
        } else {
            session
        };
        let session = if may_spawn(&template) { session.with_subtasks(subtasks) } else { session };
        // The template checker validates the name of the flow.
        let flow = template.flow.as_deref().and_then(FlowMode::named).unwrap_or_default();
        let mut outcome = session.run(flow, &settings).await?;
        let mut result = result_of(&outcome, &judge);
        payload.context.note_in(&mut result, &template.name, handler.scope.path);
        outcome.resource_metrics().note_in(&mut result);
        outcome.result = Some(Box::new(result));
        Ok(outcome)
    }
}
