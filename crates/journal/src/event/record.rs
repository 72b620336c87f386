//! An event with its envelope: run, task, number and time. Each line of `--json` is one of these.

use serde::{Serialize, Serializer};

use super::{Branch, Event, RunId};
use crate::clock::rfc3339;

/// An event with its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// Strictly increasing within a run. Deltas consume numbers too, so the numbers in a finished run have
    /// gaps.
    pub seq: u64,
    /// Milliseconds since the Unix epoch.
    pub ts_ms: i64,
    /// Run that emitted the event.
    pub run: RunId,
    /// Task that emitted the event.
    pub task: Branch,
    /// The event itself.
    pub event: Event,
}

impl Serialize for EventRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            seq: u64,
            ts: String,
            run: &'a str,
            task: &'a str,
            #[serde(flatten)]
            event: &'a Event,
        }
        Line {
            seq: self.seq,
            ts: rfc3339(self.ts_ms),
            run: self.run.as_str(),
            task: self.task.as_str(),
            event: &self.event,
        }
        .serialize(serializer)
    }
}
