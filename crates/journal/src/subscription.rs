//! A subscription to one run's events: a cursor over the journal and, at its end, the hub's ring buffer.
//!
//! A slow subscriber blocks no one: it later reads what it missed from the journal. Every sequence number is
//! either delivered as an event or covered by a `gap`; gaps consist only of deltas and of the events of
//! failed commits.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::broadcast::{Broadcast, NextEvent};
use crate::{Branch, Event, EventRecord, Journal, JournalError};

/// Number of events read from the journal at a time when catching up.
const PAGE: usize = 32;

/// A subscription to one run's events.
pub struct EventStream {
    broadcast: Arc<Broadcast>,
    journal: Journal,
    reader: u64,
    cursor: u64,
    behind: VecDeque<Arc<EventRecord>>,
}

impl EventStream {
    /// Subscribes to the events after number `cursor`.
    pub(crate) fn new(broadcast: Arc<Broadcast>, journal: Journal, cursor: u64) -> Self {
        Self { reader: broadcast.attach(cursor), broadcast, journal, cursor, behind: VecDeque::new() }
    }

    /// Waits for the next event; `None` once the run has ended and everything was read.
    pub async fn next(&mut self) -> Result<Option<Arc<EventRecord>>, JournalError> {
        loop {
            if let Some(event) = self.behind.pop_front() {
                self.cursor = event.seq;
                return Ok(Some(event));
            }
            let broadcast = Arc::clone(&self.broadcast);
            let mut woken = std::pin::pin!(broadcast.wake.notified());
            woken.as_mut().enable();
            match self.broadcast.next_event(self.reader, self.cursor) {
                NextEvent::Event(event) => self.behind.push_back(event),
                NextEvent::Behind { to } => self.catch_up(to)?,
                NextEvent::Hole { to } => self.behind.push_back(self.gap(self.cursor + 1, to)),
                NextEvent::Nothing => woken.await,
                NextEvent::Ended => return Ok(None),
            }
        }
    }

    fn catch_up(&mut self, to: u64) -> Result<(), JournalError> {
        let (key, run, cursor) = (self.broadcast.key, &self.broadcast.run, self.cursor);
        let rows = self.journal.read(|reader| reader.events(key, run, cursor, to, PAGE))?;
        let all = rows.len() < PAGE;
        let mut next = cursor + 1;
        for event in rows {
            if event.seq > next {
                self.behind.push_back(self.gap(next, event.seq - 1));
            }
            next = event.seq + 1;
            self.behind.push_back(Arc::new(event));
        }
        if all && next <= to {
            self.behind.push_back(self.gap(next, to));
        }
        Ok(())
    }

    fn gap(&self, from: u64, to: u64) -> Arc<EventRecord> {
        let (ts_ms, run) = (self.journal.now_ms(), self.broadcast.run.clone());
        Arc::new(EventRecord { seq: to, ts_ms, run, task: Branch::main(), event: Event::Gap { from, to } })
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.broadcast.detach(self.reader);
    }
}
