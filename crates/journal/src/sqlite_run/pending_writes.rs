//! Steps and events of a run that have not been submitted to the writer yet. A batch is one transaction, so
//! the journal never contains an entry without everything that preceded it.

use std::sync::Arc;

use serde_json::Value;

use crate::broadcast::{Broadcast, RingEvent};
use crate::ops::WriteOp;
use crate::writer::{Batch, Commit};
use crate::{Branch, Event, EventRecord, blob};

/// How many recent ops to search for identical content. A miss only costs a hash: content is stored once
/// anyway.
const NEAR: usize = 16;

#[derive(Default)]
pub(super) struct PendingWrites {
    ops: Vec<WriteOp>,
    /// Events of `ops`, in the same order, with their encoded size in bytes.
    events: Vec<(Event, usize)>,
}

impl PendingWrites {
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Whether it contains the result of a step with an effect outside of the process, such as a command or a model
    /// request.
    pub(super) fn has_effects(&self) -> bool {
        self.ops.iter().any(|op| match op {
            WriteOp::Conclusion { .. } => true,
            WriteOp::Step { kind, .. } => kind.is_visible_outside(),
            _ => false,
        })
    }

    pub(super) fn push(&mut self, op: WriteOp) {
        self.ops.push(op);
    }

    /// Adds an event; `k` is its index among the program events of its task.
    pub(super) fn event(&mut self, task: &Branch, k: Option<u64>, ts_ms: i64, event: Event) {
        // Cannot fail: events contain only JSON-representable data.
        let value = serde_json::to_value(&event).unwrap_or_default();
        let (body, size) = self.encode_sized(&value);
        self.events.push((event, size));
        self.ops.push(WriteOp::Event { seq: 0, task: task.clone(), k, ts_ms, body });
    }

    /// Encodes a value as JSON and moves its long strings into content ops.
    pub(super) fn encode(&mut self, value: &Value) -> String {
        self.encode_sized(value).0
    }

    fn encode_sized(&mut self, value: &Value) -> (String, usize) {
        let (ops, mut size) = (&mut self.ops, 0);
        let encoded = blob::write(value, &mut |text| {
            size += text.len();
            // A tool result occurs in both a step and an event; comparing is cheaper than hashing twice.
            let known = ops.iter().rev().take(NEAR).find_map(|op| match op {
                WriteOp::Content { hash, text: known } if known == text => Some(*hash),
                _ => None,
            });
            known.unwrap_or_else(|| {
                let hash = blob::hash(text);
                ops.push(WriteOp::Content { hash, text: text.to_owned() });
                hash
            })
        });
        size += encoded.len();
        (encoded, size)
    }

    /// Assigns event numbers and drains everything into a batch; `None` if there is nothing to write.
    pub(super) fn batch(&mut self, broadcast: &Arc<Broadcast>) -> Option<Batch> {
        if self.ops.is_empty() {
            return None;
        }
        let mut ops = std::mem::take(&mut self.ops);
        let first = broadcast.submit(self.events.len());
        let mut events = Vec::with_capacity(self.events.len());
        let mut made = self.events.drain(..);
        for op in &mut ops {
            if let WriteOp::Event { seq, task, ts_ms, .. } = op
                && let Some((event, size)) = made.next()
            {
                *seq = first + events.len() as u64;
                let (run, task) = (broadcast.run.clone(), task.clone());
                events.push(RingEvent::new(EventRecord { seq: *seq, ts_ms: *ts_ms, run, task, event }, size));
            }
        }
        Some(Batch { ops, commit: Commit::new(Arc::clone(broadcast), events) })
    }
}
