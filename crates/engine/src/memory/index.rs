//! The index as stored: one SQLite file with a row per file and a full-text table of their words.
//!
//! The full-text table holds no text of its own: `tokenizer.rs` splits and stems what is stored in `file`, so
//! an entry is removed by passing its words once more. Every update is one transaction, so a process that is
//! killed leaves the index as it was before. `bm25.rs` ranks.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, TransactionBehavior, params};

use super::entry::{FileEntry, language};
use super::scan::{self, ScanResult};
use super::tokenizer::Words;
use super::{FileReader, IndexUpdate, git_head};

/// Changes with the schema and with how words are split; an index of another version is rebuilt.
const VERSION: i64 = 3;
/// How long to wait for another process that is writing the index.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Page cache in KiB, so that an index of any size is written and searched in little memory.
const CACHE: i64 = 2048;

/// Without column sizes a search need not look up every matching file; `bm25.rs` counts the words of the few
/// files it ranks.
const SCHEMA: &str = "
    CREATE TABLE file(
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
        hash INTEGER NOT NULL, commit_id TEXT, summary TEXT NOT NULL, symbols TEXT NOT NULL);
    CREATE TABLE total(files INTEGER NOT NULL, words INTEGER NOT NULL);
    INSERT INTO total VALUES (0, 0);
    CREATE VIRTUAL TABLE word USING fts5(path, symbols, summary, content='', columnsize=0, tokenize='ascii');
    CREATE VIRTUAL TABLE vocabulary USING fts5vocab(word, row);";

/// Columns of `file` that make an entry.
const ENTRY: &str = "path, size, mtime, hash, commit_id, summary, symbols";

/// Error of an index operation.
pub(super) enum IndexError {
    /// The index is damaged or of another version and must be rebuilt.
    Damaged,
    /// Any other failure, as a message.
    Failed(String),
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        use ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed)
            | Some(Code::ReadOnly | Code::CannotOpen | Code::PermissionDenied)
            | Some(Code::DiskFull | Code::SystemIoFailure | Code::OutOfMemory) => {
                Self::Failed(format!("cannot use the file index: {error}"))
            }
            // A table, column or value that is missing or other than expected.
            _ => Self::Damaged,
        }
    }
}

/// Numbers over all files.
pub(super) struct IndexTotals {
    pub(super) files: usize,
    pub(super) words: u64,
}

/// An open index.
pub(super) struct FileIndex(pub(super) Connection);

impl FileIndex {
    /// Opens an index file, creating it if it is missing; without one, the index lives in memory.
    pub(super) fn open(file: Option<&Path>) -> Result<Self, IndexError> {
        // Opening a FIFO would block.
        if let Some(file) = file.filter(|file| std::fs::metadata(file).is_ok_and(|found| !found.is_file())) {
            let why = format!("cannot use the file index: {} is not a regular file", file.display());
            return Err(IndexError::Failed(why));
        }
        let mut index = Self(connect(file)?);
        index.prepare()?;
        index.0.pragma_update(None, "cache_size", -CACHE)?;
        index.0.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(index)
    }

    /// Creates the tables of a new index.
    fn prepare(&mut self) -> Result<(), IndexError> {
        if version(&self.0)? == VERSION {
            return Ok(());
        }
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match version(&transaction)? {
            // Another process created them in the meantime.
            VERSION => {}
            0 => {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            _ => return Err(IndexError::Damaged),
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn totals(&self) -> rusqlite::Result<IndexTotals> {
        let mut statement = self.0.prepare_cached("SELECT files, words FROM total")?;
        statement.query_row([], |row| Ok(IndexTotals { files: row.get(0)?, words: row.get(1)? }))
    }

    /// Returns all entries, sorted by path.
    pub(super) fn entries(&self) -> Result<Vec<FileEntry>, IndexError> {
        let mut statement = self.0.prepare(&format!("SELECT {ENTRY} FROM file ORDER BY path"))?;
        Ok(statement.query_map([], read_entry)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the entry of one file.
    pub(super) fn entry(&self, path: &str) -> rusqlite::Result<Option<FileEntry>> {
        let mut statement = self.0.prepare_cached(&format!("SELECT {ENTRY} FROM file WHERE path = ?1"))?;
        statement.query_row([path], read_entry).optional()
    }

    /// Returns the entries that match a full-text query best if their length is left out of account, unordered.
    pub(super) fn matching(&self, query: &str, limit: usize) -> rusqlite::Result<Vec<FileEntry>> {
        let best = "SELECT rowid FROM word WHERE word MATCH ?1 ORDER BY bm25(word, 3.0, 2.0, 1.0) LIMIT ?2";
        let mut statement =
            self.0.prepare_cached(&format!("SELECT {ENTRY} FROM file WHERE id IN ({best})"))?;
        statement.query_map(params![query, limit], read_entry)?.collect()
    }

    /// Returns the number of files that contain a stemmed word.
    pub(super) fn files_with(&self, stem: &str) -> rusqlite::Result<usize> {
        let mut statement = self.0.prepare_cached("SELECT doc FROM vocabulary WHERE term = ?1")?;
        Ok(statement.query_row([stem], |row| row.get(0)).optional()?.unwrap_or_default())
    }

    /// Brings the index up to date with the work tree.
    pub(super) fn refresh(
        &mut self,
        root: &Path,
        reader: &dyn FileReader,
    ) -> Result<IndexUpdate, IndexError> {
        let commit = git_head::head_commit(root);
        let known = self.known()?;
        let mut walked = scan::walk(root, reader, &known, commit.as_deref()).map_err(IndexError::Failed)?;
        let unseen = known.iter().filter(|(_, file)| !file.seen.load(Ordering::Relaxed));
        let removed: Vec<&str> = unseen.map(|(path, _)| &**path).collect();
        let updated = IndexUpdate {
            files: walked.files,
            read: walked.entries.len(),
            removed: removed.len(),
            cut: walked.cut,
        };
        if updated.read > 0 || updated.removed > 0 || !walked.touched.is_empty() {
            walked.entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
            self.write(&walked, &removed)?;
        }
        Ok(updated)
    }

    /// Reads what a walk needs to know of every file.
    fn known(&self) -> rusqlite::Result<KnownFiles> {
        let mut known = KnownFiles::with_capacity(self.totals()?.files.min(scan::MAX_FILES));
        let mut statement = self.0.prepare("SELECT path, size, mtime, hash FROM file")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let seen = AtomicBool::new(false);
            let file = KnownFile { size: row.get(1)?, mtime: row.get(2)?, hash: row.get(3)?, seen };
            known.insert(row.get(0)?, file);
        }
        Ok(known)
    }

    fn write(&mut self, walked: &ScanResult, removed: &[&str]) -> rusqlite::Result<()> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (mut files, mut words) = (0, 0);
        for path in removed.iter().copied().chain(walked.entries.iter().map(|entry| entry.path.as_str())) {
            if let Some(length) = remove(&transaction, path)? {
                files -= 1;
                words -= length;
            }
        }
        for entry in &walked.entries {
            files += 1;
            words += insert(&transaction, entry)?;
        }
        for (path, mtime) in &walked.touched {
            let mut touch = transaction.prepare_cached("UPDATE file SET mtime = ?2 WHERE path = ?1")?;
            touch.execute(params![path, mtime])?;
        }
        transaction.execute("UPDATE total SET files = files + ?1, words = words + ?2", [files, words])?;
        transaction.commit()
    }
}

/// Empties an index file, whatever it holds. The file is not replaced, because another process may have it open
/// and SQLite's locks belong to the file.
pub(super) fn empty(file: &Path) -> Result<(), IndexError> {
    // Versions before SQLite kept changes in a second file.
    let _ = std::fs::remove_file(file.with_extension("delta"));
    let connection = connect(Some(file))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    Ok(connection.execute_batch("VACUUM")?)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn connect(file: Option<&Path>) -> Result<Connection, IndexError> {
    let Some(file) = file else { return Ok(Connection::open_in_memory()?) };
    let failed = |error: &dyn std::fmt::Display| {
        IndexError::Failed(format!("cannot write {}: {error}", file.display()))
    };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    }
    let connection = Connection::open(file).map_err(|error| failed(&error))?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    Ok(connection)
}

/// Removes a file from the index; returns the number of its words if it was there.
fn remove(connection: &Connection, path: &str) -> rusqlite::Result<Option<i64>> {
    let delete = format!("DELETE FROM file WHERE path = ?1 RETURNING {ENTRY}, id");
    let mut delete = connection.prepare_cached(&delete)?;
    let found = delete.query_row([path], |row| Ok((row.get::<_, i64>("id")?, Words::new(&read_entry(row)?))));
    let Some((id, words)) = found.optional()? else { return Ok(None) };
    let forget = "INSERT INTO word(word, rowid, path, symbols, summary) VALUES ('delete', ?1, ?2, ?3, ?4)";
    let [path, symbols, summary] = words.texts();
    connection.prepare_cached(forget)?.execute(params![id, path, symbols, summary])?;
    Ok(Some(words.len()))
}

/// Adds a file to the index and returns the number of its words.
fn insert(connection: &Connection, entry: &FileEntry) -> rusqlite::Result<i64> {
    let add = "INSERT INTO file(path, size, mtime, hash, commit_id, summary, symbols)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let FileEntry { path, size, mtime, hash, commit, summary, symbols, .. } = entry;
    let row = params![path, size, mtime, hash, commit, summary, symbols.join("\n")];
    let id = connection.prepare_cached(add)?.insert(row)?;
    let words = Words::new(entry);
    let learn = "INSERT INTO word(rowid, path, symbols, summary) VALUES (?1, ?2, ?3, ?4)";
    let [path, symbols, summary] = words.texts();
    connection.prepare_cached(learn)?.execute(params![id, path, symbols, summary])?;
    Ok(words.len())
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<FileEntry> {
    let path: String = row.get("path")?;
    let symbols: String = row.get("symbols")?;
    Ok(FileEntry {
        language: language(&path).to_owned(),
        size: row.get("size")?,
        mtime: row.get("mtime")?,
        hash: row.get("hash")?,
        commit: row.get("commit_id")?,
        symbols: symbols.split('\n').filter(|symbol| !symbol.is_empty()).map(str::to_owned).collect(),
        summary: row.get("summary")?,
        path,
    })
}

/// State of a file when it was last read.
pub(super) struct KnownFile {
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) hash: i64,
    /// Whether the walk has met the file. Files it never meets have been deleted.
    pub(super) seen: AtomicBool,
}

/// The indexed files by path.
pub(super) type KnownFiles = HashMap<Box<str>, KnownFile>;
