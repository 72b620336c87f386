//! The in-process engine: a run on a SQLite journal.
//!
//! Writes are batched (`pending_writes.rs`) and committed before anything becomes visible outside: before a model
//! request, before a command starts, and at the end. A turn with one command therefore costs two commits.
//! `steps.rs` implements the [`crate::DurableRun`] trait on top of this.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use self::pending_writes::PendingWrites;
use crate::broadcast::Broadcast;
use crate::lock::RunLock;
use crate::ops::WriteOp;
use crate::relay;
use crate::subscription::EventStream;
use crate::writer::{Batch, Commit, QueueSlot};
use crate::{
    Branch, Divergence, Event, Journal, JournalError, OutgoingBatch, RunAborted, RunId, RunStatus, StepKey,
    StepRequest, StepRow,
};

mod fan_out;
mod pending_writes;
mod run_copy;
mod steps;

pub use run_copy::RunCopy;

/// How a run treats steps that are not in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// They run. Recorded steps must match in kind and callee.
    Live,
    /// They are an error. Recorded steps and events must match exactly.
    Replay,
}

/// One run on a SQLite journal.
pub struct SqliteRun {
    mode: RunMode,
    journal: Journal,
    broadcast: Arc<Broadcast>,
    lock: Mutex<Option<RunLock>>,
    recorded: RecordedRun,
    state: Mutex<RunState>,
    answers: Mutex<Signals>,
    answered: Notify,
    /// Notified when a step that must not repeat has ended.
    settled: Notify,
}

/// Contents of the journal when the run was opened.
#[derive(Default)]
struct RecordedRun {
    /// Number of the newest event.
    last_seq: u64,
    /// Step count per branch.
    steps: HashMap<Branch, u64>,
    /// Number of program events per branch.
    events: HashMap<Branch, u64>,
}

/// Answers received from outside the run.
#[derive(Default)]
struct Signals {
    /// Sent to this process and not consumed yet, by name.
    given: HashMap<String, Value>,
    /// Ids of the signals in the file that no wait may use any more.
    taken: HashSet<i64>,
    /// Waits in progress, oldest first.
    waiting: Vec<OpenWait>,
}

/// A wait in progress, which [`SqliteRun::signal`] can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenWait {
    /// What waits, such as `approval`.
    pub callee: String,
    /// Name of the signal that answers it.
    pub signal: String,
}

#[derive(Default)]
struct RunState {
    pending: PendingWrites,
    progress: HashMap<Branch, BranchPosition>,
    stopped: Option<RunAborted>,
    /// Whether no further step that must not repeat may start.
    parked: bool,
    /// Steps in progress that must not repeat.
    unrepeatable: u32,
}

/// The program's position on a branch.
#[derive(Default)]
struct BranchPosition {
    steps: u64,
    events: u64,
    /// In a replay, the number of the last event compared.
    seq: u64,
    /// Step bodies currently running: 0 or 1.
    bodies: u32,
}

impl SqliteRun {
    /// Starts a new run and takes its lock.
    pub async fn begin(journal: &Journal, run: &RunId, title: &str) -> Result<Arc<Self>, JournalError> {
        let lock = RunLock::take(journal.path(), run)?;
        let key = journal.begin(run, title).await?;
        Ok(Self::new(journal, run, key, RunMode::Live, RecordedRun::default(), Some(lock)))
    }

    /// Starts a run as a copy of another one up to some point, with its own settings, and takes its lock. The copy and
    /// the intent of `first` are written in one transaction.
    pub async fn begin_copy(
        journal: &Journal,
        run: &RunId,
        title: &str,
        copy: RunCopy,
    ) -> Result<Arc<Self>, JournalError> {
        let lock = RunLock::take(journal.path(), run)?;
        let from = journal.run(copy.from.as_str())?.key;
        let rows = copy.rows(journal, from, run)?;
        journal.begin_with(run, title, rows, Some(from)).await?;
        Self::reopen(journal, run, RunMode::Live, Some(lock))
    }

    /// Continues a run after its last committed step and takes its lock.
    pub fn resume(journal: &Journal, run: &RunId) -> Result<Arc<Self>, JournalError> {
        let lock = RunLock::take(journal.path(), run)?;
        Self::reopen(journal, run, RunMode::Live, Some(lock))
    }

    /// Runs the program again from the journal alone. Takes no lock and writes nothing.
    pub fn replay(journal: &Journal, run: &RunId) -> Result<Arc<Self>, JournalError> {
        Self::reopen(journal, run, RunMode::Replay, None)
    }

    fn reopen(
        journal: &Journal,
        run: &RunId,
        mode: RunMode,
        lock: Option<RunLock>,
    ) -> Result<Arc<Self>, JournalError> {
        let row = journal.run(run.as_str())?;
        let key = row.key;
        let length = journal.check_length(&row)?;
        if mode == RunMode::Live {
            journal.set_mark(key, length);
        }
        let recorded = journal.read(|reader| {
            let (steps, events) = (reader.branch_lengths(key)?, reader.event_counts(key)?);
            Ok(RecordedRun { last_seq: reader.last_seq(key)?, steps, events })
        })?;
        Ok(Self::new(journal, run, key, mode, recorded, lock))
    }

    fn new(
        journal: &Journal,
        run: &RunId,
        key: i64,
        mode: RunMode,
        recorded: RecordedRun,
        lock: Option<RunLock>,
    ) -> Arc<Self> {
        let broadcast = Broadcast::new(run.clone(), key, journal.path().to_owned(), recorded.last_seq);
        Arc::new(Self {
            mode,
            journal: journal.clone(),
            broadcast: Arc::new(broadcast),
            lock: Mutex::new(lock),
            recorded,
            state: Mutex::default(),
            answers: Mutex::default(),
            answered: Notify::new(),
            settled: Notify::new(),
        })
    }

    /// Subscribes to the events from the opening of this run onwards.
    pub fn events(&self) -> EventStream {
        EventStream::new(Arc::clone(&self.broadcast), self.journal.clone(), self.recorded.last_seq)
    }

    /// Subscribes to the events after number `seq`. Those that have left the buffer are read from the journal.
    pub fn events_after(&self, seq: u64) -> EventStream {
        EventStream::new(Arc::clone(&self.broadcast), self.journal.clone(), seq)
    }

    /// Number of the last event in the journal when this run was opened.
    pub fn resumed_from(&self) -> u64 {
        self.recorded.last_seq
    }

    /// Step count of each branch when this run was opened.
    pub fn recorded_steps(&self) -> impl Iterator<Item = (&Branch, u64)> {
        self.recorded.steps.iter().map(|(branch, steps)| (branch, *steps))
    }

    /// Waits in progress, oldest first. A wait is listed before the events that precede it can be read.
    pub fn waiting(&self) -> Vec<OpenWait> {
        self.answers.lock().waiting.clone()
    }

    /// Answers the current or next wait of this name. An answer that has not been consumed yet is replaced.
    pub fn signal(&self, name: &str, value: Value) {
        self.answers.lock().given.insert(name.to_owned(), value);
        self.answered.notify_waiters();
    }

    /// Records the final status and closes the event stream. A replay must have consumed everything recorded.
    pub async fn finish(&self, status: RunStatus) -> Result<(), RunAborted> {
        let result = match self.mode {
            RunMode::Live => {
                let at_ms = self.journal.now_ms();
                self.state.lock().pending.push(WriteOp::Status { status, at_ms });
                self.commit().await
            }
            RunMode::Replay => self.check_active().and_then(|()| self.check_leftovers()),
        };
        self.broadcast.close();
        self.unlock();
        result
    }

    /// Gives up a run between two steps, so that another process can resume it: no step that must not repeat starts any
    /// more, those in progress are waited for and recorded, and the lock is released. The run stays open; the caller drops
    /// what works on it.
    pub async fn park(&self) -> Result<(), RunAborted> {
        self.state.lock().parked = true;
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            if self.state.lock().unrepeatable == 0 {
                break;
            }
            settled.await;
        }
        self.commit().await?;
        self.stop(RunAborted::HandedOver);
        self.broadcast.close();
        self.unlock();
        Ok(())
    }

    /// Ends a run whose journal failed: subscribers receive `last`; the run stays open and can be resumed.
    pub fn abandon(&self, task: &Branch, last: Event) {
        self.broadcast.close_with(task, self.journal.now_ms(), last);
        self.unlock();
    }

    fn unlock(&self) {
        *self.lock.lock() = None;
    }

    fn check_leftovers(&self) -> Result<(), RunAborted> {
        let state = self.state.lock();
        let used = |branch: &Branch| state.progress.get(branch);
        leftover("steps", &self.recorded.steps, |branch| used(branch).map_or(0, |progress| progress.steps))?;
        leftover("events", &self.recorded.events, |branch| used(branch).map_or(0, |progress| progress.events))
    }

    /// Fails if the run has been stopped or its journal has failed.
    fn check_active(&self) -> Result<(), RunAborted> {
        match (&self.state.lock().stopped, self.broadcast.failed()) {
            (Some(stop), _) => Err(stop.clone()),
            (None, Some(error)) => Err(error.into()),
            (None, None) => Ok(()),
        }
    }

    /// Stops the run permanently and returns the reason; the first reason given wins.
    fn stop(&self, stop: RunAborted) -> RunAborted {
        self.state.lock().stopped.get_or_insert(stop).clone()
    }

    /// Submits all pending writes and waits until everything submitted so far is committed.
    async fn commit(&self) -> Result<(), RunAborted> {
        self.check_active()?;
        if !self.state.lock().pending.is_empty() {
            match self.journal.relay() {
                None => self.submit(self.journal.reserve_slot().await?),
                Some(relay) => {
                    let place = relay.reserve().await?;
                    let mut state = self.state.lock();
                    if let Some(batch) = state.pending.batch(&self.broadcast) {
                        place.send(OutgoingBatch(batch));
                    }
                }
            }
        }
        Ok(self.broadcast.wait_committed().await?)
    }

    /// Adds a batch that another process recorded, in the form of [`OutgoingBatch::encode`], and publishes its
    /// events. Returns the final status if the batch contains it.
    pub async fn apply(&self, encoded: &str) -> Result<Option<RunStatus>, JournalError> {
        let ops = relay::decode(encoded)
            .map_err(|error| JournalError::damaged(self.journal.path(), &error.to_string()))?;
        let place = self.journal.reserve_slot().await?;
        let (mut last, mut ended) = (0, None);
        for op in &ops {
            match op {
                WriteOp::Event { seq, .. } => last = last.max(*seq),
                WriteOp::Status { status, .. } => ended = Some(*status),
                _ => {}
            }
        }
        self.broadcast.submit(0);
        place.commit(Batch { ops, commit: Commit::new(Arc::clone(&self.broadcast), Vec::new()) });
        self.broadcast.wait_committed().await?;
        self.broadcast.advance(last);
        Ok(ended)
    }

    /// Ends the events of a run that another process works on, and releases its lock.
    pub fn close(&self) {
        self.broadcast.close();
        self.unlock();
    }

    fn submit(&self, place: QueueSlot<'_>) {
        let mut state = self.state.lock();
        // Drained and submitted under one lock: two branches cannot overtake each other here, and a cancelled
        // caller cannot lose writes.
        let turn = state.pending.batch(&self.broadcast).and_then(|batch| place.submit(batch));
        drop(state);
        if let Some(turn) = turn {
            turn.commit();
        }
    }

    /// Allocates the next step of the call's branch. Returns its key and, if it is recorded, its row after
    /// checking it against the call.
    fn next_step(&self, call: &StepRequest) -> Result<(StepKey, Option<StepRow>), RunAborted> {
        self.check_active()?;
        let key = self.state.lock().next_step(&call.branch);
        match self.find(&key, call) {
            Ok(row) => Ok((key, row)),
            Err(stop) => Err(self.stop(stop)),
        }
    }

    fn find(&self, key: &StepKey, call: &StepRequest) -> Result<Option<StepRow>, RunAborted> {
        if key.n >= self.recorded.steps.get(&key.branch).copied().unwrap_or_default() {
            return match self.mode {
                RunMode::Live => Ok(None),
                RunMode::Replay => Err(RunAborted::EndOfJournal(key.clone())),
            };
        }
        let (number, run) = (self.broadcast.key, &self.broadcast.run);
        let row = self.journal.read(|reader| reader.step(number, run, key))?.ok_or_else(|| {
            JournalError::damaged(self.journal.path(), &format!("{key} of run {run} is missing"))
        })?;
        if row.kind != call.kind || row.callee != call.callee {
            return Err(RunAborted::Diverged(Box::new(Divergence::callee(key, row.kind, &row.callee, call))));
        }
        if self.mode == RunMode::Replay && row.args != call.args {
            return Err(RunAborted::Diverged(Box::new(Divergence::arguments(key, &row.args, call))));
        }
        if self.mode == RunMode::Replay && row.result.is_none() {
            return Err(RunAborted::EndOfJournal(key.clone()));
        }
        Ok(Some(row))
    }
}

/// Reports the first branch by name, so that the same journal always yields the same message.
fn leftover(
    what: &str,
    recorded: &HashMap<Branch, u64>,
    used: impl Fn(&Branch) -> u64,
) -> Result<(), RunAborted> {
    let reachable = recorded.iter().filter(|(branch, _)| !branch.is_aside());
    let left = reachable.map(|(branch, count)| (branch, count.saturating_sub(used(branch))));
    match left.filter(|(_, left)| *left > 0).min() {
        Some((branch, left)) => {
            let at = format!("the {what} of {branch}");
            Err(RunAborted::Diverged(Box::new(Divergence::leftover(at, left))))
        }
        None => Ok(()),
    }
}

impl Drop for SqliteRun {
    fn drop(&mut self) {
        // A dropped run emits no more events, so its subscribers must not wait for any.
        self.broadcast.close();
    }
}

impl RunState {
    fn progress(&mut self, branch: &Branch) -> &mut BranchPosition {
        self.progress.entry(branch.clone()).or_default()
    }

    fn next_step(&mut self, branch: &Branch) -> StepKey {
        let progress = self.progress(branch);
        progress.steps += 1;
        StepKey { branch: branch.clone(), n: progress.steps - 1 }
    }
}
