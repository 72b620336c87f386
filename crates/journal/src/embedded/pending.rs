//! What a run has asked and made that is not handed to the writer yet. One batch is one transaction, so the
//! journal always holds all that came before anything it holds.

use std::sync::Arc;

use serde_json::Value;

use crate::hub::{Hub, Kept};
use crate::rows::Op;
use crate::writer::{Batch, Commit};
use crate::{Branch, Event, Stamped, blob};

/// How far back to look for the same content; what is found again later is stored once all the same.
const NEAR: usize = 16;

#[derive(Default)]
pub(super) struct Pending {
    ops: Vec<Op>,
    /// The events of the ops, in their order, with the size of their text.
    events: Vec<(Event, usize)>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    pub(super) fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// Adds an event; `k` is its place among the events of the program.
    pub(super) fn event(&mut self, task: &Branch, k: Option<u64>, ts_ms: i64, event: Event) {
        // An event holds only what JSON can say, so this does not fail.
        let value = serde_json::to_value(&event).unwrap_or_default();
        let (body, size) = self.encode_sized(&value);
        self.events.push((event, size));
        self.ops.push(Op::Event { seq: 0, task: task.clone(), k, ts_ms, body });
    }

    /// A value as it is written, its long texts set apart.
    pub(super) fn encode(&mut self, value: &Value) -> String {
        self.encode_sized(value).0
    }

    fn encode_sized(&mut self, value: &Value) -> (String, usize) {
        let (ops, mut size) = (&mut self.ops, 0);
        let encoded = blob::write(value, &mut |text| {
            size += text.len();
            // A tool's result is a step's and an event's: comparing is cheaper than hashing.
            let known = ops.iter().rev().take(NEAR).find_map(|op| match op {
                Op::Content { hash, text: known } if known == text => Some(*hash),
                _ => None,
            });
            known.unwrap_or_else(|| {
                let hash = blob::hash(text);
                ops.push(Op::Content { hash, text: text.to_owned() });
                hash
            })
        });
        size += encoded.len();
        (encoded, size)
    }

    /// Numbers the events and makes a batch of it all; `None` when there is nothing.
    pub(super) fn batch(&mut self, hub: &Arc<Hub>) -> Option<Batch> {
        if self.ops.is_empty() {
            return None;
        }
        let mut ops = std::mem::take(&mut self.ops);
        let first = hub.hand_over(self.events.len());
        let mut events = Vec::with_capacity(self.events.len());
        let mut made = self.events.drain(..);
        for op in &mut ops {
            if let Op::Event { seq, task, ts_ms, .. } = op
                && let Some((event, size)) = made.next()
            {
                *seq = first + events.len() as u64;
                let (run, task) = (hub.run.clone(), task.clone());
                events.push(Kept::new(Stamped { seq: *seq, ts_ms: *ts_ms, run, task, event }, size));
            }
        }
        Some(Batch { ops, commit: Commit::new(Arc::clone(hub), events) })
    }
}
