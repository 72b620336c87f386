//! `pmap`: runs elements in parallel, each on its own branch.
//!
//! One step of the enclosing branch records how the elements ended: which one failed first, and how many effects
//! each had performed. With that and the journal of the elements, a replay produces the same values or the same
//! failure without a race.

use fusee_journal::{ChildBody, ChildEnd, FanOutEnd, RunAborted, StepKind, StepMeta};
use fusee_lang::{FanOut, ResumeInput, SourceLocation, Value};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::driver::{BranchEnd, EffectAnswer, WorkflowDriver, at};
use super::pmap_element::PmapElement;
use crate::agent::Facts;

/// Default number of parallel elements.
const LIMIT: usize = 8;

/// Ends of the elements that were started, by index.
type ElementEnds = Vec<Option<BranchEnd>>;

impl WorkflowDriver<'_> {
    pub(super) async fn pmap(
        &mut self,
        fan_out: FanOut,
        place: &SourceLocation,
    ) -> Result<EffectAnswer, RunAborted> {
        let args = json!({ "count": fan_out.len(), "limit": fan_out.limit(), "at": at(place) });
        let call = self.call(StepKind::FanOut, "pmap", args);
        let mut none = ElementEnds::new();
        none.resize_with(fan_out.len(), || None);
        let ends = Mutex::new(none);
        let recorded = {
            let (this, fan_out, ends) = (&*self, &fan_out, &ends);
            let child = |index| -> ChildBody<'_> {
                Box::new(move |stop| {
                    let driver = this.child_driver(index, fan_out.len(), place);
                    let driver = WorkflowDriver { cancel: stop, ..driver };
                    Box::pin(run_child(driver, fan_out, index, ends))
                })
            };
            let children = (0..fan_out.len()).map(child).collect();
            let limit = fan_out.limit().unwrap_or(LIMIT);
            this.context.engine.fan_out(call, children, limit, &this.cancel).await?
        };
        self.passed(&recorded);
        let (end, StepMeta { replayed, .. }) = recorded.split();
        let ends = match replayed {
            true => self.replay_elements(&fan_out, &end, place).await?,
            false => ends.into_inner(),
        };
        Ok(answer(&end, ends))
    }

    /// Runs the elements again as far as they came; everything they request is in the journal.
    async fn replay_elements(
        &self,
        fan_out: &FanOut,
        recorded: &FanOutEnd,
        place: &SourceLocation,
    ) -> Result<ElementEnds, RunAborted> {
        let mut ends = ElementEnds::new();
        for (index, effects) in recorded.reports.iter().enumerate() {
            let child = self.child_driver(index, fan_out.len(), place);
            let stopped = recorded.stopped.contains(&index);
            let stops_after = effects.as_u64().filter(|_| stopped);
            let mut driver = WorkflowDriver { stops_after, ..child };
            ends.push(Some(driver.element(fan_out, index).await?));
        }
        ends.resize_with(fan_out.len(), || None);
        Ok(ends)
    }

    /// Runs an element to its end.
    async fn element(&mut self, fan_out: &FanOut, index: usize) -> Result<BranchEnd, RunAborted> {
        match fan_out.machine(index) {
            Some(mut machine) => self.drive(&mut machine).await,
            None => Ok(BranchEnd::Done(Value::Nil)),
        }
    }

    fn child_driver(&self, index: usize, count: usize, place: &SourceLocation) -> WorkflowDriver<'_> {
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

/// Runs an element and keeps its end; the record of the step holds the number of its effects.
async fn run_child(
    mut driver: WorkflowDriver<'_>,
    fan_out: &FanOut,
    index: usize,
    ends: &Mutex<ElementEnds>,
) -> Result<ChildEnd, RunAborted> {
    let end = driver.element(fan_out, index).await?;
    let effects = Json::from(driver.effects);
    let recorded = match &end {
        BranchEnd::Done(_) => ChildEnd::Done(effects),
        BranchEnd::Failed(_) => ChildEnd::Failed(effects),
        BranchEnd::Cancelled => ChildEnd::Stopped(effects),
    };
    ends.lock()[index] = Some(end);
    Ok(recorded)
}

fn answer(end: &FanOutEnd, mut ends: ElementEnds) -> EffectAnswer {
    if end.cancelled {
        return EffectAnswer::Cancelled;
    }
    let failed = end.failed.and_then(|index| ends.get_mut(index).and_then(Option::take));
    if let Some(BranchEnd::Failed(fault)) = failed {
        return EffectAnswer::Go(ResumeInput::BranchFailed(fault));
    }
    let values = ends.into_iter().map(|end| match end {
        Some(BranchEnd::Done(value)) => value,
        _ => Value::Nil,
    });
    EffectAnswer::Go(ResumeInput::Branches(values.collect()))
}
