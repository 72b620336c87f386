//! The one writer of a journal: a thread that commits what many runs hand it, several at a time where they
//! come together, and shows their events only when they are committed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};

use crate::blob::Blob;
use crate::hub::Hub;
use crate::{Branch, Event, JournalError, Kind, RunId, RunStatus, Stamped, StepKey};

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
        task: Branch,
        k: Option<u64>,
        ts_ms: i64,
        event: Box<Event>,
        body: String,
    },
    Content(Blob),
    Status {
        status: RunStatus,
        at_ms: i64,
    },
}

/// What one run wants written in one transaction.
pub(crate) struct Batch {
    pub(crate) run: i64,
    pub(crate) name: RunId,
    pub(crate) hub: Arc<Hub>,
    pub(crate) ops: Vec<Op>,
    pub(crate) done: oneshot::Sender<Result<(), JournalError>>,
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
    if batches.is_empty() {
        return;
    }
    let committed = commit(connection, batches);
    for (batch, events) in batches.drain(..).zip(committed.stamped) {
        match &committed.result {
            Ok(()) => batch.hub.publish(events),
            Err(_) => batch.hub.withdraw(),
        }
        let result = committed.result.as_ref().map_err(|error| JournalError::from_sqlite(path, error));
        // A run that stopped waiting does not need the answer.
        let _ = batch.done.send(result.copied());
    }
}

struct Committed {
    stamped: Vec<Vec<Arc<Stamped>>>,
    result: rusqlite::Result<()>,
}

fn commit(connection: &mut Connection, batches: &mut [Batch]) -> Committed {
    let stamped: Vec<_> = batches.iter_mut().map(stamp).collect();
    let result = write_all(connection, batches, &stamped);
    Committed { stamped, result }
}

/// Gives the batch's events their numbers. Their bodies are encoded already; the writer only needs the rest.
fn stamp(batch: &mut Batch) -> Vec<Arc<Stamped>> {
    let count = batch.ops.iter().filter(|op| matches!(op, Op::Event { .. })).count();
    let mut seq = batch.hub.reserve(count);
    let mut stamped = Vec::with_capacity(count);
    for op in &batch.ops {
        if let Op::Event { task, ts_ms, event, .. } = op {
            let event = Event::clone(event);
            stamped.push(Arc::new(Stamped {
                seq,
                ts_ms: *ts_ms,
                run: batch.name.clone(),
                task: task.clone(),
                event,
            }));
            seq += 1;
        }
    }
    stamped
}

fn write_all(
    connection: &mut Connection,
    batches: &[Batch],
    stamped: &[Vec<Arc<Stamped>>],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (batch, stamped) in batches.iter().zip(stamped) {
        let mut numbers = stamped.iter().map(|event| event.seq);
        for op in &batch.ops {
            let seq = if matches!(op, Op::Event { .. }) { numbers.next().unwrap_or_default() } else { 0 };
            write(&transaction, batch.run, op, seq)?;
        }
    }
    transaction.commit()
}

fn write(transaction: &Transaction<'_>, run: i64, op: &Op, seq: u64) -> rusqlite::Result<()> {
    let run = &run;
    match op {
        Op::Intent { key, kind, callee, args, intent, at_ms } => transaction
            .prepare_cached(
                "INSERT INTO steps (run, branch, n, kind, callee, args, intent, at_ms) VALUES (?,?,?,?,?,?,?,?)",
            )?
            .execute(params![run, key.branch.as_str(), key.n, kind.as_str(), callee, args, intent, at_ms])?,
        Op::Step { key, kind, callee, args, result, at_ms, duration_ms } => transaction
            .prepare_cached(
                "INSERT INTO steps (run, branch, n, kind, callee, args, result, at_ms, duration_ms) \
                 VALUES (?,?,?,?,?,?,?,?,?)",
            )?
            .execute(params![
                run,
                key.branch.as_str(),
                key.n,
                kind.as_str(),
                callee,
                args,
                result,
                at_ms,
                duration_ms
            ])?,
        Op::Conclusion { key, result, at_ms, duration_ms } => transaction
            .prepare_cached(
                "UPDATE steps SET result = ?, at_ms = ?, duration_ms = ? WHERE run = ? AND branch = ? AND n = ?",
            )?
            .execute(params![result, at_ms, duration_ms, run, key.branch.as_str(), key.n])?,
        Op::Event { task, k, ts_ms, body, .. } => transaction
            .prepare_cached("INSERT INTO events (run, seq, task, k, ts_ms, body) VALUES (?,?,?,?,?,?)")?
            .execute(params![run, seq, task.as_str(), k, ts_ms, body])?,
        Op::Content(blob) => {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO blobs (hash, text) VALUES (?,?)")?
                .execute(params![blob.hash, blob.text])?;
            transaction
                .prepare_cached("INSERT OR IGNORE INTO refs (run, hash) VALUES (?,?)")?
                .execute(params![run, blob.hash])?
        }
        Op::Status { status, at_ms } => transaction
            .prepare_cached("UPDATE runs SET status = ?, ended_ms = ? WHERE id = ?")?
            .execute(params![status.as_str(), at_ms, run])?,
    };
    Ok(())
}
