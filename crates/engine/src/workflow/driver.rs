//! Drives a workflow's machine: performs each effect as steps of the machine's branch and resumes it with the answer.
//!
//! The main branch and every element of a `pmap` have a driver of their own. What kinds of effect need is in
//! `tools` (calls of tools), `tasks` (calls of tasks), `parallel` (`pmap`), `asking` and `context`; what may be spent is in `budget`.
//!
//! Everything here is a function of the journal: a driver that is started again on the same branch asks the same
//! things in the same order, and is answered from what was recorded.

use fusee_journal::event::Event;
use fusee_journal::{BoxFuture, Branch, Call, Kind, Recorded, Stop};
use fusee_lang::{Effect, EffectKind, Failure, Fault, Input, Machine, Place, Value, Yield};
use fusee_model::CancellationToken;
use serde_json::{Value as Json, json};

use super::budget::Budget;
use super::element::Element;
use super::world::World;
use crate::agent::Facts;
use crate::task_system::TaskResult;

/// How the evaluation of a branch ended.
pub(crate) enum End {
    Done(Value),
    Failed(Box<Fault>),
    /// Another branch failed, so this one was stopped.
    Cancelled,
}

/// The answer to an effect.
pub(super) enum Answer {
    Go(Input),
    /// The effect was cut off because the branch is cancelled.
    Cancelled,
}

/// One branch of a workflow under way.
pub(crate) struct Driver<'w> {
    pub(super) world: &'w World,
    pub(super) branch: Branch,
    /// Stops this branch when another one failed.
    pub(super) cancel: CancellationToken,
    /// Effects so far: names what each of them opens.
    pub(super) effects: u64,
    /// Working time so far, that of the branches around included.
    pub(super) active_ms: u64,
    pub(super) budget: Budget,
    /// What it did itself.
    pub(super) facts: Facts,
    /// Set for an element of a `pmap`.
    pub(super) element: Option<Element>,
    /// Where a cancelled branch stopped, when it is gone through again.
    pub(super) stops_after: Option<u64>,
    /// Workflows around this one.
    pub(super) depth: u32,
    /// What its tasks came to so far, for those that want the results of earlier steps.
    pub(super) earlier: Vec<(String, TaskResult)>,
}

impl<'w> Driver<'w> {
    /// The driver of a workflow's own branch.
    pub(crate) fn main(world: &'w World, branch: Branch) -> Self {
        let budget = Budget::of_the_run(world.seconds(), world.usd());
        Self {
            world,
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
        }
    }

    /// Runs the machine to its end. An error means that the run cannot go on.
    pub(crate) fn drive<'a>(&'a mut self, machine: &'a mut Machine) -> BoxFuture<'a, Result<End, Stop>> {
        // Boxed, since elements of a `pmap` are driven from inside.
        Box::pin(async move {
            let end = self.evaluate(machine).await?;
            self.close_element(&end);
            Ok(end)
        })
    }

    async fn evaluate(&mut self, machine: &mut Machine) -> Result<End, Stop> {
        let mut input = Input::Go;
        loop {
            let effect = match machine.resume(input) {
                // It was stopped then, while it computed.
                Yield::Done(_) | Yield::Fault(_) if self.stops_after.is_some() => return Ok(End::Cancelled),
                Yield::Done(value) => return Ok(End::Done(value)),
                Yield::Fault(fault) => return Ok(End::Failed(fault)),
                Yield::Effect(effect) => effect,
                Yield::Pause => {
                    // A long computation lets others work, and is stopped when it is not needed any more.
                    tokio::task::yield_now().await;
                    if self.is_over() {
                        return Ok(End::Cancelled);
                    }
                    input = Input::Go;
                    continue;
                }
            };
            if self.is_over() {
                return Ok(End::Cancelled);
            }
            let takes_time = costs(&effect.kind);
            let answer = self.perform(effect).await?;
            self.effects += 1;
            input = match answer {
                Answer::Go(input) => {
                    self.budget.out_of_time(self.active_ms).filter(|_| takes_time).unwrap_or(input)
                }
                Answer::Cancelled => return Ok(End::Cancelled),
            };
        }
    }

    /// Whether the branch is to go no further: it is stopped now, or it was stopped here.
    fn is_over(&self) -> bool {
        self.stops_after == Some(self.effects) || self.cancel.is_cancelled()
    }

    async fn perform(&mut self, effect: Effect) -> Result<Answer, Stop> {
        let Effect { kind, place } = effect;
        if let Some(input) = self.budget.out_of_time(self.active_ms).filter(|_| costs(&kind)) {
            return Ok(Answer::Go(input));
        }
        self.world.trace(&self.branch, &place, &kind);
        let answer = match kind {
            EffectKind::Task(call) => self.task(*call, &place).await?,
            EffectKind::Tool(call) => self.tool(call).await?,
            EffectKind::FanOut(fan_out) => self.side_by_side(fan_out, &place).await?,
            EffectKind::Context(query) => self.context(query).await?,
            EffectKind::AskUser { question } => self.ask(&question).await?,
            EffectKind::Wait { seconds } => self.wait(seconds).await?,
            EffectKind::Log { message } => {
                self.emit(Event::Log { message });
                Answer::Go(Input::Go)
            }
            EffectKind::EnterLimits { limits, .. }
                if limits.usd.is_some() && self.world.session.price.is_none() =>
            {
                Answer::Go(Input::Failed(unknown_price()))
            }
            EffectKind::EnterLimits { id, limits } => {
                self.budget.enter(id, limits, self.active_ms);
                Answer::Go(Input::Go)
            }
            EffectKind::LeaveLimits { id } => {
                self.budget.leave(id);
                Answer::Go(Input::Go)
            }
        };
        if let Answer::Go(input) = &answer {
            self.world.trace_answer(&self.branch, &place, input);
        }
        Ok(answer)
    }

    /// Waits before a retry, as a step: a run that is killed meanwhile does not try earlier than it was told to.
    async fn wait(&mut self, seconds: f64) -> Result<Answer, Stop> {
        let call = self.call(Kind::Wait, "retry", json!({ "seconds": seconds }));
        let left = self.budget.left_ms(self.active_ms).unwrap_or(u64::MAX);
        let pause = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let pause = pause.min(std::time::Duration::from_millis(left));
        let cancel = &self.cancel;
        let body = Box::new(move || {
            let wait = async move {
                let slept = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
                json!({ "cancelled": slept.is_none() })
            };
            Box::pin(wait) as BoxFuture<'_, Json>
        });
        let recorded = self.world.engine.step(call, body).await?;
        self.active_ms += recorded.duration_ms;
        Ok(match recorded.value["cancelled"] == Json::Bool(true) {
            true => Answer::Cancelled,
            false => Answer::Go(Input::Go),
        })
    }

    pub(super) fn call(&self, kind: Kind, callee: &str, args: Json) -> Call {
        Call { branch: self.branch.clone(), kind, callee: callee.to_owned(), args }
    }

    pub(super) fn passed(&mut self, recorded: &Recorded) {
        self.active_ms += recorded.duration_ms;
    }
}

/// Whether an effect takes time, which limits are for.
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

/// A place as a fingerprint has it.
pub(super) fn at(place: &Place) -> String {
    place.to_string()
}

/// A limit of money that could not be kept is refused, not ignored.
fn unknown_price() -> Failure {
    Failure {
        kind: "TASK_FAILURE".to_owned(),
        reason: Some("configuration_error".to_owned()),
        message: "`:usd` cannot be kept: the price of this model is not known; set `price.input` and \
                  `price.output` in the configuration"
            .to_owned(),
        cause: None,
    }
}
