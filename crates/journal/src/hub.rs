//! Where readers of a running run find its events: a bounded ring of the newest, and the journal for the rest.
//!
//! A reader is a cursor. One that stands still blocks nobody; when it comes back it reads what it missed from
//! the journal, and only deltas are lost to it, which a `gap` says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::event::Delta;
use crate::{Branch, Event, Journal, JournalError, RunId, Stamped};

/// Events kept for readers that are a little behind.
const RING: usize = 512;

/// Events read from the journal at a time by a reader that is far behind.
const PAGE: usize = 256;

/// The live end of a run's stream.
pub(crate) struct Hub {
    run: RunId,
    state: Mutex<State>,
    wake: Notify,
}

struct State {
    next_seq: u64,
    /// Numbers from here on are given out to a commit that is under way: nothing at or above may be read yet.
    reserved_from: Option<u64>,
    ring: VecDeque<Arc<Stamped>>,
    /// Everything up to here has left the ring.
    evicted_to: u64,
    /// The newest delta among what has left.
    evicted_delta: u64,
    closed: bool,
}

impl Hub {
    /// A hub whose next event has this number.
    pub(crate) fn new(run: RunId, next_seq: u64) -> Self {
        let state = State {
            next_seq,
            reserved_from: None,
            ring: VecDeque::new(),
            evicted_to: next_seq - 1,
            evicted_delta: 0,
            closed: false,
        };
        Self { run, state: Mutex::new(state), wake: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives out the next `count` numbers to a commit.
    pub(crate) fn reserve(&self, count: usize) -> u64 {
        let mut state = self.state();
        let first = state.next_seq;
        state.next_seq += count as u64;
        state.reserved_from.get_or_insert(first);
        first
    }

    /// Shows what was committed.
    pub(crate) fn publish(&self, events: Vec<Arc<Stamped>>) {
        let mut state = self.state();
        state.reserved_from = None;
        for event in events {
            let at = state.ring.partition_point(|other| other.seq < event.seq);
            state.ring.insert(at, event);
        }
        state.trim();
        drop(state);
        self.wake.notify_waiters();
    }

    /// The commit failed: its numbers stay unused.
    pub(crate) fn withdraw(&self) {
        self.state().reserved_from = None;
        self.wake.notify_waiters();
    }

    /// Shows a delta at once.
    pub(crate) fn pass(&self, task: &Branch, ts_ms: i64, delta: Delta) {
        let mut state = self.state();
        let seq = state.next_seq;
        state.next_seq += 1;
        let event = Event::from(delta);
        state.ring.push_back(Arc::new(Stamped {
            seq,
            ts_ms,
            run: self.run.clone(),
            task: task.clone(),
            event,
        }));
        state.trim();
        drop(state);
        self.wake.notify_waiters();
    }

    /// Shows an event that could not be journaled, so that readers learn how it ended.
    pub(crate) fn pass_event(&self, task: &Branch, ts_ms: i64, event: Event) {
        let mut state = self.state();
        let seq = state.next_seq;
        state.next_seq += 1;
        state.ring.push_back(Arc::new(Stamped {
            seq,
            ts_ms,
            run: self.run.clone(),
            task: task.clone(),
            event,
        }));
        drop(state);
        self.wake.notify_waiters();
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_waiters();
    }
}

impl State {
    fn trim(&mut self) {
        while self.ring.len() > RING {
            if let Some(old) = self.ring.pop_front() {
                self.evicted_to = old.seq;
                if is_delta(&old.event) {
                    self.evicted_delta = old.seq;
                }
            }
        }
    }

    fn readable(&self, after: u64) -> Option<Arc<Stamped>> {
        let at = self.ring.partition_point(|event| event.seq <= after);
        let event = self.ring.get(at)?;
        (event.seq < self.reserved_from.unwrap_or(u64::MAX)).then(|| Arc::clone(event))
    }
}

fn is_delta(event: &Event) -> bool {
    matches!(event, Event::MessageDelta { .. } | Event::ReasoningDelta { .. } | Event::ToolOutput { .. })
}

/// A reader of one run's events.
pub struct Events {
    hub: Arc<Hub>,
    journal: Journal,
    cursor: u64,
    behind: VecDeque<Arc<Stamped>>,
}

impl Events {
    /// A reader that begins after the event numbered `cursor`.
    pub(crate) fn new(hub: Arc<Hub>, journal: Journal, cursor: u64) -> Self {
        Self { hub, journal, cursor, behind: VecDeque::new() }
    }

    /// The next event; `None` when the run has ended and all was read.
    pub async fn next(&mut self) -> Result<Option<Arc<Stamped>>, JournalError> {
        loop {
            if let Some(event) = self.behind.pop_front() {
                self.cursor = event.seq;
                return Ok(Some(event));
            }
            let hub = Arc::clone(&self.hub);
            let mut woken = std::pin::pin!(hub.wake.notified());
            woken.as_mut().enable();
            match self.look() {
                Look::Event(event) => {
                    self.cursor = event.seq;
                    return Ok(Some(event));
                }
                Look::Behind { evicted_to, evicted_delta } => self.catch_up(evicted_to, evicted_delta)?,
                Look::Ended => return Ok(None),
                Look::Nothing => woken.await,
            }
        }
    }

    fn look(&self) -> Look {
        let state = self.hub.state();
        if self.cursor < state.evicted_to {
            return Look::Behind { evicted_to: state.evicted_to, evicted_delta: state.evicted_delta };
        }
        match state.readable(self.cursor) {
            Some(event) => Look::Event(event),
            None if state.closed => Look::Ended,
            None => Look::Nothing,
        }
    }

    fn catch_up(&mut self, evicted_to: u64, evicted_delta: u64) -> Result<(), JournalError> {
        let rows = self.journal.events(&self.hub.run, self.cursor, evicted_to, PAGE)?;
        let last_page = rows.len() < PAGE;
        self.behind = rows.into_iter().map(Arc::new).collect();
        if last_page && evicted_delta > self.cursor {
            let (seq, run) = (evicted_delta, self.hub.run.clone());
            let event = Event::Gap { from: self.cursor + 1, to: evicted_delta };
            let at = self.behind.partition_point(|other| other.seq < seq);
            let ts_ms = self.journal.now_ms();
            self.behind.insert(at, Arc::new(Stamped { seq, ts_ms, run, task: Branch::main(), event }));
        }
        // All that was between is lost or was never written: go on with the ring.
        if self.behind.is_empty() {
            self.cursor = evicted_to;
        }
        Ok(())
    }
}

enum Look {
    Event(Arc<Stamped>),
    Behind { evicted_to: u64, evicted_delta: u64 },
    Nothing,
    Ended,
}
