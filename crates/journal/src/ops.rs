//! The rows of a journal: write operations (`WriteOp`) and the SQL statements that execute them.

use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use crate::blob::Hash;
use crate::{Branch, RunId, RunStatus, StepKey, StepKind, checksum};

/// One row to write, already encoded.
#[derive(Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum WriteOp {
    Intent {
        key: StepKey,
        kind: StepKind,
        callee: String,
        args: String,
        intent: String,
        at_ms: i64,
    },
    Step {
        key: StepKey,
        kind: StepKind,
        callee: String,
        args: String,
        result: String,
        at_ms: i64,
        duration_ms: u64,
    },
    /// The result of a step whose intent is already recorded.
    Conclusion {
        key: StepKey,
        result: String,
        at_ms: i64,
        duration_ms: u64,
    },
    Event {
        /// Assigned when the batch is submitted.
        seq: u64,
        task: Branch,
        k: Option<u64>,
        ts_ms: i64,
        body: String,
    },
    Content {
        /// Follows from the text.
        #[serde(skip)]
        hash: Hash,
        text: String,
    },
    /// Deletes an external answer that a step of this batch has consumed.
    Taken {
        signal: i64,
    },
    Status {
        status: RunStatus,
        at_ms: i64,
    },
}

/// Adds a run with its first rows; `None` if there is one of this name. A journal that someone else made may hold
/// rows for runs that do not exist yet, such as answers to their questions: the new run starts without them.
pub(crate) fn insert_run(
    connection: &mut Connection,
    name: &RunId,
    title: &str,
    now_ms: i64,
    fill: impl FnOnce(&Connection, i64) -> rusqlite::Result<()>,
) -> rusqlite::Result<Option<i64>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let added = transaction.execute(
        "INSERT OR IGNORE INTO runs (name, title, status, started_ms) VALUES (?,?,'open',?)",
        params![name.as_str(), title, now_ms],
    )?;
    let run = (added == 1).then(|| transaction.last_insert_rowid());
    if let Some(run) = run {
        for table in ["steps", "events", "refs", "signals"] {
            transaction.execute(&format!("DELETE FROM {table} WHERE run = ?"), params![run])?;
        }
        fill(&transaction, run)?;
    }
    transaction.commit()?;
    Ok(run)
}

pub(crate) fn write(connection: &Connection, run: i64, op: &WriteOp) -> rusqlite::Result<()> {
    match op {
        WriteOp::Intent { key, kind, callee, args, intent, at_ms } => {
            let kind = kind.as_str();
            let asked = checksum::request_checksum(run, key, kind, callee, args, Some(intent));
            connection
                .prepare_cached(
                    "INSERT INTO steps (run, branch, n, kind, callee, args, intent, asked_sum, at_ms) \
                     VALUES (?,?,?,?,?,?,?,?,?)",
                )?
                .execute(params![run, key.branch.as_str(), key.n, kind, callee, args, intent, asked, at_ms])?
        }
        WriteOp::Step { key, kind, callee, args, result, at_ms, duration_ms } => {
            let (branch, kind) = (key.branch.as_str(), kind.as_str());
            let asked = checksum::request_checksum(run, key, kind, callee, args, None);
            let done = checksum::done(run, key, result, *at_ms, *duration_ms);
            connection
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
        WriteOp::Conclusion { key, result, at_ms, duration_ms } => {
            let done = checksum::done(run, key, result, *at_ms, *duration_ms);
            connection
                .prepare_cached(
                    "UPDATE steps SET result = ?, at_ms = ?, duration_ms = ?, done_sum = ? \
                     WHERE run = ? AND branch = ? AND n = ?",
                )?
                .execute(params![result, at_ms, duration_ms, done, run, key.branch.as_str(), key.n])?
        }
        WriteOp::Event { seq, task, k, ts_ms, body } => {
            let task = task.as_str();
            let sum = checksum::event(run, *seq, task, *k, *ts_ms, body);
            connection
                .prepare_cached(
                    "INSERT INTO events (run, seq, task, k, ts_ms, body, sum) VALUES (?,?,?,?,?,?,?)",
                )?
                .execute(params![run, seq, task, k, ts_ms, body, sum])?
        }
        WriteOp::Content { hash, text } => {
            connection
                .prepare_cached("INSERT OR IGNORE INTO blobs (hash, text) VALUES (?,?)")?
                .execute(params![hash, text])?;
            connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO refs (run, blob) SELECT ?, id FROM blobs WHERE hash = ?",
                )?
                .execute(params![run, hash])?
        }
        WriteOp::Taken { signal } => {
            connection.prepare_cached("DELETE FROM signals WHERE id = ?")?.execute(params![signal])?
        }
        WriteOp::Status { status, at_ms } => connection
            .prepare_cached("UPDATE runs SET status = ?1, ended_ms = ?2 WHERE id = ?3 AND status != ?1")?
            .execute(params![status.as_str(), at_ms, run])?,
    };
    Ok(())
}
