//! `pmap`: runs elements in parallel, each on its own branch.
//!
//! The outcome of the race is one step of the enclosing branch: which element failed first, and how many
//! effects each had performed when it ended. With that and the journal of the elements, a replay produces the
//! same values or the same failure without a race.

use fusee_journal::{BoxFuture, Kind, Stop};
use fusee_lang::{FanOut, Input, Place, Value};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use super::driver::{Answer, Driver, End, at};
use super::element::Element;
use crate::agent::Facts;

/// Default number of parallel elements.
const LIMIT: usize = 8;

/// Outcome of the race, as journaled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Decision {
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
struct Ended {
    index: usize,
    end: End,
    effects: u64,
}

impl Driver<'_> {
    pub(super) async fn side_by_side(&mut self, fan_out: FanOut, place: &Place) -> Result<Answer, Stop> {
        let args = json!({ "count": fan_out.len(), "limit": fan_out.limit(), "at": at(place) });
        let call = self.call(Kind::FanOut, "pmap", args);
        let (stop, stopped) = oneshot::channel();
        let mut ends: Vec<Option<End>> = Vec::new();
        let recorded = {
            let (this, fan_out, ends) = (&*self, &fan_out, &mut ends);
            let body = Box::new(move || {
                let race = async move {
                    match this.race(fan_out, ends, place).await {
                        Ok(decision) => serde_json::to_value(decision).unwrap_or_default(),
                        Err(cause) => {
                            // There is no outcome, so nothing must be journaled.
                            let _ = stop.send(cause);
                            std::future::pending().await
                        }
                    }
                };
                Box::pin(race) as BoxFuture<'_, Json>
            });
            tokio::select! {
                recorded = self.world.engine.step(call, body) => recorded?,
                Ok(cause) = stopped => return Err(cause),
            }
        };
        self.passed(&recorded);
        let replayed = recorded.replayed;
        let decision: Decision = recorded.read()?;
        if replayed {
            ends = self.again(&fan_out, &decision, place).await?;
        }
        Ok(answer(decision, ends))
    }

    /// Runs the elements. The first failure stops the others at their next effect.
    async fn race(
        &self,
        fan_out: &FanOut,
        ends: &mut Vec<Option<End>>,
        place: &Place,
    ) -> Result<Decision, Stop> {
        let limit = fan_out.limit().unwrap_or(LIMIT).max(1);
        let token = self.cancel.child_token();
        ends.resize_with(fan_out.len(), || None);
        let mut decision = Decision::default();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < limit && decision.effects.len() < fan_out.len() && !token.is_cancelled() {
                let index = decision.effects.len();
                decision.effects.push(0);
                let driver = Driver { cancel: token.clone(), ..self.child(index, fan_out.len(), place) };
                running.push(element(driver, fan_out, index));
            }
            let Some(ended) = running.next().await else { break };
            let Ended { index, end, effects } = ended?;
            decision.effects[index] = effects;
            match &end {
                End::Done(_) => {}
                End::Cancelled => decision.stopped.push(index),
                End::Failed(_) => {
                    decision.failed.get_or_insert(index);
                    token.cancel();
                }
            }
            ends[index] = Some(end);
        }
        decision.cancelled =
            decision.failed.is_none() && ends.iter().any(|end| !matches!(end, Some(End::Done(_))));
        Ok(decision)
    }

    /// Replays the elements according to the recorded outcome; everything they request is in the journal.
    async fn again(
        &self,
        fan_out: &FanOut,
        decision: &Decision,
        place: &Place,
    ) -> Result<Vec<Option<End>>, Stop> {
        let mut ends = Vec::new();
        ends.resize_with(fan_out.len(), || None);
        for (index, effects) in decision.effects.iter().enumerate() {
            let child = self.child(index, fan_out.len(), place);
            let stops_after = decision.stopped.contains(&index).then_some(*effects);
            let driver = Driver { stops_after, ..child };
            ends[index] = Some(element(driver, fan_out, index).await?.end);
        }
        Ok(ends)
    }

    fn child(&self, index: usize, count: usize, place: &Place) -> Driver<'_> {
        let request = format!("element {} of {count} of the pmap at {}", index + 1, at(place));
        Driver {
            world: self.world,
            branch: self.branch.child(format_args!("{}.{index}", self.effects)),
            cancel: self.cancel.clone(),
            effects: 0,
            active_ms: self.active_ms,
            budget: self.budget.clone(),
            facts: Facts::default(),
            element: Some(Element { request, parent: self.branch.to_string(), started: false }),
            stops_after: None,
            depth: self.depth,
            earlier: self.earlier.clone(),
        }
    }
}

async fn element(mut driver: Driver<'_>, fan_out: &FanOut, index: usize) -> Result<Ended, Stop> {
    let end = match fan_out.machine(index) {
        Some(mut machine) => driver.drive(&mut machine).await?,
        None => End::Done(Value::Nil),
    };
    Ok(Ended { index, end, effects: driver.effects })
}

fn answer(decision: Decision, ends: Vec<Option<End>>) -> Answer {
    if decision.cancelled {
        return Answer::Cancelled;
    }
    let mut ends = ends;
    if let Some(End::Failed(fault)) =
        decision.failed.and_then(|index| ends.get_mut(index).and_then(Option::take))
    {
        return Answer::Go(Input::BranchFailed(fault));
    }
    let values = ends.into_iter().map(|end| match end {
        Some(End::Done(value)) => value,
        _ => Value::Nil,
    });
    Answer::Go(Input::Branches(values.collect()))
}
