//! The live end of a run's stream: gives events their numbers, holds the newest for its readers, and knows
//! which commits are under way. `follow.rs` is a reader; `writer.rs` settles the commits.
//!
//! Deltas are shown at once and numbered with the rest, so while a commit is under way there are numbers above
//! it already. None of them may be read before it is settled, or a reader would have passed its events.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::event::Delta;
use crate::{Branch, Event, JournalError, RunId, Stamped};

/// Events kept for readers that are a little behind; the rest they read from the journal.
const RING: usize = 512;

/// Bytes of events kept, near enough.
const RING_BYTES: usize = 256 << 10;

/// What an event costs besides its text.
const EVENT_BYTES: usize = 200;

/// The live end of a run's stream.
pub(crate) struct Hub {
    pub(crate) run: RunId,
    /// The run's number in the journal.
    pub(crate) key: i64,
    path: PathBuf,
    state: Mutex<State>,
    settled: watch::Sender<Settled>,
    pub(crate) wake: Notify,
}

struct State {
    next_seq: u64,
    handed_over: u64,
    /// The first number of each commit under way, oldest first.
    under_way: VecDeque<u64>,
    /// In order of their numbers, without holes but for numbers that a failed commit had.
    ring: VecDeque<Kept>,
    ring_bytes: usize,
    /// Everything up to here has left the ring: it stands in the journal, was a delta, or will be committed.
    forgotten_to: u64,
    readers: Readers,
    closed: bool,
}

/// How far each reader has come.
#[derive(Default)]
struct Readers {
    cursors: HashMap<u64, u64>,
    next: u64,
}

impl Readers {
    /// Up to here nobody needs the ring. Before the first reader has come, it may still come for all of it.
    fn passed(&self) -> u64 {
        match self.next {
            0 => 0,
            _ => self.cursors.values().copied().min().unwrap_or(u64::MAX),
        }
    }
}

/// An event in the ring, and about what it weighs.
pub(crate) struct Kept {
    pub(crate) event: Arc<Stamped>,
    bytes: usize,
}

impl Kept {
    pub(crate) fn new(event: Stamped, text: usize) -> Self {
        Self { event: Arc::new(event), bytes: text + EVENT_BYTES }
    }
}

#[derive(Default)]
struct Settled {
    count: u64,
    failed: Option<JournalError>,
}

/// What a reader finds when it looks for the event after its own.
pub(crate) enum Look {
    /// This.
    Event(Arc<Stamped>),
    /// Numbers up to this are not in the ring any more.
    Behind { to: u64 },
    /// Numbers up to this were never used.
    Hole { to: u64 },
    /// Nothing yet.
    Nothing,
    /// Nothing, ever.
    Ended,
}

impl Hub {
    /// The hub of a run whose newest event has the number `last`.
    pub(crate) fn new(run: RunId, key: i64, path: PathBuf, last: u64) -> Self {
        let state = State {
            next_seq: last + 1,
            handed_over: 0,
            under_way: VecDeque::new(),
            ring: VecDeque::new(),
            ring_bytes: 0,
            forgotten_to: last,
            readers: Readers::default(),
            closed: false,
        };
        let settled = watch::Sender::new(Settled::default());
        Self { run, key, path, state: Mutex::new(state), settled, wake: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the next `count` numbers to a commit that is handed over now; says the first. Commits are settled in
    /// the order in which they were handed over.
    pub(crate) fn hand_over(&self, count: usize) -> u64 {
        let mut state = self.state();
        let first = state.next_seq;
        state.next_seq += count as u64;
        state.handed_over += 1;
        state.under_way.push_back(first);
        first
    }

    /// Shows what was committed. The numbers of a commit that failed stay unused.
    pub(crate) fn settle(&self, events: Vec<Kept>, result: Result<(), JournalError>) {
        let mut state = self.state();
        state.under_way.pop_front();
        if result.is_ok() {
            events.into_iter().for_each(|event| state.keep(event));
        }
        drop(state);
        self.settled.send_modify(|settled| {
            settled.count += 1;
            if let Err(error) = result {
                settled.failed.get_or_insert(error);
            }
        });
        self.wake.notify_waiters();
    }

    /// Waits until all that was handed over so far is committed. After one failure nothing is: what came after
    /// would stand in the journal without what came before it.
    pub(crate) async fn all_settled(&self) -> Result<(), JournalError> {
        let handed_over = self.state().handed_over;
        let mut settled = self.settled.subscribe();
        let settled = settled.wait_for(|now| now.failed.is_some() || now.count >= handed_over).await;
        match settled.ok().and_then(|now| now.failed.clone()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The failure that ended this run's writing, if one did.
    pub(crate) fn failed(&self) -> Option<JournalError> {
        self.settled.borrow().failed.clone()
    }

    /// The error of a commit that nobody is there to make.
    pub(crate) fn writer_gone(&self) -> JournalError {
        JournalError::Failed { path: self.path.clone(), cause: "its writer has ended".to_owned() }
    }

    /// Shows a delta at once.
    pub(crate) fn pass(&self, task: &Branch, ts_ms: i64, delta: Delta) {
        let bytes = delta.text().len();
        let mut state = self.state();
        let stamped = state.stamp(&self.run, task, ts_ms, delta.into());
        state.keep(Kept::new(stamped, bytes));
        drop(state);
        self.wake.notify_waiters();
    }

    /// Shows a last event that could not be journaled, so that readers learn how it ended, and closes.
    pub(crate) fn close_with(&self, task: &Branch, ts_ms: i64, event: Event) {
        let mut state = self.state();
        if !state.closed {
            let stamped = state.stamp(&self.run, task, ts_ms, event);
            // Whatever its size: it is nowhere else.
            state.ring.push_back(Kept::new(stamped, 0));
        }
        drop(state);
        self.close();
    }

    /// Nothing more will come but what is under way.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_waiters();
    }

    /// A new reader that has come to `cursor`; gives what it is known by.
    pub(crate) fn attach(&self, cursor: u64) -> u64 {
        let readers = &mut self.state().readers;
        readers.next += 1;
        readers.cursors.insert(readers.next, cursor);
        readers.next
    }

    pub(crate) fn detach(&self, reader: u64) {
        self.state().readers.cursors.remove(&reader);
    }

    /// The event after `cursor`, which is how far this reader has come.
    pub(crate) fn look(&self, reader: u64, cursor: u64) -> Look {
        let mut state = self.state();
        state.readers.cursors.insert(reader, cursor);
        state.forget();
        state.look(cursor)
    }
}

impl State {
    fn stamp(&mut self, run: &RunId, task: &Branch, ts_ms: i64, event: Event) -> Stamped {
        let seq = self.next_seq;
        self.next_seq += 1;
        Stamped { seq, ts_ms, run: run.clone(), task: task.clone(), event }
    }

    fn keep(&mut self, kept: Kept) {
        if kept.event.seq <= self.forgotten_to {
            return;
        }
        self.ring_bytes += kept.bytes;
        let at = self.ring.partition_point(|other| other.event.seq < kept.event.seq);
        self.ring.insert(at, kept);
        self.forget();
    }

    /// Lets go of what all have read, and of the oldest where it is too much. What comes last may be nowhere else.
    fn forget(&mut self) {
        let passed = self.readers.passed();
        while let Some(old) = self.ring.front()
            && !self.closed
            && (old.event.seq <= passed || self.ring.len() > RING || self.ring_bytes > RING_BYTES)
        {
            self.forgotten_to = old.event.seq;
            self.ring_bytes -= old.bytes;
            self.ring.pop_front();
        }
    }

    fn look(&self, cursor: u64) -> Look {
        let readable_to = self.under_way.front().map_or(self.next_seq, |first| *first) - 1;
        let behind_to = self.forgotten_to.min(readable_to);
        if cursor < behind_to {
            return Look::Behind { to: behind_to };
        }
        let at = self.ring.partition_point(|kept| kept.event.seq <= cursor);
        match self.ring.get(at).filter(|kept| kept.event.seq <= readable_to) {
            Some(kept) if kept.event.seq > cursor + 1 => Look::Hole { to: kept.event.seq - 1 },
            Some(kept) => Look::Event(Arc::clone(&kept.event)),
            None if self.closed && self.under_way.is_empty() => Look::Ended,
            None => Look::Nothing,
        }
    }
}
