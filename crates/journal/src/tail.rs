//! The events of a run that another process works on, read from the journal as they are committed. Deltas are not stored,
//! so they are not seen here; `subscription.rs` is for a run of this process.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::{EventRecord, Journal, JournalError, RunId, RunStatus};

/// How often the journal is read while nothing new comes.
const INTERVAL: Duration = Duration::from_millis(100);

/// Events read at a time.
const PAGE: usize = 64;

/// Follows the events of a run through its journal.
pub struct EventTail {
    journal: Journal,
    run: RunId,
    cursor: u64,
    ready: VecDeque<Arc<EventRecord>>,
    /// When the journal is read next. Kept between calls, so that a caller who gives up waiting more often than the
    /// interval still gets events.
    next_read: Instant,
}

impl EventTail {
    /// The events after number `cursor`.
    #[must_use]
    pub fn new(journal: Journal, run: RunId, cursor: u64) -> Self {
        Self { journal, run, cursor, ready: VecDeque::new(), next_read: Instant::now() }
    }

    /// Waits for the next event; `None` once the run has ended, or its process has, and everything was read.
    pub async fn next(&mut self) -> Result<Option<Arc<EventRecord>>, JournalError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            tokio::time::sleep_until(self.next_read).await;
            // Looked at before the events: after either of these there are no more of them.
            let is_over = self.journal.run(self.run.as_str())?.status != RunStatus::Open
                || !self.journal.is_active(&self.run);
            let events = self.journal.events(&self.run, self.cursor, u64::MAX, PAGE)?;
            match events.last() {
                Some(last) => self.cursor = last.seq,
                None if is_over => return Ok(None),
                None => self.next_read = Instant::now() + INTERVAL,
            }
            self.ready.extend(events.into_iter().map(Arc::new));
        }
    }
}
