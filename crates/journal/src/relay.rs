//! Runs that another system records: each batch of a run goes through a [`Relay`] before it is committed, so that
//! nothing happens that the other system does not know. Elsewhere [`crate::SqliteRun::apply`] adds the same batches to
//! another journal, and the run can be continued there.

use tokio::sync::mpsc;

use crate::ops::WriteOp;
use crate::writer::Batch;
use crate::{JournalError, blob};

/// Batches that may wait for the recording system; a run that finds the queue full waits.
const QUEUE: usize = 16;

/// The sending end of a queue of batches.
#[derive(Clone, Debug)]
pub struct Relay(mpsc::Sender<OutgoingBatch>);

impl Relay {
    /// A relay, and the queue from which its batches are taken in their order.
    pub fn new() -> (Self, mpsc::Receiver<OutgoingBatch>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    /// Waits for a place in the queue.
    pub(crate) async fn reserve(&self) -> Result<mpsc::Permit<'_, OutgoingBatch>, JournalError> {
        let gone = |_| JournalError::Relay { cause: "this process no longer works on the run".to_owned() };
        self.0.reserve().await.map_err(gone)
    }
}

/// A batch that is not committed yet. Dropping it stops the run.
pub struct OutgoingBatch(pub(crate) Batch);

impl OutgoingBatch {
    /// The rows of the batch as JSON.
    pub fn encode(&self) -> String {
        // Cannot fail: rows are made of strings and numbers.
        serde_json::to_string(&self.0.ops).unwrap_or_default()
    }

    /// Stops the run.
    pub fn refuse(self, cause: impl Into<String>) {
        self.0.commit.complete(Err(JournalError::Relay { cause: cause.into() }));
    }
}

impl std::fmt::Debug for OutgoingBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutgoingBatch").field("rows", &self.0.ops.len()).finish_non_exhaustive()
    }
}

/// Reads the rows of a batch back.
pub(crate) fn decode(encoded: &str) -> Result<Vec<WriteOp>, serde_json::Error> {
    let mut ops: Vec<WriteOp> = serde_json::from_str(encoded)?;
    for op in &mut ops {
        if let WriteOp::Content { hash, text } = op {
            *hash = blob::hash(text);
        }
    }
    Ok(ops)
}
