//! `pmap`: runs elements in parallel, each on its own branch.
//!
//! The outcome of the race is one step of the enclosing branch: which element failed first, and how many
//! effects each had performed when it ended. With that and the journal of the elements, a replay produces the
//! same values or the same failure without a race.

use fusee_journal::{RunAborted, StepKind, StepMeta};
use fusee_lang::{FanOut, ResumeInput, SourceLocation, Value};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;

use super::driver::{BranchEnd, EffectAnswer, WorkflowDriver, at};
use super::pmap_element::PmapElement;
use crate::agent::Facts;

/// Default number of parallel elements.
const LIMIT: usize = 8;

/// Outcome of the race, as journaled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RaceDecision {
    /// The element that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<usize>,
    /// Number of effects of each started element.
    effects: Vec<u64>,
    /// Elements that were stopped early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stopped: Vec<usize>,
    /// Whether the `pmap` was cancelled from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
}

/// A finished element.
struct FinishedElement {
    index: usize,
    end: BranchEnd,
    effects: u64,
}

impl WorkflowDriver<'_> {
    pub(super) async fn pmap(
        &mut self,
        fan_out: FanOut,
        place: &SourceLocation,
    ) -> Result<EffectAnswer, RunAborted> {
        let args = json!({ "count": fan_out.len(), "limit": fan_out.limit(), "at": at(place) });
        let call = self.call(StepKind::FanOut, "pmap", args);
        let (stop, stopped) = oneshot::channel();
        let mut ends: Vec<Option<BranchEnd>> = Vec::new();
        let recorded = {
            let (this, fan_out, ends) = (&*self, &fan_out, &mut ends);
            let body = async move {
                match this.race(fan_out, ends, place).await {
                    Ok(decision) => decision,
                    Err(cause) => {
                        // There is no outcome, so nothing must be journaled.
                        let _ = stop.send(cause);
                        std::future::pending().await
                    }
                }
            };
            tokio::select! {
                recorded = self.context.engine.step(call, body) => recorded?,
                Ok(cause) = stopped => return Err(cause),
            }
        };
        self.passed(&recorded);
        let (decision, StepMeta { replayed, .. }) = recorded.split();
        if replayed {
            ends = self.again(&fan_out, &decision, place).await?;
        }
        Ok(answer(decision, ends))
    }

    /// Runs the elements. The first failure stops the others at their next effect.
    async fn race(
        &self,
        fan_out: &FanOut,
        ends: &mut Vec<Option<BranchEnd>>,
        place: &SourceLocation,
    ) -> Result<RaceDecision, RunAborted> {
        let limit = fan_out.limit().unwrap_or(LIMIT).max(1);
        let token = self.cancel.child_token();
        ends.resize_with(fan_out.len(), || None);
        let mut decision = RaceDecision::default();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < limit && decision.effects.len() < fan_out.len() && !token.is_cancelled() {
                let index = decision.effects.len();
                decision.effects.push(0);
                let driver =
                    WorkflowDriver { cancel: token.clone(), ..self.child(index, fan_out.len(), place) };
                running.push(element(driver, fan_out, index));
            }
            let Some(ended) = running.next().await else { break };
            let FinishedElement { index, end, effects } = ended?;
            decision.effects[index] = effects;
            match &end {
                BranchEnd::Done(_) => {}
                BranchEnd::Cancelled => decision.stopped.push(index),
                BranchEnd::Failed(_) => {
                    decision.failed.get_or_insert(index);
                    token.cancel();
                }
            }
            ends[index] = Some(end);
        }
        decision.cancelled =
            decision.failed.is_none() && ends.iter().any(|end| !matches!(end, Some(BranchEnd::Done(_))));
        Ok(decision)
    }

    /// Replays the elements according to the recorded outcome; everything they request is in the journal.
    async fn again(
        &self,
        fan_out: &FanOut,
        decision: &RaceDecision,
        place: &SourceLocation,
    ) -> Result<Vec<Option<BranchEnd>>, RunAborted> {
        let mut ends = Vec::new();
        ends.resize_with(fan_out.len(), || None);
        for (index, effects) in decision.effects.iter().enumerate() {
            let child = self.child(index, fan_out.len(), place);
            let stops_after = decision.stopped.contains(&index).then_some(*effects);
            let driver = WorkflowDriver { stops_after, ..child };
            ends[index] = Some(element(driver, fan_out, index).await?.end);
        }
        Ok(ends)
    }

    fn child(&self, index: usize, count: usize, place: &SourceLocation) -> WorkflowDriver<'_> {
        let request = format!("element {} of {count} of the pmap at {}", index + 1, at(place));
        WorkflowDriver {
            context: self.context,
            branch: self.branch.child(format_args!("{}.{index}", self.effects)),
            cancel: self.cancel.clone(),
            effects: 0,
            active_ms: self.active_ms,
            budget: self.budget.clone(),
            facts: Facts::default(),
            element: Some(PmapElement { request, parent: self.branch.to_string(), started: false }),
            stops_after: None,
            depth: self.depth,
            earlier: self.earlier.clone(),
            accepted_tokens: self.accepted_tokens,
        }
    }
}

async fn element(
    mut driver: WorkflowDriver<'_>,
    fan_out: &FanOut,
    index: usize,
) -> Result<FinishedElement, RunAborted> {
    let end = match fan_out.machine(index) {
        Some(mut machine) => driver.drive(&mut machine).await?,
        None => BranchEnd::Done(Value::Nil),
    };
    Ok(FinishedElement { index, end, effects: driver.effects })
}

fn answer(decision: RaceDecision, ends: Vec<Option<BranchEnd>>) -> EffectAnswer {
    if decision.cancelled {
        return EffectAnswer::Cancelled;
    }
    let mut ends = ends;
    if let Some(BranchEnd::Failed(fault)) =
        decision.failed.and_then(|index| ends.get_mut(index).and_then(Option::take))
    {
        return EffectAnswer::Go(ResumeInput::BranchFailed(fault));
    }
    let values = ends.into_iter().map(|end| match end {
        Some(BranchEnd::Done(value)) => value,
        _ => Value::Nil,
    });
    EffectAnswer::Go(ResumeInput::Branches(values.collect()))
}
