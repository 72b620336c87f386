//! An event with its place in a run: what every line of `--json` is.

use serde::{Serialize, Serializer};

use super::{Branch, Event, RunId};
use crate::clock::rfc3339;

/// An event, where it belongs, and when it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// Strictly increasing within a run. Deltas take numbers too, so a finished run's have gaps.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub ts_ms: i64,
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: Branch,
    /// What happened.
    pub event: Event,
}

impl Serialize for Stamped {
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
