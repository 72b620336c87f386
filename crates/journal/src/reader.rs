//! Reads runs, steps and events back from a journal and resolves their blobs.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::blob::{self, BlobError};
use crate::mark::Mark;
use crate::ops::WriteOp;
use crate::{
    Branch, EventIndex, EventRecord, JournalError, RunId, RunRow, RunStatus, StepKey, StepKind, StepRow,
    checksum,
};

/// Size limit of the content cache in bytes.
const CACHE: usize = 4 << 20;

/// A read-only connection.
pub(crate) struct Reader {
    path: PathBuf,
    connection: Connection,
    /// Content by hash, so that shared content is fetched once while a run is read back.
    cache: HashMap<String, String>,
    cached: usize,
}

impl Reader {
    pub(crate) fn new(path: PathBuf, connection: Connection) -> Self {
        Self { path, connection, cache: HashMap::new(), cached: 0 }
    }

    fn fail(&self, error: &rusqlite::Error) -> JournalError {
        JournalError::from_sqlite(&self.path, error)
    }

    fn damaged(&self, what: &str) -> JournalError {
        JournalError::damaged(&self.path, what)
    }

    /// All runs, newest first.
    pub(crate) fn runs(&self) -> Result<Vec<RunRow>, JournalError> {
        let sql = "SELECT id, name, title, status, started_ms, ended_ms FROM runs ORDER BY id DESC";
        self.rows(sql, params![], run_row)
    }

    pub(crate) fn run(&self, name: &str) -> Result<Option<RunRow>, JournalError> {
        let sql = "SELECT id, name, title, status, started_ms, ended_ms FROM runs WHERE name = ?";
        Ok(self.rows(sql, params![name], run_row)?.pop())
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, JournalError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(|error| self.fail(&error))?;
        let rows = statement.query_map(params, read).map_err(|error| self.fail(&error))?;
        rows.collect::<Result<_, _>>().map_err(|error| self.fail(&error))
    }

    /// The proof of who created the journal; fails if it has no table for it.
    pub(crate) fn owner_proof(&self) -> Result<Option<[u8; 32]>, JournalError> {
        let proofs = self.rows("SELECT proof FROM owner WHERE id = 1", params![], |row| row.get(0))?;
        Ok(proofs.into_iter().next())
    }

    /// Problems reported by SQLite's integrity check, at most 20.
    pub(crate) fn structure(&self) -> Result<Vec<String>, JournalError> {
        let lines = self.rows("PRAGMA integrity_check(20)", params![], |row| row.get::<_, String>(0))?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Reads an entire run; the error is the first damage found.
    pub(crate) fn verify(&mut self, run: &RunRow) -> Result<(), JournalError> {
        self.steps(run.key, &run.id)?;
        let mut after = 0;
        while let Some(last) = self.events(run.key, &run.id, after, u64::MAX, 256)?.last() {
            after = last.seq;
        }
        Ok(())
    }

    /// Number of rows of a run.
    pub(crate) fn length(&self, run: i64) -> Result<Mark, JournalError> {
        let sql = "SELECT (SELECT COUNT(*) FROM events WHERE run = ?1), \
                   (SELECT COUNT(*) FROM steps WHERE run = ?1), \
                   (SELECT COUNT(intent) FROM steps WHERE run = ?1), \
                   (SELECT status != 'open' FROM runs WHERE id = ?1)";
        let read = |row: &Row<'_>| {
            Ok(Mark { events: row.get(0)?, steps: row.get(1)?, intents: row.get(2)?, ended: row.get(3)? })
        };
        Ok(self.rows(sql, params![run], read)?.pop().unwrap_or_default())
    }

    /// Key of the newest run that was ever created.
    pub(crate) fn newest_run(&self) -> Result<i64, JournalError> {
        let sql = "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'runs'";
        Ok(self.rows(sql, params![], |row| row.get(0))?.pop().unwrap_or_default())
    }

    /// Step count of each branch of a run.
    pub(crate) fn branch_lengths(&self, run: i64) -> Result<HashMap<Branch, u64>, JournalError> {
        let sql = "SELECT branch, MAX(n) + 1 FROM steps WHERE run = ? GROUP BY branch";
        let rows = self.rows(sql, params![run], |row| Ok((branch(row, 0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    /// Number of program events of each task of a run.
    pub(crate) fn event_counts(&self, run: i64) -> Result<HashMap<Branch, u64>, JournalError> {
        let sql = "SELECT task, MAX(k) + 1 FROM events WHERE run = ? AND k IS NOT NULL GROUP BY task";
        let rows = self.rows(sql, params![run], |row| Ok((branch(row, 0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    /// Number of a run's newest event, 0 if it has none.
    pub(crate) fn last_seq(&self, run: i64) -> Result<u64, JournalError> {
        let sql = "SELECT COALESCE(MAX(seq), 0) FROM events WHERE run = ?";
        Ok(self.rows(sql, params![run], |row| row.get(0))?.pop().unwrap_or_default())
    }

    pub(crate) fn event_index(&self, run: i64, every: u64) -> Result<EventIndex, JournalError> {
        let sql = "SELECT seq FROM (SELECT seq, ROW_NUMBER() OVER (ORDER BY seq) AS n FROM events WHERE run = ?) \
                   WHERE (n - 1) % ? = 0";
        let starts = self.rows(sql, params![run, signed(every.max(1))], |row| row.get(0))?;
        let sql = "SELECT COUNT(*), COALESCE(MAX(seq), 0) FROM events WHERE run = ?";
        let (count, last) =
            self.rows(sql, params![run], |row| Ok((row.get(0)?, row.get(1)?)))?.pop().unwrap_or_default();
        Ok(EventIndex { count, last, starts })
    }

    pub(crate) fn step(
        &mut self,
        run: i64,
        name: &RunId,
        key: &StepKey,
    ) -> Result<Option<StepRow>, JournalError> {
        let sql = "SELECT branch, n, kind, callee, args, intent, result, at_ms, duration_ms, asked_sum, done_sum \
                   FROM steps WHERE run = ? AND branch = ? AND n = ?";
        let raw = self.rows(sql, params![run, key.branch.as_str(), key.n], raw_step)?.pop();
        raw.map(|raw| self.whole_step(run, name, raw)).transpose()
    }

    /// All steps of a run, ordered by branch and number.
    pub(crate) fn steps(&mut self, run: i64, name: &RunId) -> Result<Vec<StepRow>, JournalError> {
        let sql = "SELECT branch, n, kind, callee, args, intent, result, at_ms, duration_ms, asked_sum, done_sum \
                   FROM steps WHERE run = ? ORDER BY branch, n";
        let raw = self.rows(sql, params![run], raw_step)?;
        raw.into_iter().map(|raw| self.whole_step(run, name, raw)).collect()
    }

    /// The rows of a run as they are written: the steps with a number below that of their branch in `steps`, and the
    /// events up to number `last_seq`. Rows of a run refer to content by its hash, so they can be written again.
    pub(crate) fn copy_rows(
        &self,
        run: i64,
        name: &RunId,
        steps: &BTreeMap<Branch, u64>,
        last_seq: u64,
    ) -> Result<Vec<WriteOp>, JournalError> {
        let sql = "SELECT branch, n, kind, callee, args, intent, result, at_ms, duration_ms, asked_sum, done_sum \
                   FROM steps WHERE run = ? ORDER BY branch, n";
        let mut rows = Vec::new();
        for raw in self.rows(sql, params![run], raw_step)? {
            if raw.key.n >= steps.get(&raw.key.branch).copied().unwrap_or_default() {
                continue;
            }
            let at = format!("{} of run {name}", raw.key);
            if !raw.is_as_written(run) {
                return Err(self.damaged(&format!("{at} does not match its checksum")));
            }
            let kind = StepKind::parse(&raw.kind)
                .ok_or_else(|| self.damaged(&format!("{at} has unknown kind `{}`", raw.kind)))?;
            let RawStep { key, callee, args, intent, result, at_ms, duration_ms, .. } = raw;
            match (intent, result) {
                (None, Some(result)) => {
                    rows.push(WriteOp::Step { key, kind, callee, args, result, at_ms, duration_ms });
                }
                (intent, result) => {
                    let intent = intent.unwrap_or_else(|| "null".to_owned());
                    rows.push(WriteOp::Intent { key: key.clone(), kind, callee, args, intent, at_ms });
                    rows.extend(result.map(|result| WriteOp::Conclusion { key, result, at_ms, duration_ms }));
                }
            }
        }
        let sql = "SELECT seq, task, k, ts_ms, body, sum FROM events WHERE run = ? AND seq <= ? ORDER BY seq";
        for raw in self.rows(sql, params![run, signed(last_seq)], raw_event)? {
            let RawEvent { seq, task, k, ts_ms, body, sum } = raw;
            if checksum::event(run, seq, task.as_str(), k, ts_ms, &body) != sum {
                let at = format!("event {seq} of run {name}");
                return Err(self.damaged(&format!("{at} does not match its checksum")));
            }
            rows.push(WriteOp::Event { seq, task, k, ts_ms, body });
        }
        Ok(rows)
    }

    fn whole_step(&mut self, run: i64, name: &RunId, raw: RawStep) -> Result<StepRow, JournalError> {
        let at = format!("{} of run {name}", raw.key);
        if !raw.is_as_written(run) {
            return Err(self.damaged(&format!("{at} does not match its checksum")));
        }
        Ok(StepRow {
            kind: StepKind::parse(&raw.kind)
                .ok_or_else(|| self.damaged(&format!("{at} has unknown kind `{}`", raw.kind)))?,
            args: self.unfold(&at, &raw.args)?,
            intent: raw.intent.map(|text| self.unfold(&at, &text)).transpose()?,
            result: raw.result.map(|text| self.unfold(&at, &text)).transpose()?,
            key: raw.key,
            callee: raw.callee,
            at_ms: raw.at_ms,
            duration_ms: raw.duration_ms,
        })
    }

    /// At most `limit` events with `after < seq <= to`.
    pub(crate) fn events(
        &mut self,
        run: i64,
        name: &RunId,
        after: u64,
        to: u64,
        limit: usize,
    ) -> Result<Vec<EventRecord>, JournalError> {
        let sql = "SELECT seq, task, k, ts_ms, body, sum FROM events \
                   WHERE run = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?";
        let raw = self.rows(sql, params![run, signed(after), signed(to), limit], raw_event)?;
        raw.into_iter()
            .map(|raw| {
                let (at, body) = self.whole_event(run, name, &raw)?;
                let event = serde_json::from_value(body)
                    .map_err(|error| self.damaged(&format!("{at} cannot be read: {error}")))?;
                Ok(EventRecord { seq: raw.seq, ts_ms: raw.ts_ms, run: name.clone(), task: raw.task, event })
            })
            .collect()
    }

    /// A task's first program event after number `after`, as recorded, with its number.
    pub(crate) fn program_event(
        &mut self,
        run: i64,
        name: &RunId,
        task: &Branch,
        after: u64,
    ) -> Result<Option<(u64, Value)>, JournalError> {
        let sql = "SELECT seq, task, k, ts_ms, body, sum FROM events \
                   WHERE run = ? AND seq > ? AND task = ? AND k IS NOT NULL ORDER BY seq LIMIT 1";
        let raw = self.rows(sql, params![run, signed(after), task.as_str()], raw_event)?.pop();
        raw.map(|raw| Ok((raw.seq, self.whole_event(run, name, &raw)?.1))).transpose()
    }

    fn whole_event(
        &mut self,
        run: i64,
        name: &RunId,
        raw: &RawEvent,
    ) -> Result<(String, Value), JournalError> {
        let RawEvent { seq, task, k, ts_ms, body, sum } = raw;
        let at = format!("event {seq} of run {name}");
        if checksum::event(run, *seq, task.as_str(), *k, *ts_ms, body) != *sum {
            return Err(self.damaged(&format!("{at} does not match its checksum")));
        }
        let body = self.unfold(&at, body)?;
        Ok((at, body))
    }

    /// A stored external answer and its signal id.
    pub(crate) fn signal(&self, run: i64, name: &str) -> Result<Option<(i64, Value)>, JournalError> {
        let sql = "SELECT id, value FROM signals WHERE run = ? AND name = ?";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
        let found = self.rows(sql, params![run, name], read)?.pop();
        found
            .map(|(id, text)| match serde_json::from_str(&text) {
                Ok(value) => Ok((id, value)),
                Err(error) => Err(self.damaged(&format!("signal `{name}` is not JSON: {error}"))),
            })
            .transpose()
    }

    fn unfold(&mut self, at: &str, text: &str) -> Result<Value, JournalError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| self.damaged(&format!("{at} is not JSON: {error}")))?;
        if !text.contains("\"$blob\"") {
            return Ok(value);
        }
        blob::unfold(value, &mut |hash| self.content(hash)).map_err(|error| match error {
            BlobError::Missing(hash) => {
                self.damaged(&format!("{at} refers to content {hash}, which is missing"))
            }
            BlobError::Malformed => self.damaged(&format!("{at} has a malformed content reference")),
            BlobError::Failed(error) => error,
        })
    }

    fn content(&mut self, hex: &str) -> Result<Option<String>, JournalError> {
        if let Some(text) = self.cache.get(hex) {
            return Ok(Some(text.clone()));
        }
        let Ok(hash) = blake3::Hash::from_hex(hex) else { return Ok(None) };
        let hash = *hash.as_bytes();
        let found: Option<String> = self
            .connection
            .prepare_cached("SELECT text FROM blobs WHERE hash = ?")
            .and_then(|mut statement| statement.query_row(params![hash], |row| row.get(0)).optional())
            .map_err(|error| self.fail(&error))?;
        let Some(text) = found else { return Ok(None) };
        if blob::hash(&text) != hash {
            return Err(self.damaged(&format!("content {hex} does not match its hash")));
        }
        if self.cached + text.len() > CACHE {
            self.cache.clear();
            self.cached = 0;
        }
        if text.len() <= CACHE {
            self.cached += text.len();
            self.cache.insert(hex.to_owned(), text.clone());
        }
        Ok(Some(text))
    }
}

struct RawStep {
    key: StepKey,
    kind: String,
    callee: String,
    args: String,
    intent: Option<String>,
    result: Option<String>,
    at_ms: i64,
    duration_ms: u64,
    asked_sum: i64,
    done_sum: Option<i64>,
}

impl RawStep {
    fn is_as_written(&self, run: i64) -> bool {
        let Self { key, kind, callee, args, intent, at_ms, duration_ms, .. } = self;
        let done = |result: &String| checksum::done(run, key, result, *at_ms, *duration_ms);
        checksum::request_checksum(run, key, kind, callee, args, intent.as_deref()) == self.asked_sum
            && self.result.as_ref().map(done) == self.done_sum
    }
}

fn raw_step(row: &Row<'_>) -> rusqlite::Result<RawStep> {
    Ok(RawStep {
        key: StepKey { branch: branch(row, 0)?, n: row.get(1)? },
        kind: row.get(2)?,
        callee: row.get(3)?,
        args: row.get(4)?,
        intent: row.get(5)?,
        result: row.get(6)?,
        at_ms: row.get(7)?,
        duration_ms: row.get(8)?,
        asked_sum: row.get(9)?,
        done_sum: row.get(10)?,
    })
}

struct RawEvent {
    seq: u64,
    task: Branch,
    k: Option<u64>,
    ts_ms: i64,
    body: String,
    sum: i64,
}

fn raw_event(row: &Row<'_>) -> rusqlite::Result<RawEvent> {
    Ok(RawEvent {
        seq: row.get(0)?,
        task: branch(row, 1)?,
        k: row.get(2)?,
        ts_ms: row.get(3)?,
        body: row.get(4)?,
        sum: row.get(5)?,
    })
}

/// Saturating conversion, as SQLite integers are signed.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn branch(row: &Row<'_>, at: usize) -> rusqlite::Result<Branch> {
    Ok(Branch::from(row.get_ref(at)?.as_str()?))
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let name: String = row.get(1)?;
    let conversion = |error: String| {
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, error.into())
    };
    let id = name.parse().map_err(conversion)?;
    Ok(RunRow {
        key: row.get(0)?,
        id,
        title: row.get(2)?,
        status: RunStatus::parse(row.get_ref(3)?.as_str()?)
            .ok_or_else(|| conversion("unknown status of a run".to_owned()))?,
        started_ms: row.get(4)?,
        ended_ms: row.get(5)?,
    })
}
