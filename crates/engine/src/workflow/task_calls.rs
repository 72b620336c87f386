//! Task calls of a program: the task system runs each on its own branch, after one step that records its start
//! time and budget.

use std::sync::Arc;

use fusee_journal::event::TaskStatus;
use fusee_journal::{RunAborted, StepKind};
use fusee_lang::{CallForm, ResumeInput, SourceLocation, TaskCall, TaskResult, TaskTarget};
use serde_json::json;

use super::budget::{LimitKind, RemainingShares};
use super::driver::{EffectAnswer, WorkflowDriver, at};
use super::task_request::requested;
use crate::agent::TaskOutcome;
use crate::task_system::{ExecutionPath, Reason, TaskError, TaskScope};

/// Maximum number of earlier results kept for later tasks; the oldest are dropped.
const MAX_EARLIER: usize = 50;

impl WorkflowDriver<'_> {
    pub(super) async fn task(
        &mut self,
        call: TaskCall,
        place: &SourceLocation,
    ) -> Result<EffectAnswer, RunAborted> {
        let (grant, began_ms) = self.begin(&call, place).await?;
        if let Some((share, limited)) = grant.used_up() {
            return Ok(EffectAnswer::Go(self.budget.reached(share, limited)));
        }
        if let TaskTarget::Named(name) = &call.target
            && let Some(workflow) = self.context.library.get(&**name)
        {
            return self.workflow(workflow, &call).await;
        }
        let (request, origin) = match requested(&call) {
            Ok(requested) => requested,
            Err(error) => return Ok(EffectAnswer::Go(ResumeInput::Reply(error.to_result("")))),
        };
        let described = matches!(call.target, TaskTarget::Described(_));
        let scope = TaskScope {
            branch: self.branch.child(self.effects),
            parent: Some(self.branch.clone()),
            started_ms: began_ms,
            cancel: self.cancel.child_token(),
            progress: Arc::default(),
            path: if described { ExecutionPath::Plain } else { ExecutionPath::Template },
            chain: Vec::new(),
            left: Some(grant.for_task(self.accepted_tokens)),
            earlier: self.earlier.clone(),
            handover: None,
            history: Arc::clone(&self.context.history),
        };
        let kept = request.history_config.unwrap_or_default().record_in_session_history;
        let mut outcome = self.context.tasks.execute(request, origin, scope).await?;
        let result =
            outcome.result.take().map_or_else(|| TaskResult::complete(&outcome.answer), |result| *result);
        if kept {
            if self.earlier.len() == MAX_EARLIER {
                self.earlier.remove(0);
            }
            self.earlier.push((call.callee().to_owned(), result.clone()));
        }
        Ok(self.answer(&outcome, result, grant))
    }

    /// Journals the start of a task, with its budget.
    async fn begin(
        &self,
        call: &TaskCall,
        place: &SourceLocation,
    ) -> Result<(RemainingShares, i64), RunAborted> {
        let args = json!({
            "form": match call.form { CallForm::Call => "call", CallForm::Spawn => "spawn" },
            "inputs": call.inputs,
            "settings": call.settings,
            "at": at(place),
        });
        let grant = self.budget.remaining(self.active_ms);
        let step = self.call(StepKind::Environment, call.callee(), args);
        let recorded = self.context.engine.step(step, async move { grant }).await?;
        Ok((recorded.value, recorded.at_ms))
    }

    /// Records what a task used, and returns its result or the limit that ended it.
    fn answer(&mut self, outcome: &TaskOutcome, result: TaskResult, grant: RemainingShares) -> EffectAnswer {
        self.context.count(outcome);
        let spent = &outcome.spent;
        self.active_ms += spent.active_ms;
        self.budget.spend(spent);
        self.accepted_tokens = outcome.accepted_tokens.or(self.accepted_tokens);
        if outcome.status == TaskStatus::Cancelled {
            return EffectAnswer::Cancelled;
        }
        let reason = TaskError::from_outcome(outcome).and_then(|error| error.reason);
        let exhausted = [
            // If the task's own limit is smaller, the task itself failed, not the region.
            (grant.turns.filter(|share| u64::from(spent.turns) >= share.left), LimitKind::Turns),
            (grant.tokens.filter(|share| spent.tokens() > share.left), LimitKind::Tokens),
            (grant.ms.filter(|share| spent.active_ms >= share.left), LimitKind::Time),
            (grant.micros, LimitKind::Money),
        ];
        for (share, limited) in exhausted {
            let ended = match limited {
                LimitKind::Turns => reason == Some(Reason::Turns),
                LimitKind::Time => reason == Some(Reason::Time),
                LimitKind::Money => reason == Some(Reason::Cost),
                LimitKind::Tokens => true,
            };
            if let Some(share) = share.filter(|_| ended) {
                return EffectAnswer::Go(self.budget.reached(share, limited));
            }
        }
        EffectAnswer::Go(ResumeInput::Reply(result))
    }
}
