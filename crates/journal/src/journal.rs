//! A journal file and its handle: opening, listing, reading, removing. One handle serves all runs of a
//! process; [`crate::SqliteRun`] is one run on it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, params};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::event::{Event, TaskReport};
use crate::mark::{Mark, Marks};
use crate::ops::WriteOp;
use crate::reader::Reader;
use crate::writer::{QueueSlot, Writer};
use crate::{
    Branch, Clock, EventRecord, GcReport, JournalError, OutgoingBatch, OwnerKey, Ownership, Relay, RunId,
    RunStatus, StepKey, StepKind, gc, ops, owner, schema,
};

/// The report of a run is among this many of its last events: only its end and what a resume adds follow.
const REPORT_WITHIN: usize = 16;

/// Which failures a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Termination of the process, including SIGKILL.
    #[default]
    Process,
    /// Power loss as well, at the cost of one fsync per commit.
    Power,
}

/// Options for opening a journal.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// Which failures a commit survives.
    pub durability: Durability,
    /// Size in bytes above which the oldest ended runs are removed when a new run starts.
    pub max_bytes: u64,
    /// Where to save a copy if the file is removed while runs write to it.
    pub rescue: Option<PathBuf>,
    /// Key of the user, whose journal a new one is.
    pub owner: Option<OwnerKey>,
    /// Who records each batch of a run before it is committed here.
    pub relay: Option<Relay>,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { durability: Durability::Process, max_bytes: 1 << 30, rescue: None, owner: None, relay: None }
    }
}

/// A handle on a journal file. Clones share the file, the writer and its thread.
#[derive(Clone)]
pub struct Journal(Arc<Inner>);

struct Inner {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    max_bytes: u64,
    durability: Durability,
    writer: Option<Writer>,
    relay: Option<Relay>,
    reader: Mutex<Option<Reader>>,
    marks: Arc<Marks>,
}

/// A run as listed.
#[derive(Clone, Debug)]
pub struct RunRow {
    pub(crate) key: i64,
    /// Id of the run.
    pub id: RunId,
    /// Shortened request of the run.
    pub title: String,
    /// State of the run.
    pub status: RunStatus,
    /// Start time in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// End time in milliseconds since the Unix epoch; `None` while the run is open.
    pub ended_ms: Option<i64>,
}

/// Where the events of a run are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventIndex {
    /// Number of events.
    pub count: u64,
    /// Number of the last event; 0 if there is none.
    pub last: u64,
    /// Numbers of the events at regular distances, the first included.
    pub starts: Vec<u64>,
}

/// A signal stored in the journal; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalId(i64);

/// A step as recorded.
#[derive(Clone, Debug)]
pub struct StepRow {
    /// Position of the step.
    pub key: StepKey,
    /// Kind of step.
    pub kind: StepKind,
    /// Name of the model, tool or task that was called.
    pub callee: String,
    /// Arguments of the call.
    pub args: Value,
    /// The recorded intent, if the step was a `once`.
    pub intent: Option<Value>,
    /// The result; `None` if the step was started but not finished.
    pub result: Option<Value>,
    /// When the result, or else the intent, was recorded, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

impl Journal {
    /// Opens a journal for writing and creates it if it does not exist.
    pub fn open(path: &Path, options: JournalOptions, clock: Arc<dyn Clock>) -> Result<Self, JournalError> {
        let connection = schema::open_to_write(path, options.durability, options.owner.as_ref())?;
        let marks = Arc::new(Marks::open_to_write(path)?);
        let writer = Writer::start(path, connection, options.durability, Arc::clone(&marks), options.rescue)?;
        let journal = Self(Arc::new(Inner {
            path: path.to_owned(),
            clock,
            max_bytes: options.max_bytes,
            durability: options.durability,
            writer: Some(writer),
            relay: options.relay,
            reader: Mutex::new(None),
            marks,
        }));
        journal.check_runs()?;
        Ok(journal)
    }

    /// Opens an existing journal read-only.
    pub fn open_to_read(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, JournalError> {
        let reader = Reader::new(path.to_owned(), schema::open_to_read(path)?);
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            clock,
            max_bytes: u64::MAX,
            durability: Durability::Process,
            writer: None,
            relay: None,
            reader: Mutex::new(Some(reader)),
            marks: Arc::new(Marks::open_to_read(path)),
        })))
    }

    /// Path of the journal file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Current time of the journal's clock in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.0.clock.now_ms()
    }

    /// All runs, newest first.
    pub fn runs(&self) -> Result<Vec<RunRow>, JournalError> {
        self.read(|reader| reader.runs())
    }

    /// Looks up a run by name; the error suggests similar names.
    pub fn run(&self, name: &str) -> Result<RunRow, JournalError> {
        match self.read(|reader| reader.run(name))? {
            Some(run) => Ok(run),
            None => Err(JournalError::NoSuchRun { name: name.to_owned(), nearest: self.names_like(name)? }),
        }
    }

    fn names_like(&self, name: &str) -> Result<Vec<String>, JournalError> {
        let mut scored: Vec<_> = self
            .runs()?
            .into_iter()
            .map(|run| {
                let score =
                    if run.id.as_str().starts_with(name) { 1.0 } else { strsim::jaro(name, run.id.as_str()) };
                (score, run.id)
            })
            .filter(|(score, _)| *score > 0.8)
            .collect();
        scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        Ok(scored.into_iter().take(3).map(|(_, id)| format!("`{id}`")).collect())
    }

    /// Whether some process currently holds the lock of a run.
    pub fn is_active(&self, run: &RunId) -> bool {
        is_active(&self.0.path, run)
    }

    /// Whether a run has no step: its process ended before the settings were recorded, or has just begun.
    pub fn is_unstarted(&self, run: &RunRow) -> Result<bool, JournalError> {
        Ok(self.read(|reader| reader.length(run.key))?.steps == 0)
    }

    /// All steps of a run, ordered by branch and number.
    pub fn steps(&self, run: &RunId) -> Result<Vec<StepRow>, JournalError> {
        let key = self.run(run.as_str())?.key;
        self.read(|reader| reader.steps(key, run))
    }

    /// Number of steps of each branch of a run.
    pub fn step_counts(&self, run: &RunId) -> Result<HashMap<Branch, u64>, JournalError> {
        let key = self.run(run.as_str())?.key;
        self.read(|reader| reader.branch_lengths(key))
    }

    /// Looks up one step of a run.
    pub fn step(&self, run: &RunId, key: &StepKey) -> Result<Option<StepRow>, JournalError> {
        let row = self.run(run.as_str())?;
        self.read(|reader| reader.step(row.key, run, key))
    }

    /// Returns at most `limit` events of a run with `after < seq <= to`.
    pub fn events(
        &self,
        run: &RunId,
        after: u64,
        to: u64,
        limit: usize,
    ) -> Result<Vec<EventRecord>, JournalError> {
        let key = self.run(run.as_str())?.key;
        self.read(|reader| reader.events(key, run, after, to, limit))
    }

    /// The last report of a run's main task; `None` if it has not ended.
    pub fn report(&self, run: &RunRow) -> Result<Option<TaskReport>, JournalError> {
        let last = self.read(|reader| reader.last_seq(run.key))?;
        let after = last.saturating_sub(REPORT_WITHIN as u64);
        let events = self.read(|reader| reader.events(run.key, &run.id, after, last, REPORT_WITHIN))?;
        Ok(events.into_iter().rev().find_map(|record| match record.event {
            Event::TaskReport(report) if record.task == Branch::main() => Some(report),
            _ => None,
        }))
    }

    /// Counts the events of a run and returns the number of every `every`th, the first included, so that a reader can
    /// start in the middle.
    pub fn event_index(&self, run: &RunId, every: u64) -> Result<EventIndex, JournalError> {
        let key = self.run(run.as_str())?.key;
        self.read(|reader| reader.event_index(key, every))
    }

    /// Stores an answer for the current or next wait of this name. It is consumed by one wait; until then a
    /// newer answer replaces it.
    pub async fn signal(&self, run: &RunId, name: &str, value: &Value) -> Result<(), JournalError> {
        let (key, name, value) = (self.run(run.as_str())?.key, name.to_owned(), value.to_string());
        self.write_alone(move |connection| {
            connection.execute(
                "INSERT OR REPLACE INTO signals (run, name, value) VALUES (?,?,?)",
                params![key, name, value],
            )?;
            Ok(())
        })
        .await
    }

    /// Stores an answer for the current or next wait of this name unless one is stored already: the first counts.
    /// Returns the stored signal, which [`Journal::remove_signal`] takes back.
    pub async fn offer_signal(
        &self,
        run: &RunId,
        name: &str,
        value: &Value,
    ) -> Result<Option<SignalId>, JournalError> {
        let (key, name, value) = (self.run(run.as_str())?.key, name.to_owned(), value.to_string());
        self.write_alone(move |connection| {
            let added = connection.execute(
                "INSERT OR IGNORE INTO signals (run, name, value) VALUES (?,?,?)",
                params![key, name, value],
            )?;
            Ok((added > 0).then(|| SignalId(connection.last_insert_rowid())))
        })
        .await
    }

    /// The stored signal of this name.
    pub fn find_signal(&self, run: &RunId, name: &str) -> Result<Option<(SignalId, Value)>, JournalError> {
        let key = self.run(run.as_str())?.key;
        let found = self.read(|reader| reader.signal(key, name))?;
        Ok(found.map(|(signal, value)| (SignalId(signal), value)))
    }

    /// Removes a signal. Returns false if it is not there any more.
    pub async fn remove_signal(&self, signal: SignalId) -> Result<bool, JournalError> {
        let removed = self.write_alone(move |connection| {
            connection.execute("DELETE FROM signals WHERE id = ?", params![signal.0])
        });
        Ok(removed.await? > 0)
    }

    /// Removes all ended runs except the newest `keep`, and content that is no longer referenced.
    pub async fn collect(&self, keep: usize) -> Result<GcReport, JournalError> {
        let path = self.0.path.clone();
        self.write_alone(move |connection| {
            gc::remove_unstarted(connection, |run| !is_active(&path, run))?;
            gc::collect(connection, keep)
        })
        .await
    }

    /// Verifies the database structure, then every row and blob of every run. Returns the problems found.
    pub fn check(&self) -> Result<Vec<String>, JournalError> {
        let mut reader = Reader::new(self.0.path.clone(), schema::open_to_read(&self.0.path)?);
        let mut problems = reader.structure()?;
        problems.extend(self.check_runs().err().map(|error| error.to_string()));
        for run in reader.runs()? {
            let verified = reader.verify(&run).and_then(|()| self.check_length(&run).map(drop));
            problems.extend(verified.err().map(|error| error.to_string()));
        }
        Ok(problems)
    }

    /// Whether this journal is proven to be of the user with this key, and why.
    pub fn ownership(&self, key: &OwnerKey) -> Option<Ownership> {
        let file = std::fs::metadata(self.path()).ok()?;
        // A journal without the table has no proof.
        let proof = self.read(|reader| reader.owner_proof()).ok().flatten()?;
        [Ownership::Created, Ownership::Trusted]
            .into_iter()
            .find(|ownership| key.proof(*ownership, &file) == blake3::Hash::from_bytes(proof))
    }

    /// Writes the proof that a journal is of the user with this key.
    pub fn sign(path: &Path, key: &OwnerKey, ownership: Ownership) -> Result<(), JournalError> {
        let file = std::fs::metadata(path).map_err(|error| JournalError::from_io(path, &error))?;
        let connection = schema::open_to_write(path, Durability::Process, None)?;
        owner::write(&connection, key.proof(ownership, &file))
            .map_err(|error| JournalError::from_sqlite(path, &error))
    }

    /// Removes the proof of a journal.
    pub fn remove_signature(path: &Path) -> Result<(), JournalError> {
        let connection = schema::open_to_write(path, Durability::Process, None)?;
        connection
            .execute_batch("DROP TABLE IF EXISTS owner")
            .map_err(|error| JournalError::from_sqlite(path, &error))
    }

    /// Fails if the run is shorter than it was, which is how damage to SQLite's log shows.
    pub fn check_complete(&self, run: &RunId) -> Result<(), JournalError> {
        let row = self.run(run.as_str())?;
        self.check_length(&row).map(drop)
    }

    /// Compares a run with its mark; returns its length.
    pub(crate) fn check_length(&self, run: &RunRow) -> Result<Mark, JournalError> {
        // Read before the rows: another process may be adding some.
        let was = self.0.marks.read(run.key).unwrap_or_default();
        let now = self.read(|reader| reader.length(run.key))?;
        let is_shorter = now.events < was.events || now.steps < was.steps || now.intents < was.intents;
        // A log that ends in the middle of a frame was torn by a power failure. Nothing runs twice as long as
        // every intent is there.
        let is_torn =
            now.intents == was.intents && now.ended == was.ended && schema::has_torn_log(&self.0.path);
        if (is_shorter && !is_torn) || (was.ended && !now.ended) {
            let what = format!(
                "run {} was longer: {} of {} steps and {} of {} events are left",
                run.id, now.steps, was.steps, now.events, was.events
            );
            return Err(JournalError::shorter(&self.0.path, &what));
        }
        Ok(now)
    }

    /// Fails if runs are missing altogether.
    fn check_runs(&self) -> Result<(), JournalError> {
        let was = self.0.marks.newest_run();
        if was > 0 && self.read(|reader| reader.newest_run())? < was {
            return Err(JournalError::shorter(&self.0.path, "its newest runs are missing"));
        }
        Ok(())
    }

    pub(crate) fn set_mark(&self, run: i64, mark: Mark) {
        self.0.marks.set(run, mark);
    }

    pub(crate) async fn begin(&self, run: &RunId, title: &str) -> Result<i64, JournalError> {
        self.begin_with(run, title, Vec::new(), None).await
    }

    /// Adds a run with these rows in one transaction. It refers to all content of the run `like`.
    pub(crate) async fn begin_with(
        &self,
        run: &RunId,
        title: &str,
        rows: Vec<WriteOp>,
        like: Option<i64>,
    ) -> Result<i64, JournalError> {
        let (name, title, now, path) = (run.clone(), title.to_owned(), self.now_ms(), self.0.path.clone());
        let (max_bytes, durability, marks) = (self.0.max_bytes, self.0.durability, Arc::clone(&self.0.marks));
        let added = self
            .write_alone(move |connection| {
                gc::evict(connection, max_bytes)?;
                gc::remove_unstarted(connection, |other| *other == name || !is_active(&path, other))?;
                let run = ops::insert_run(connection, &name, &title, now, |connection, run| {
                    if let Some(like) = like {
                        let sql = "INSERT INTO refs (run, blob) SELECT ?, blob FROM refs WHERE run = ?";
                        connection.execute(sql, params![run, like])?;
                    }
                    rows.iter().try_for_each(|row| ops::write(connection, run, row))
                })?;
                run.iter().for_each(|run| marks.set(*run, Mark::from_rows(&rows)));
                schema::apply_durability(connection, durability)?;
                Ok(run)
            })
            .await?;
        added.ok_or_else(|| JournalError::RunExists(run.to_string()))
    }

    /// Runs a closure on the writing connection, between commits.
    async fn write_alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (sender, receiver) = oneshot::channel();
        self.reserve_slot().await?.job(Box::new(move |connection| {
            // Sending fails only if the caller is gone, and then the result is not needed.
            let _ = sender.send(work(connection));
        }));
        let path = self.0.path.clone();
        match receiver.await {
            Ok(result) => result.map_err(|error| JournalError::from_sqlite(&path, &error)),
            Err(_) => Err(JournalError::Failed { path, cause: "the writer thread has ended".to_owned() }),
        }
    }

    /// Waits for a slot in the writer's queue.
    pub(crate) async fn reserve_slot(&self) -> Result<QueueSlot<'_>, JournalError> {
        let Some(writer) = &self.0.writer else {
            let cause = "it was opened read-only".to_owned();
            return Err(JournalError::ReadOnly { path: self.0.path.clone(), cause });
        };
        writer.reserve_slot().await
    }

    /// Commits a batch that its relay has recorded, and lets the run continue.
    pub async fn commit_relayed(&self, batch: OutgoingBatch) -> Result<(), JournalError> {
        self.reserve_slot().await?.commit(batch.0);
        Ok(())
    }

    /// Who records each batch before it is committed here.
    pub(crate) fn relay(&self) -> Option<&Relay> {
        self.0.relay.as_ref()
    }

    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&mut Reader) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let mut reader = self.0.reader.lock();
        work(match &mut *reader {
            Some(reader) => reader,
            none => none.insert(Reader::new(self.0.path.clone(), schema::open_to_read(&self.0.path)?)),
        })
    }
}

fn is_active(journal: &Path, run: &RunId) -> bool {
    crate::lock::RunLock::is_held(journal, run)
}
