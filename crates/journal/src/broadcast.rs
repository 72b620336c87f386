//! The live end of a run's event stream: numbers events, buffers the newest for subscribers, and tracks
//! commits in flight. `subscription.rs` is the subscriber; `writer.rs` settles the commits.
//!
//! Deltas are published immediately and share the numbering, so while a commit is in flight there may already
//! be higher numbers. None of these may be read before the commit settles, or a subscriber would skip its
//! events.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::event::EventDelta;
use crate::{Branch, Event, EventRecord, JournalError, RunId};

/// Events buffered for subscribers that are slightly behind; older ones are read from the journal.
const RING: usize = 512;

/// Approximate limit of the buffer in bytes.
const RING_BYTES: usize = 256 << 10;

/// Estimated size in bytes of an event without its text.
const EVENT_BYTES: usize = 200;

/// The live end of one run's event stream.
pub(crate) struct Broadcast {
    pub(crate) run: RunId,
    /// Row id of the run in the journal.
    pub(crate) key: i64,
    path: PathBuf,
    state: Mutex<BroadcastState>,
    settled: watch::Sender<CommitResult>,
    /// Wakes subscribers after every event.
    wake: Notify,
    /// Wakes subscribers that want recorded events only.
    wake_recorded: Notify,
}

/// The events that a subscriber wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSelection {
    All,
    /// Those that are in the journal: no deltas.
    Recorded,
}

struct BroadcastState {
    next_seq: u64,
    handed_over: u64,
    /// First event number of each commit in flight, oldest first.
    in_flight: VecDeque<u64>,
    /// Sorted by number; contiguous except for the numbers of failed commits.
    ring: VecDeque<RingEvent>,
    ring_bytes: usize,
    /// Everything up to this number has left the ring: it is in the journal, was a delta, or is about to be
    /// committed.
    evicted_to: u64,
    readers: Subscribers,
    closed: bool,
}

/// Positions of the subscribers.
#[derive(Default)]
struct Subscribers {
    cursors: HashMap<u64, u64>,
    next: u64,
}

impl Subscribers {
    /// Number up to which every subscriber has read. 0 before the first subscriber, which may still want
    /// everything.
    fn passed(&self) -> u64 {
        match self.next {
            0 => 0,
            _ => self.cursors.values().copied().min().unwrap_or(u64::MAX),
        }
    }
}

/// An event in the ring, with its approximate size.
pub(crate) struct RingEvent {
    pub(crate) event: Arc<EventRecord>,
    bytes: usize,
}

impl RingEvent {
    pub(crate) fn new(event: EventRecord, text: usize) -> Self {
        Self { event: Arc::new(event), bytes: text + EVENT_BYTES }
    }
}

#[derive(Default)]
struct CommitResult {
    count: u64,
    failed: Option<JournalError>,
}

/// Lookup result: the entry that follows a subscriber's cursor.
pub(crate) enum NextEvent {
    /// The next event.
    Event(Arc<EventRecord>),
    /// Numbers up to `to` have left the ring; read them from the journal.
    Behind { to: u64 },
    /// Numbers up to `to` were never used.
    Hole { to: u64 },
    /// Nothing yet; wait.
    Nothing,
    /// The stream has ended.
    Ended,
}

impl Broadcast {
    /// Creates the hub of a run whose newest event has number `last`.
    pub(crate) fn new(run: RunId, key: i64, path: PathBuf, last: u64) -> Self {
        let state = BroadcastState {
            next_seq: last + 1,
            handed_over: 0,
            in_flight: VecDeque::new(),
            ring: VecDeque::new(),
            ring_bytes: 0,
            evicted_to: last,
            readers: Subscribers::default(),
            closed: false,
        };
        let settled = watch::Sender::new(CommitResult::default());
        Self {
            run,
            key,
            path,
            state: Mutex::new(state),
            settled,
            wake: Notify::new(),
            wake_recorded: Notify::new(),
        }
    }

    /// Wakes a subscriber when there may be an event that it wants.
    pub(crate) fn waker(&self, selection: EventSelection) -> &Notify {
        match selection {
            EventSelection::All => &self.wake,
            EventSelection::Recorded => &self.wake_recorded,
        }
    }

    fn wake_all(&self) {
        self.wake.notify_waiters();
        self.wake_recorded.notify_waiters();
    }

    /// Reserves `count` event numbers for a commit that is being submitted and returns the first. Commits
    /// must be settled in the order of submission.
    pub(crate) fn submit(&self, count: usize) -> u64 {
        let mut state = self.state.lock();
        let first = state.next_seq;
        state.next_seq += count as u64;
        state.handed_over += 1;
        state.in_flight.push_back(first);
        first
    }

    /// Publishes the events of a settled commit. The numbers of a failed commit stay unused.
    pub(crate) fn end_commit(&self, events: Vec<RingEvent>, result: Result<(), JournalError>) {
        let mut state = self.state.lock();
        state.in_flight.pop_front();
        if result.is_ok() {
            events.into_iter().for_each(|event| state.push(event));
        }
        drop(state);
        self.settled.send_modify(|settled| {
            settled.count += 1;
            if let Err(error) = result {
                settled.failed.get_or_insert(error);
            }
        });
        self.wake_all();
    }

    /// Waits until everything submitted so far is committed. After one failure nothing more is committed,
    /// because later entries must not be in the journal without earlier ones.
    pub(crate) async fn wait_committed(&self) -> Result<(), JournalError> {
        let handed_over = self.state.lock().handed_over;
        let mut settled = self.settled.subscribe();
        let settled = settled.wait_for(|now| now.failed.is_some() || now.count >= handed_over).await;
        match settled.ok().and_then(|now| now.failed.clone()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The error that ended writing for this run, if any.
    pub(crate) fn failed(&self) -> Option<JournalError> {
        self.settled.borrow().failed.clone()
    }

    /// Error of a commit that was dropped because the writer has stopped.
    pub(crate) fn writer_gone(&self) -> JournalError {
        JournalError::Failed { path: self.path.clone(), cause: "the writer thread has ended".to_owned() }
    }

    /// Publishes everything up to number `last`, which another process recorded: subscribers read it from the
    /// journal.
    pub(crate) fn advance(&self, last: u64) {
        let mut state = self.state.lock();
        state.next_seq = state.next_seq.max(last + 1);
        state.evicted_to = state.evicted_to.max(last);
        drop(state);
        self.wake_all();
    }

    /// Publishes a delta immediately.
    pub(crate) fn publish_delta(&self, task: &Branch, ts_ms: i64, delta: EventDelta) {
        let bytes = delta.text().len();
        let mut state = self.state.lock();
        let stamped = state.stamp(&self.run, task, ts_ms, delta.into());
        state.push(RingEvent::new(stamped, bytes));
        drop(state);
        self.wake.notify_waiters();
    }

    /// Publishes a final event that could not be journaled, so that subscribers learn the outcome, and
    /// closes.
    pub(crate) fn close_with(&self, task: &Branch, ts_ms: i64, event: Event) {
        let mut state = self.state.lock();
        if !state.closed {
            let stamped = state.stamp(&self.run, task, ts_ms, event);
            // Bypasses the size limits, because this event exists nowhere else.
            state.ring.push_back(RingEvent::new(stamped, 0));
        }
        drop(state);
        self.close();
    }

    /// Closes the stream; only commits in flight still follow.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake_all();
    }

    /// Registers a subscriber at `cursor` and returns its id.
    pub(crate) fn attach(&self, cursor: u64) -> u64 {
        let readers = &mut self.state.lock().readers;
        readers.next += 1;
        readers.cursors.insert(readers.next, cursor);
        readers.next
    }

    pub(crate) fn detach(&self, reader: u64) {
        self.state.lock().readers.cursors.remove(&reader);
    }

    /// Looks up what follows `cursor` and records that the subscriber has read that far.
    pub(crate) fn next_event(&self, reader: u64, cursor: u64, selection: EventSelection) -> NextEvent {
        let mut state = self.state.lock();
        state.readers.cursors.insert(reader, cursor);
        state.trim();
        state.next_event(cursor, selection)
    }
}

impl BroadcastState {
    fn stamp(&mut self, run: &RunId, task: &Branch, ts_ms: i64, event: Event) -> EventRecord {
        let seq = self.next_seq;
        self.next_seq += 1;
        EventRecord { seq, ts_ms, run: run.clone(), task: task.clone(), event }
    }

    fn push(&mut self, kept: RingEvent) {
        if kept.event.seq <= self.evicted_to {
            return;
        }
        self.ring_bytes += kept.bytes;
        let at = self.ring.partition_point(|other| other.event.seq < kept.event.seq);
        self.ring.insert(at, kept);
        self.trim();
    }

    /// Drops events that every subscriber has read, and the oldest while the ring exceeds its limits. Keeps
    /// everything once closed, because the last events may exist nowhere else.
    fn trim(&mut self) {
        let passed = self.readers.passed();
        while let Some(old) = self.ring.front()
            && !self.closed
            && (old.event.seq <= passed || self.ring.len() > RING || self.ring_bytes > RING_BYTES)
        {
            self.evicted_to = old.event.seq;
            self.ring_bytes -= old.bytes;
            self.ring.pop_front();
        }
    }

    fn next_event(&self, cursor: u64, selection: EventSelection) -> NextEvent {
        let readable_to = self.in_flight.front().map_or(self.next_seq, |first| *first) - 1;
        let behind_to = self.evicted_to.min(readable_to);
        if cursor < behind_to {
            return NextEvent::Behind { to: behind_to };
        }
        let at = self.ring.partition_point(|kept| kept.event.seq <= cursor);
        let is_wanted = |kept: &&RingEvent| match selection {
            EventSelection::All => true,
            EventSelection::Recorded => !kept.event.event.is_delta(),
        };
        match self.ring.range(at..).find(is_wanted).filter(|kept| kept.event.seq <= readable_to) {
            Some(kept) if selection == EventSelection::All && kept.event.seq > cursor + 1 => {
                NextEvent::Hole { to: kept.event.seq - 1 }
            }
            Some(kept) => NextEvent::Event(Arc::clone(&kept.event)),
            None if self.closed && self.in_flight.is_empty() => NextEvent::Ended,
            None => NextEvent::Nothing,
        }
    }
}
