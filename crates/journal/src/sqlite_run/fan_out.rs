//! Parallel child branches, the only parallelism within a run.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::{JoinError, JoinSet};

use super::SqliteRun;
use crate::{ChildFailure, DurableRun, StepRequest};

/// Recorded outcome of a child.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChildOutcome {
    Value(Value),
    Fault(ChildFailure),
}

impl ChildOutcome {
    pub(super) fn into_result(self) -> Result<Value, ChildFailure> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Fault(fault) => Err(fault),
        }
    }
}

impl SqliteRun {
    /// Runs the calls, at most `limit` at once, and returns their outcomes in call order. Dropping the future
    /// cancels the children.
    pub(super) async fn side_by_side(&self, calls: Vec<StepRequest>, limit: usize) -> Value {
        let (Some(perform), Some(this)) = (&self.perform, self.this.upgrade()) else {
            let fault = ChildFailure {
                kind: "configuration_error".into(),
                message: "this run has no child tasks".into(),
            };
            return calls.iter().map(|_| json!({ "fault": fault })).collect();
        };
        let mut ends = vec![Value::Null; calls.len()];
        let mut waiting = calls.into_iter().enumerate();
        let (mut running, mut places) = (JoinSet::new(), HashMap::new());
        loop {
            while running.len() < limit.max(1)
                && let Some((place, call)) = waiting.next()
            {
                let engine = Arc::clone(&this) as Arc<dyn DurableRun>;
                places.insert(running.spawn(perform.perform(engine, call)).id(), place);
            }
            let (id, end) = match running.join_next_with_id().await {
                None => return ends.into(),
                Some(Ok((id, Ok(value)))) => (id, json!({ "value": value })),
                Some(Ok((id, Err(fault)))) => (id, json!({ "fault": fault })),
                Some(Err(lost)) => (lost.id(), json!({ "fault": fault_of(lost) })),
            };
            if let Some(end_of) = places.remove(&id).and_then(|place| ends.get_mut(place)) {
                *end_of = end;
            }
        }
    }
}

/// Uses only the panic message, which is the same in a replay.
fn fault_of(lost: JoinError) -> ChildFailure {
    let message = match lost.try_into_panic() {
        Ok(panic) => match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => {
                panic.downcast::<&str>().map_or_else(|_| "it panicked".to_owned(), |text| (*text).into())
            }
        },
        Err(_) => "it was ended".to_owned(),
    };
    ChildFailure { kind: "unexpected_error".to_owned(), message }
}
