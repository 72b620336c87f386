//! The entries of a run's log, which the engine records in their order.

use fusee::Event;
use serde::{Deserialize, Serialize};

use crate::{BlobHash, BlobStore, EngineError};

/// Longer batches are kept in the blob store, so that the engine's own log stays small.
const INLINE_BYTES: usize = 8 << 10;

/// Entries that one read returns at most.
pub(crate) const PAGE: u64 = 64;

/// One entry of a run's log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogEntry {
    /// What the entry adds.
    pub(crate) content: EntryContent,
    /// The files of the workspace after this entry, if they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<BlobHash>,
}

/// What an entry adds to the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryContent {
    /// Rows of the journal.
    Batch(String),
    /// Rows of the journal, in the blob store.
    StoredBatch(BlobHash),
    /// The end of the log.
    End(Box<RunEnd>),
}

/// How the work on a run ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    /// The last event, if the journal does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Event>,
    /// Whether the model could not be reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unreachable: bool,
}

/// A request for entries of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ReadEntries {
    /// Number of the first.
    pub(crate) from: u64,
    /// Whether to wait for the first.
    pub(crate) wait: bool,
}

impl LogEntry {
    /// An entry with these rows.
    pub(crate) async fn batch(
        rows: String,
        files: Option<BlobHash>,
        blobs: &BlobStore,
    ) -> Result<Self, EngineError> {
        let content = if rows.len() <= INLINE_BYTES {
            EntryContent::Batch(rows)
        } else {
            EntryContent::StoredBatch(blobs.put(rows.into()).await?)
        };
        Ok(Self { content, files })
    }

    /// The rows of the entry; `None` for the last one.
    pub(crate) async fn rows(&self, blobs: &BlobStore) -> Result<Option<String>, EngineError> {
        match &self.content {
            EntryContent::Batch(rows) => Ok(Some(rows.clone())),
            EntryContent::StoredBatch(hash) => {
                let content = blobs.get(hash).await?;
                let unreadable = |error: std::str::Utf8Error| EngineError::Unreadable(error.to_string());
                Ok(Some(std::str::from_utf8(&content).map_err(unreadable)?.to_owned()))
            }
            EntryContent::End(_) => Ok(None),
        }
    }
}

/// Name of the promise that entry `n` of a run's log resolves.
pub(crate) fn promise_of(n: u64) -> String {
    format!("entry {n}")
}
