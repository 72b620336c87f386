//! Task calls of a program: each runs as a task on its own branch, after one step that records its start time
//! and budget.

use std::sync::Arc;

use fusee_journal::event::{TaskStatus, TurnType};
use fusee_journal::{RunAborted, StepKind};
use fusee_lang::{CallForm, CallReply, ResumeInput, SourceLocation, Status, TaskCall, TaskTarget};
use serde_json::{Map, Value as Json, json};

use super::atom_prompt::{self, AtomPrompt};
use super::budget::{LimitKind, TaskGrant, micros};
use super::driver::{EffectAnswer, WorkflowDriver, at};
use crate::agent::{AgentTask, Limits, TaskOutcome};
use crate::prompt::PromptKind;
use crate::task_system::{
    ExecutionPath, LimitOverrides, Reason, ResourceMetrics, TaskResult, TemplateTaskError,
};

impl WorkflowDriver<'_> {
    pub(super) async fn task(
        &mut self,
        call: TaskCall,
        place: &SourceLocation,
    ) -> Result<EffectAnswer, RunAborted> {
        let (grant, began_ms) = self.begin(&call, place).await?;
        let shares = [
            (grant.turns, LimitKind::Turns),
            (grant.tokens, LimitKind::Tokens),
            (grant.ms, LimitKind::Time),
            (grant.micros, LimitKind::Money),
        ];
        for (share, limited) in shares {
            if let Some(share) = share.filter(|share| share.left == 0) {
                return Ok(EffectAnswer::Go(self.budget.reached(share, limited)));
            }
        }
        if let TaskTarget::Named(name) = &call.target
            && let Some(workflow) = self.world.library.get(&**name)
        {
            return self.workflow(workflow, &call).await;
        }
        if let TaskTarget::Named(name) = &call.target {
            return self.template(name, &call, grant, began_ms).await;
        }
        let prompted = match atom_prompt::prompt(&call, &self.world.history) {
            Ok(prompted) => prompted,
            Err(error) => {
                return Ok(EffectAnswer::Go(ResumeInput::Reply(reply(TaskResult::failed(&error, "")))));
            }
        };
        let prompted = match self.with_files(prompted, &call).await? {
            Ok(prompted) => prompted,
            Err(answer) => return Ok(answer),
        };
        let limits = match limits(self.world.session.limits, &call.settings, grant) {
            Ok(limits) => limits,
            Err(error) => {
                return Ok(EffectAnswer::Go(ResumeInput::Reply(reply(TaskResult::failed(&error, "")))));
            }
        };
        let outcome = self.run_task(&prompted, limits, began_ms).await?;
        Ok(self.spent(outcome, grant, |outcome, error| result(outcome, error, &prompted)))
    }

    /// Records what a task used, and returns the answer.
    pub(super) fn spent(
        &mut self,
        outcome: TaskOutcome,
        grant: TaskGrant,
        result: impl FnOnce(TaskOutcome, Option<TemplateTaskError>) -> TaskResult,
    ) -> EffectAnswer {
        self.world.count(&outcome);
        self.active_ms += outcome.active_ms;
        let usage = outcome.usage();
        let tokens = usage.input_tokens + usage.output_tokens;
        let cost = micros(outcome.charges.known_usd());
        self.budget.spend(u64::from(outcome.total_turns), tokens, cost);
        self.answer(outcome, result, grant, tokens)
    }

    /// Journals the start of a task, with its budget.
    async fn begin(&self, call: &TaskCall, place: &SourceLocation) -> Result<(TaskGrant, i64), RunAborted> {
        let args = json!({
            "form": match call.form { CallForm::Call => "call", CallForm::Spawn => "spawn" },
            "inputs": call.inputs,
            "settings": call.settings,
            "at": at(place),
        });
        let grant = self.budget.grant(self.active_ms);
        let step = self.call(StepKind::Environment, call.callee(), args);
        let recorded = self.world.engine.step(step, async move { grant }).await?;
        Ok((recorded.value, recorded.at_ms))
    }

    async fn run_task(
        &self,
        prompted: &AtomPrompt,
        limits: Limits,
        began_ms: i64,
    ) -> Result<TaskOutcome, RunAborted> {
        let world = self.world;
        let system = prompted
            .system
            .clone()
            .unwrap_or_else(|| crate::prompt::default_system(&world.environment, PromptKind::default()));
        AgentTask::new(
            Arc::new(world.session.for_child(limits)),
            Arc::clone(&world.engine),
            self.branch.child(self.effects),
            world.submission_id(),
            system,
            prompted.request.clone(),
            TurnType::User,
        )
        .child_of(self.branch.clone())
        .with_cancel(self.cancel.child_token(), Arc::default())
        .run(began_ms)
        .await
    }

    fn answer(
        &self,
        outcome: TaskOutcome,
        result: impl FnOnce(TaskOutcome, Option<TemplateTaskError>) -> TaskResult,
        grant: TaskGrant,
        tokens: u64,
    ) -> EffectAnswer {
        if outcome.status == TaskStatus::Cancelled {
            return EffectAnswer::Cancelled;
        }
        let error = TemplateTaskError::of(&outcome);
        let ended_by = |limited| match limited {
            LimitKind::Turns => error.as_ref().is_some_and(|error| error.reason == Some(Reason::Turns)),
            LimitKind::Time => error.as_ref().is_some_and(|error| error.reason == Some(Reason::Time)),
            LimitKind::Money => error.as_ref().is_some_and(|error| error.reason == Some(Reason::Cost)),
            LimitKind::Tokens => grant.tokens.is_some_and(|share| tokens > share.left),
        };
        let used_up = |limited: LimitKind| match limited {
            // If the task's own limit is smaller, the task itself failed, not the region.
            LimitKind::Turns => grant.turns.filter(|share| u64::from(outcome.total_turns) >= share.left),
            LimitKind::Time => grant.ms.filter(|share| outcome.active_ms >= share.left),
            LimitKind::Tokens => grant.tokens,
            LimitKind::Money => grant.micros,
        };
        for limited in [LimitKind::Turns, LimitKind::Tokens, LimitKind::Time, LimitKind::Money] {
            if let Some(share) = used_up(limited).filter(|_| ended_by(limited)) {
                return EffectAnswer::Go(self.budget.reached(share, limited));
            }
        }
        EffectAnswer::Go(ResumeInput::Reply(reply(result(outcome, error))))
    }
}

fn result(outcome: TaskOutcome, error: Option<TemplateTaskError>, prompted: &AtomPrompt) -> TaskResult {
    let metrics = ResourceMetrics::of(&outcome);
    let mut result = match error {
        Some(error) => TaskResult::failed(&error, outcome.answer),
        None if outcome.blocked => {
            let message = format!("the model is blocked: {}", outcome.answer);
            let error = TemplateTaskError::failure(Reason::UnexpectedError, message).measured(metrics);
            TaskResult::failed(&error, outcome.answer)
        }
        None => atom_prompt::formed(outcome.answer, prompted.format.as_ref(), metrics),
    };
    result.note("template_used", &prompted.name);
    result.note("context_source", prompted.context_source());
    result.note("context_files_count", prompted.files);
    if let Some(turns) = prompted.history_turns {
        result.note("history_turns", turns);
    }
    result.note(
        "execution_path",
        if prompted.described { ExecutionPath::Plain } else { ExecutionPath::Template },
    );
    result.measure(metrics);
    result
}

/// Converts a result to the language's form.
pub(super) fn reply(result: TaskResult) -> CallReply {
    let TaskResult { status, content, parsed_content, notes } = result;
    let status = match status {
        crate::task_system::Status::Complete => Status::Complete,
        crate::task_system::Status::Continuation => Status::Continuation,
        crate::task_system::Status::Failed => Status::Failed,
    };
    CallReply { status, content, parsed: parsed_content, notes }
}

/// Merges the limits of one task: the run's, those of the call, and the granted budget.
fn limits(run: Limits, settings: &Map<String, Json>, grant: TaskGrant) -> Result<Limits, TemplateTaskError> {
    let asked: LimitOverrides = match settings.get("limits") {
        None | Some(Json::Null) => LimitOverrides::default(),
        Some(limits) => serde_json::from_value(limits.clone()).map_err(|error| {
            TemplateTaskError::invalid(Reason::InputValidationFailure, format!("invalid `limits`: {error}"))
        })?,
    };
    let mut limits = run;
    limits.max_turns = asked.max_turns.unwrap_or(limits.max_turns);
    limits.max_tokens = asked.max_tokens.unwrap_or(limits.max_tokens);
    // The run's own time limit is part of the grant.
    limits.task_timeout_s = asked.timeout;
    Ok(granted(limits, grant))
}

/// Caps limits by the granted budget.
pub(super) fn granted(mut limits: Limits, grant: TaskGrant) -> Limits {
    if let Some(share) = grant.turns {
        limits.max_turns = limits.max_turns.min(u32::try_from(share.left).unwrap_or(u32::MAX));
    }
    if let Some(share) = grant.ms {
        let seconds = share.left.div_ceil(1000).max(1);
        limits.task_timeout_s = Some(limits.task_timeout_s.map_or(seconds, |own| own.min(seconds)));
    }
    if let Some(share) = grant.micros {
        limits.budget_usd = Some(share.left as f64 / 1e6);
    }
    limits
}

/// Whether a call describes its task in words.
pub(super) fn is_described(call: &TaskCall) -> bool {
    matches!(call.target, TaskTarget::Described(_))
}
