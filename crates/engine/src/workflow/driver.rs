//! Drives a workflow's machine: performs each effect as steps of the machine's branch and resumes it
//! with the answer.
//!
//! The main branch and every element of a `pmap` have their own driver. Effects are implemented in
//! `tool_calls`, `task_calls`, `pmap`, `ask_user` and `get_context`; `budget` limits what they may use.
//!
//! Everything here is a function of the journal: a driver restarted on the same branch requests the
//! same steps in the same order, and gets the recorded answers.

use fusee_journal::event::Event;
use fusee_journal::{BoxFuture, Branch, RunAborted, StepKind, StepRequest, StepResult};
use fusee_lang::{
    Effect, EffectFailure, EffectKind, Machine, ResumeInput, RuntimeError, SourceLocation, Value, Yield,
};
use fusee_model::CancellationToken;
use serde_json::{Value as Json, json};

use super::budget::Budget;
use super::pmap_element::PmapElement;
use super::workflow_context::WorkflowContext;
use crate::agent::Facts;
use crate::agent::RetryWait;
use crate::task_system::TaskResult;

/// End of a branch's evaluation.
pub(crate) enum BranchEnd {
    Done(Value),
    Failed(Box<RuntimeError>),
    /// Stopped because another branch failed.
    Cancelled,
}

/// How the evaluator goes on after an effect.
pub(super) enum EffectAnswer {
    Go(ResumeInput),
    /// The effect was interrupted because the branch is cancelled.
    Cancelled,
}

/// One running branch of a workflow.
pub(crate) struct WorkflowDriver<'w> {
    pub(super) context: &'w WorkflowContext,
    pub(super) branch: Branch,
    /// Cancelled when another branch fails.
    pub(super) cancel: CancellationToken,
    /// Number of effects so far; used in the names of child branches and calls.
    pub(super) effects: u64,
    /// Active time so far, including that of enclosing branches.
    pub(super) active_ms: u64,
    pub(super) budget: Budget,
    /// Facts about its own tool calls.
    pub(super) facts: Facts,
    /// Set for an element of a `pmap`.
    pub(super) element: Option<PmapElement>,
    /// Number of effects after which a cancelled branch stopped, when it is replayed.
    pub(super) stops_after: Option<u64>,
    /// Number of enclosing workflows.
    pub(super) depth: u32,
    /// Results of its tasks so far, for tasks that accumulate earlier results.
    pub(super) earlier: Vec<(String, TaskResult)>,
    /// Tokens of context that the model's server accepts, as far as its tasks found out.
    pub(super) accepted_tokens: Option<u64>,
}

impl<'w> WorkflowDriver<'w> {
    /// Creates the driver of a workflow's main branch.
    pub(crate) fn main(context: &'w WorkflowContext, branch: Branch) -> Self {
        let budget = Budget::from_run_limits(context.seconds(), context.usd());
        Self {
            context,
            branch,
            cancel: CancellationToken::new(),
            effects: 0,
            active_ms: 0,
            budget,
            facts: Facts::default(),
            element: None,
            stops_after: None,
            depth: 0,
            earlier: Vec::new(),
            accepted_tokens: None,
        }
    }

    /// Runs the machine to its end. An error means that the run cannot continue.
    pub(crate) fn drive<'a>(
        &'a mut self,
        machine: &'a mut Machine,
    ) -> BoxFuture<'a, Result<BranchEnd, RunAborted>> {
        // Boxed, because elements of a `pmap` are driven recursively.
        Box::pin(async move {
            let end = self.evaluate(machine).await?;
            self.close_element(&end);
            Ok(end)
        })
    }

    async fn evaluate(&mut self, machine: &mut Machine) -> Result<BranchEnd, RunAborted> {
        let mut input = ResumeInput::Go;
        loop {
            let effect = match machine.resume(input) {
                // In the original run it was stopped during this computation.
                Yield::Done(_) | Yield::Fault(_) if self.stops_after.is_some() => {
                    return Ok(BranchEnd::Cancelled);
                }
                Yield::Done(value) => return Ok(BranchEnd::Done(value)),
                Yield::Fault(fault) => return Ok(BranchEnd::Failed(fault)),
                Yield::Effect(effect) => effect,
                Yield::Pause => {
                    // A long computation yields to others, and stops once it is no longer needed.
                    tokio::task::yield_now().await;
                    if self.is_over() {
                        return Ok(BranchEnd::Cancelled);
                    }
                    input = ResumeInput::Go;
                    continue;
                }
            };
            if self.is_over() {
                return Ok(BranchEnd::Cancelled);
            }
            let takes_time = costs(&effect.kind);
            let answer = self.perform(effect).await?;
            self.effects += 1;
            input = match answer {
                EffectAnswer::Go(input) => {
                    self.budget.out_of_time(self.active_ms).filter(|_| takes_time).unwrap_or(input)
                }
                EffectAnswer::Cancelled => return Ok(BranchEnd::Cancelled),
            };
        }
    }

    /// Whether the branch must stop: it is cancelled now, or it was cancelled at this point before.
    fn is_over(&self) -> bool {
        self.stops_after == Some(self.effects) || self.cancel.is_cancelled()
    }

    async fn perform(&mut self, effect: Effect) -> Result<EffectAnswer, RunAborted> {
        let Effect { kind, location: place } = effect;
        if let Some(input) = self.budget.out_of_time(self.active_ms).filter(|_| costs(&kind)) {
            return Ok(EffectAnswer::Go(input));
        }
        self.context.trace(&self.branch, &place, &kind);
        let answer = match kind {
            EffectKind::Task(call) => self.task(*call, &place).await?,
            EffectKind::Tool(call) => self.tool(call).await?,
            EffectKind::FanOut(fan_out) => self.pmap(fan_out, &place).await?,
            EffectKind::Context(query) => self.context(query).await?,
            EffectKind::AskUser { question } => self.ask(&question).await?,
            EffectKind::Wait { seconds } => self.wait(seconds).await?,
            EffectKind::Log { message } => {
                self.emit(Event::Log { message });
                EffectAnswer::Go(ResumeInput::Go)
            }
            EffectKind::EnterLimits { limits, .. }
                if limits.usd.is_some() && self.context.session.limits.price.is_none() =>
            {
                EffectAnswer::Go(ResumeInput::Failed(unknown_price()))
            }
            EffectKind::EnterLimits { id, limits } => {
                self.budget.enter(id, limits, self.active_ms);
                EffectAnswer::Go(ResumeInput::Go)
            }
            EffectKind::LeaveLimits { id } => {
                self.budget.leave(id);
                EffectAnswer::Go(ResumeInput::Go)
            }
        };
        if let EffectAnswer::Go(input) = &answer {
            self.context.trace_answer(&self.branch, &place, input);
        }
        Ok(answer)
    }

    /// Waits before a retry, as a step: a run that is killed meanwhile does not retry too early.
    async fn wait(&mut self, seconds: f64) -> Result<EffectAnswer, RunAborted> {
        let call = self.call(StepKind::Wait, "retry", json!({ "seconds": seconds }));
        let left = self.budget.left_ms(self.active_ms).unwrap_or(u64::MAX);
        let pause = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let pause = pause.min(std::time::Duration::from_millis(left));
        let cancel = &self.cancel;
        let body = async move {
            let slept = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
            RetryWait { cancelled: slept.is_none() }
        };
        let recorded = self.context.engine.step(call, body).await?;
        self.active_ms += recorded.duration_ms;
        Ok(match recorded.value.cancelled {
            true => EffectAnswer::Cancelled,
            false => EffectAnswer::Go(ResumeInput::Go),
        })
    }

    pub(super) fn call(&self, kind: StepKind, callee: &str, args: Json) -> StepRequest {
        StepRequest { branch: self.branch.clone(), kind, callee: callee.to_owned(), args }
    }

    pub(super) fn passed<T>(&mut self, recorded: &StepResult<T>) {
        self.active_ms += recorded.duration_ms;
    }
}

/// Whether an effect takes time that counts towards limits.
fn costs(kind: &EffectKind) -> bool {
    match kind {
        EffectKind::Task(_)
        | EffectKind::Tool(_)
        | EffectKind::Context(_)
        | EffectKind::FanOut(_)
        | EffectKind::Wait { .. } => true,
        EffectKind::AskUser { .. }
        | EffectKind::Log { .. }
        | EffectKind::EnterLimits { .. }
        | EffectKind::LeaveLimits { .. } => false,
    }
}

/// Formats a source location for a step's arguments.
pub(super) fn at(place: &SourceLocation) -> String {
    place.to_string()
}

/// A cost limit that cannot be enforced is rejected, not ignored.
fn unknown_price() -> EffectFailure {
    EffectFailure {
        kind: "TASK_FAILURE".to_owned(),
        reason: Some("configuration_error".to_owned()),
        message: "`:usd` cannot be enforced: the price of this model is unknown; set `price.input` and \
                  `price.output` in the configuration"
            .to_owned(),
        cause: None,
    }
}
