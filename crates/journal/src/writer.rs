//! The one writer of a journal: a thread that commits what many runs hand it, several at a time where they
//! come together. Events are shown (`hub.rs`) when they are committed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use tokio::sync::mpsc;

use crate::blob::Hash;
use crate::hub::{Hub, Kept};
use crate::{Branch, JournalError, Kind, RunStatus, StepKey, sum};

/// Batches waiting for the writer; a run that finds it full waits its turn.
const QUEUE: usize = 256;

/// Batches committed together at most, so that the first does not wait long for the last.
const TOGETHER: usize = 64;

/// One row to write, already encoded by the run it belongs to.
pub(crate) enum Op {
    Intent {
        key: StepKey,
        kind: Kind,
        callee: String,
        args: String,
        intent: String,
        at_ms: i64,
    },
    Step {
        key: StepKey,
        kind: Kind,
        callee: String,
        args: String,
        result: String,
        at_ms: i64,
        duration_ms: u64,
    },
    /// The result of a step whose intent is there.
    Conclusion {
        key: StepKey,
        result: String,
        at_ms: i64,
        duration_ms: u64,
    },
    Event {
        /// Given when the batch is handed over.
        seq: u64,
        task: Branch,
        k: Option<u64>,
        ts_ms: i64,
        body: String,
    },
    Content {
        hash: Hash,
        text: String,
    },
    /// An answer from outside that this batch's step has taken.
    Taken {
        signal: i64,
    },
    Status {
        status: RunStatus,
        at_ms: i64,
    },
}

/// What one run wants written in one transaction.
pub(crate) struct Batch {
    pub(crate) ops: Vec<Op>,
    pub(crate) commit: Commit,
}

/// A commit under way. One that is dropped has failed.
pub(crate) struct Commit {
    hub: Arc<Hub>,
    events: Vec<Kept>,
    settled: bool,
}

impl Commit {
    pub(crate) fn new(hub: Arc<Hub>, events: Vec<Kept>) -> Self {
        Self { hub, events, settled: false }
    }

    fn settle(mut self, result: Result<(), JournalError>) {
        self.settled = true;
        self.hub.settle(std::mem::take(&mut self.events), result);
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        if !self.settled {
            self.hub.settle(Vec::new(), Err(self.hub.writer_gone()));
        }
    }
}

/// A job that needs the writing connection for itself, such as beginning a run or collecting garbage.
pub(crate) type Job = Box<dyn FnOnce(&mut Connection) + Send>;

pub(crate) enum Request {
    Batch(Batch),
    Job(Job),
}

/// Starts the thread. It ends when the last sender is gone.
pub(crate) fn start(
    path: PathBuf,
    connection: Connection,
) -> Result<(mpsc::Sender<Request>, std::thread::JoinHandle<()>), JournalError> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let failed = path.clone();
    let thread = std::thread::Builder::new()
        .name("journal".to_owned())
        .stack_size(512 * 1024)
        .spawn(move || work(&path, connection, receiver))
        .map_err(|error| JournalError::Open { path: failed, cause: error.to_string() })?;
    Ok((sender, thread))
}

fn work(path: &Path, mut connection: Connection, mut requests: mpsc::Receiver<Request>) {
    let mut batches = Vec::with_capacity(TOGETHER);
    while let Some(request) = requests.blocking_recv() {
        let mut job = None;
        let mut next = Some(request);
        while let Some(request) = next.take() {
            match request {
                Request::Batch(batch) => batches.push(batch),
                Request::Job(it) => job = Some(it),
            }
            if job.is_none() && batches.len() < TOGETHER {
                next = requests.try_recv().ok();
            }
        }
        commit_together(path, &mut connection, &mut batches);
        if let Some(job) = job {
            job(&mut connection);
        }
    }
}

fn commit_together(path: &Path, connection: &mut Connection, batches: &mut Vec<Batch>) {
    batches.retain(|batch| batch.commit.hub.failed().is_none());
    if batches.is_empty() {
        return;
    }
    let result = write_all(connection, batches);
    let apart = batches.len() > 1 && result.as_ref().is_err_and(concerns_one_batch);
    for batch in batches.drain(..) {
        let result = match batch.commit.hub.failed() {
            Some(error) => Err(error),
            None if apart => write_all(connection, std::slice::from_ref(&batch))
                .map_err(|error| JournalError::from_sqlite(path, &error)),
            None => result.as_ref().copied().map_err(|error| JournalError::from_sqlite(path, error)),
        };
        batch.commit.settle(result);
    }
}

/// Whether the others that were to be committed with it can do without the one that failed.
fn concerns_one_batch(error: &rusqlite::Error) -> bool {
    use ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        None | Some(Code::ConstraintViolation | Code::TooBig | Code::TypeMismatch)
    )
}

fn write_all(connection: &mut Connection, batches: &[Batch]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for batch in batches {
        for op in &batch.ops {
            write(&transaction, batch.commit.hub.key, op)?;
        }
    }
    transaction.commit()
}

fn write(transaction: &Transaction<'_>, run: i64, op: &Op) -> rusqlite::Result<()> {
    match op {
        Op::Intent { key, kind, callee, args, intent, at_ms } => {
            let kind = kind.as_str();
            let asked = sum::asked(run, key, kind, callee, args, Some(intent));
            transaction
                .prepare_cached(
                    "INSERT INTO steps (run, branch, n, kind, callee, args, intent, asked_sum, at_ms) \
                     VALUES (?,?,?,?,?,?,?,?,?)",
                )?
                .execute(params![run, key.branch.as_str(), key.n, kind, callee, args, intent, asked, at_ms])?
        }
        Op::Step { key, kind, callee, args, result, at_ms, duration_ms } => {
            let (branch, kind) = (key.branch.as_str(), kind.as_str());
            let asked = sum::asked(run, key, kind, callee, args, None);
            let done = sum::done(run, key, result, *at_ms, *duration_ms);
            transaction
                .prepare_cached(
                    "INSERT INTO steps (run, branch, n, kind, callee, args, asked_sum, result, at_ms, \
                     duration_ms, done_sum) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                )?
                .execute(params![
                    run,
                    branch,
                    key.n,
                    kind,
                    callee,
                    args,
                    asked,
                    result,
                    at_ms,
                    duration_ms,
                    done
                ])?
        }
        Op::Conclusion { key, result, at_ms, duration_ms } => {
            let done = sum::done(run, key, result, *at_ms, *duration_ms);
            transaction
                .prepare_cached(
                    "UPDATE steps SET result = ?, at_ms = ?, duration_ms = ?, done_sum = ? \
                     WHERE run = ? AND branch = ? AND n = ?",
                )?
                .execute(params![result, at_ms, duration_ms, done, run, key.branch.as_str(), key.n])?
        }
        Op::Event { seq, task, k, ts_ms, body } => {
            let task = task.as_str();
            let sum = sum::event(run, *seq, task, *k, *ts_ms, body);
            transaction
                .prepare_cached(
                    "INSERT INTO events (run, seq, task, k, ts_ms, body, sum) VALUES (?,?,?,?,?,?,?)",
                )?
                .execute(params![run, seq, task, k, ts_ms, body, sum])?
        }
        Op::Content { hash, text } => {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO blobs (hash, text) VALUES (?,?)")?
                .execute(params![hash, text])?;
            transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO refs (run, blob) SELECT ?, id FROM blobs WHERE hash = ?",
                )?
                .execute(params![run, hash])?
        }
        Op::Taken { signal } => {
            transaction.prepare_cached("DELETE FROM signals WHERE id = ?")?.execute(params![signal])?
        }
        Op::Status { status, at_ms } => transaction
            .prepare_cached("UPDATE runs SET status = ?1, ended_ms = ?2 WHERE id = ?3 AND status != ?1")?
            .execute(params![status.as_str(), at_ms, run])?,
    };
    Ok(())
}
