//! A subscription to one run's events: a cursor over the journal and, at its end, the hub's ring buffer.
//!
//! A slow subscriber blocks no one: it later reads what it missed from the journal. Every sequence number is
//! either delivered as an event or covered by a `gap`; gaps consist only of deltas and of the events of
//! failed commits.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::broadcast::{Broadcast, EventSelection, NextEvent};
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
    selection: EventSelection,
}

impl EventStream {
    /// Subscribes to the events after number `cursor`.
    pub(crate) fn new(broadcast: Arc<Broadcast>, journal: Journal, cursor: u64) -> Self {
        let (reader, selection) = (broadcast.attach(cursor), EventSelection::All);
        Self { reader, broadcast, journal, cursor, behind: VecDeque::new(), selection }
    }

    /// Leaves out deltas, without gaps in their place. Such a subscriber is not woken by a stream of deltas.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.selection = EventSelection::Recorded;
        self
    }

    /// Waits for the next event; `None` once the run has ended and everything was read.
    pub async fn next(&mut self) -> Result<Option<Arc<EventRecord>>, JournalError> {
        loop {
            if let Some(event) = self.behind.pop_front() {
                self.cursor = event.seq;
                return Ok(Some(event));
            }
            let broadcast = Arc::clone(&self.broadcast);
            let mut woken = std::pin::pin!(broadcast.waker(self.selection).notified());
            woken.as_mut().enable();
            match self.broadcast.next_event(self.reader, self.cursor, self.selection) {
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
            if event.seq > next && self.selection == EventSelection::All {
                self.behind.push_back(self.gap(next, event.seq - 1));
            }
            next = event.seq + 1;
            self.behind.push_back(Arc::new(event));
        }
        match self.selection {
            EventSelection::All if all && next <= to => self.behind.push_back(self.gap(next, to)),
            // What is left out up to there is not read again.
            EventSelection::Recorded if self.behind.is_empty() => self.cursor = to,
            _ => {}
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
