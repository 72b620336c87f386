//! State shared by every step of a running task: its journal branch, the policy in force, its usage, and
//! how the user stops it. The parts of a task take it as an argument to do their steps.

use fusee_journal::event::Event;
use fusee_journal::{DurableRun, RunAborted, StepKind, StepMeta};
use fusee_model::{CancellationToken, Reply, ToolCall, Usage};
use fusee_tools::CallLimits;
use serde_json::json;

use super::call_ids::CallIds;
use super::conversation::Conversation;
use super::interrupt::InterruptibleTurn;
use super::limits::Limits;
use super::limits::budget::Remaining;
use super::limits::meter::Meter;
use super::limits::policy_change::RunPolicy;
use super::model_request::attempt::AttemptResult;
use super::session::Session;
use super::task::AgentTask;
use super::tool_calls::tool_executor::{CallRecord, ToolExecutor};
use crate::approval::rules::ApprovalRules;

/// The execution of one task.
pub(crate) struct Execution<'t> {
    pub(crate) task: &'t AgentTask,
    pub(crate) meter: Meter,
    /// The limits and approval policy in force.
    pub(crate) policy: RunPolicy,
    /// The user's approval rules, from before the run and added during it.
    pub(crate) approvals: ApprovalRules,
    /// Cancellation of the current turn; `None` while the user is asked how to proceed.
    pub(crate) turn: Option<InterruptibleTurn>,
    /// Number of interrupted turns.
    pub(crate) stops: u32,
    pub(crate) call_ids: CallIds,
}

impl<'t> Execution<'t> {
    pub(crate) fn new(task: &'t AgentTask, started_ms: i64) -> Self {
        Self {
            task,
            meter: Meter::new(started_ms, task.rules.used.clone()),
            policy: task.session.policy_at(&task.branch, 0),
            approvals: task.session.approval.rules.clone(),
            turn: Some(task.session.turn_stop.begin(&task.cancel)),
            stops: 0,
            call_ids: CallIds::from_messages(&task.input),
        }
    }

    pub(crate) fn session(&self) -> &'t Session {
        &self.task.session
    }

    pub(crate) fn engine(&self) -> &'t dyn DurableRun {
        &*self.task.engine
    }

    /// Cancellation token of the current work: triggered by a stop of the turn or of the task.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        self.turn.as_ref().map_or(&self.task.cancel, |turn| &turn.token)
    }

    pub(crate) fn emit(&self, event: Event) {
        self.task.engine.emit(&self.task.branch, event);
    }

    /// The limits in force, as the task's rules lower them.
    pub(crate) fn limits(&self) -> Limits {
        self.task.rules.bound(self.policy.limits)
    }

    /// Remaining working time, if limited.
    pub(crate) fn left_ms(&self) -> Option<u64> {
        self.meter.left_ms(&self.policy.limits)
    }

    /// What remains of the limits after this many turns of the task itself.
    pub(crate) fn remaining(&self, turns: u32, conversation: &Conversation<'_>) -> Remaining {
        self.meter.remaining(&self.limits(), turns, conversation.accepted_tokens)
    }

    /// Applies the policy changes of a resume that take effect at the current position. Returns whether there
    /// can be any.
    pub(crate) fn refresh_policy(&mut self) -> bool {
        let changes = !self.session().policy_changes.is_empty();
        if changes {
            let next = self.engine().position(&self.task.branch);
            self.policy = self.session().policy_at(&self.task.branch, next);
        }
        changes
    }

    /// Records a request, whether sent or replayed. A scripted model must know which of its lines were used.
    pub(crate) fn record_attempt(&mut self, result: &AttemptResult, recorded: &StepMeta) {
        self.meter.record(recorded);
        self.meter.spent.model_ms += recorded.duration_ms;
        if recorded.replayed {
            result.notify(&*self.session().model);
        }
    }

    /// Charges a reply at the price of the model that gave it; `estimated` is used if the server reports no
    /// usage.
    pub(crate) fn charge(&mut self, reply: &Reply, estimated: Usage) {
        self.meter.charge(self.policy.limits.price, reply, estimated);
    }

    /// Reports the progress after this many replies.
    pub(crate) fn report_progress(&self, turns: u32) {
        self.task.progress.update(turns, &self.meter.spent);
    }

    /// Executor of the model's calls.
    pub(crate) fn executor(&self) -> ToolExecutor<'_> {
        let images = self.session().model.dialect().takes_images();
        ToolExecutor {
            session: self.session(),
            engine: &self.task.engine,
            branch: &self.task.branch,
            cancel: self.cancel(),
            left_ms: self.left_ms(),
            kind: StepKind::Tool,
            protected: self.task.rules.protected.clone(),
            image_bytes: if images { CallLimits::IMAGE_BYTES } else { 0 },
        }
    }

    /// Executor of the runtime's own calls.
    pub(crate) fn runtime_executor(&self) -> ToolExecutor<'_> {
        ToolExecutor { kind: StepKind::Environment, image_bytes: 0, ..self.executor() }
    }

    /// Records the result of a call that needs no execution.
    pub(crate) async fn answer(
        &self,
        call: &ToolCall,
        called: CallRecord,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        self.executor().answer(&call.name, json!(call.arguments), called).await
    }
}
