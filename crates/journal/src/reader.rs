//! Reading a journal back: runs, steps, events, with their content put together again.

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::blob::{self, Cache};
use crate::{Branch, JournalError, Kind, RunId, RunRow, RunStatus, Stamped, StepKey, StepRow};

/// Content kept in memory while a run is read back.
const CACHE: usize = 4 << 20;

/// A connection that only reads.
pub(crate) struct Reader {
    path: PathBuf,
    connection: Connection,
    cache: Cache,
    cached: usize,
}

impl Reader {
    pub(crate) fn new(path: PathBuf, connection: Connection) -> Self {
        Self { path, connection, cache: Cache::new(), cached: 0 }
    }

    fn fail(&self, error: &rusqlite::Error) -> JournalError {
        JournalError::from_sqlite(&self.path, error)
    }

    fn damaged(&self, detail: String) -> JournalError {
        JournalError::Corrupt { path: self.path.clone(), detail }
    }

    /// All runs, the newest first.
    pub(crate) fn runs(&self) -> Result<Vec<RunRow>, JournalError> {
        let sql = "SELECT id, name, title, status, started_ms, ended_ms FROM runs ORDER BY id DESC";
        self.rows(sql, params![], run_row)
    }

    /// One run by its name.
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

    /// How many steps each branch of a run holds.
    pub(crate) fn branch_lengths(&self, run: i64) -> Result<HashMap<Branch, u64>, JournalError> {
        let sql = "SELECT branch, MAX(n) + 1 FROM steps WHERE run = ? GROUP BY branch";
        let rows = self.rows(sql, params![run], |row| Ok((branch(row, 0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    /// How many events of the program each task of a run holds.
    pub(crate) fn event_counts(&self, run: i64) -> Result<HashMap<Branch, u64>, JournalError> {
        let sql = "SELECT task, MAX(k) + 1 FROM events WHERE run = ? AND k IS NOT NULL GROUP BY task";
        let rows = self.rows(sql, params![run], |row| Ok((branch(row, 0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    /// The number of a run's newest event, 0 if it has none.
    pub(crate) fn last_seq(&self, run: i64) -> Result<u64, JournalError> {
        let sql = "SELECT COALESCE(MAX(seq), 0) FROM events WHERE run = ?";
        Ok(self.rows(sql, params![run], |row| row.get(0))?.pop().unwrap_or_default())
    }

    /// One step.
    pub(crate) fn step(&mut self, run: i64, key: &StepKey) -> Result<Option<StepRow>, JournalError> {
        let sql = "SELECT branch, n, kind, callee, args, intent, result, at_ms, duration_ms FROM steps \
                   WHERE run = ? AND branch = ? AND n = ?";
        let raw = self.rows(sql, params![run, key.branch.as_str(), key.n], raw_step)?.pop();
        raw.map(|raw| self.whole_step(raw)).transpose()
    }

    /// All steps of a run, branch by branch.
    pub(crate) fn steps(&mut self, run: i64) -> Result<Vec<StepRow>, JournalError> {
        let sql = "SELECT branch, n, kind, callee, args, intent, result, at_ms, duration_ms FROM steps \
                   WHERE run = ? ORDER BY branch, n";
        let raw = self.rows(sql, params![run], raw_step)?;
        raw.into_iter().map(|raw| self.whole_step(raw)).collect()
    }

    fn whole_step(&mut self, raw: RawStep) -> Result<StepRow, JournalError> {
        let at = raw.key.to_string();
        Ok(StepRow {
            kind: Kind::parse(&raw.kind)
                .ok_or_else(|| self.damaged(format!("{at} is of unknown kind `{}`", raw.kind)))?,
            args: self.unfold(&at, &raw.args)?,
            intent: raw.intent.map(|text| self.unfold(&at, &text)).transpose()?,
            result: raw.result.map(|text| self.unfold(&at, &text)).transpose()?,
            key: raw.key,
            callee: raw.callee,
            at_ms: raw.at_ms,
            duration_ms: raw.duration_ms,
        })
    }

    /// Events after one and up to another, at most so many.
    pub(crate) fn events(
        &mut self,
        run: i64,
        name: &RunId,
        after: u64,
        to: u64,
        limit: usize,
    ) -> Result<Vec<Stamped>, JournalError> {
        let sql = "SELECT seq, task, ts_ms, body FROM events WHERE run = ? AND seq > ? AND seq <= ? \
                   ORDER BY seq LIMIT ?";
        // SQLite's integers are signed.
        let to = i64::try_from(to).unwrap_or(i64::MAX);
        let raw = self.rows(sql, params![run, after, to, limit], |row| {
            Ok((row.get::<_, u64>(0)?, branch(row, 1)?, row.get::<_, i64>(2)?, row.get::<_, String>(3)?))
        })?;
        raw.into_iter()
            .map(|(seq, task, ts_ms, body)| {
                let at = format!("event {seq} of run {name}");
                let body = self.unfold(&at, &body)?;
                let event = serde_json::from_value(body)
                    .map_err(|error| self.damaged(format!("{at} cannot be read: {error}")))?;
                Ok(Stamped { seq, ts_ms, run: name.clone(), task, event })
            })
            .collect()
    }

    /// One event of the program, as it was written.
    pub(crate) fn program_event(
        &mut self,
        run: i64,
        task: &Branch,
        k: u64,
    ) -> Result<Option<Value>, JournalError> {
        let sql = "SELECT body FROM events WHERE run = ? AND task = ? AND k = ?";
        let body = self.rows(sql, params![run, task.as_str(), k], |row| row.get::<_, String>(0))?.pop();
        body.map(|body| self.unfold(&format!("an event of {task}"), &body)).transpose()
    }

    /// A kept answer from outside.
    pub(crate) fn signal(&self, run: i64, name: &str) -> Result<Option<Value>, JournalError> {
        let sql = "SELECT value FROM signals WHERE run = ? AND name = ?";
        let text = self.rows(sql, params![run, name], |row| row.get::<_, String>(0))?.pop();
        text.map(|text| serde_json::from_str(&text).map_err(|error| self.damaged(error.to_string())))
            .transpose()
    }

    fn unfold(&mut self, at: &str, text: &str) -> Result<Value, JournalError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| self.damaged(format!("{at} is not JSON: {error}")))?;
        if !text.contains("\"$blob\"") {
            return Ok(value);
        }
        let mut broken = None;
        let unfolded = blob::unfold(value, &mut |hash| match self.content(hash) {
            Ok(found) => found,
            Err(error) => {
                broken = Some(error);
                None
            }
        });
        match (unfolded, broken) {
            (_, Some(error)) => Err(error),
            (Ok(value), None) => Ok(value),
            (Err(hash), None) => {
                Err(self.damaged(format!("{at} refers to content {hash}, which is missing")))
            }
        }
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
            return Err(self.damaged(format!("content {hex} does not have the hash it is stored under")));
        }
        if self.cached + text.len() > CACHE {
            self.cache.clear();
            self.cached = 0;
        }
        self.cached += text.len();
        self.cache.insert(hex.to_owned(), text.clone());
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
    })
}

fn branch(row: &Row<'_>, at: usize) -> rusqlite::Result<Branch> {
    Ok(Branch::from(row.get_ref(at)?.as_str()?))
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let name: String = row.get(1)?;
    let id = name.parse().map_err(|error: String| {
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(RunRow {
        key: row.get(0)?,
        id,
        title: row.get(2)?,
        status: RunStatus::parse(row.get_ref(3)?.as_str()?),
        started_ms: row.get(4)?,
        ended_ms: row.get(5)?,
    })
}
