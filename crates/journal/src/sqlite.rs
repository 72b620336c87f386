//! The file: its format, how it is opened, and the statements on it. `writer.rs` and `reader.rs` use it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::{Durability, JournalError};

/// The format this version writes. A file with a higher one is left alone.
pub(crate) const FORMAT: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        status TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        ended_ms INTEGER
    );
    CREATE TABLE steps (
        run INTEGER NOT NULL,
        branch TEXT NOT NULL,
        n INTEGER NOT NULL,
        kind TEXT NOT NULL,
        callee TEXT NOT NULL,
        args TEXT NOT NULL,
        intent TEXT,
        result TEXT,
        at_ms INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (run, branch, n)
    ) WITHOUT ROWID;
    CREATE TABLE events (
        run INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        task TEXT NOT NULL,
        k INTEGER,
        ts_ms INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    CREATE TABLE blobs (hash BLOB NOT NULL PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE refs (run INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (run, hash)) WITHOUT ROWID;
    CREATE TABLE signals (
        run INTEGER NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (run, name)
    ) WITHOUT ROWID;
";

/// Opens the file for writing, making it and its directory if need be.
pub(crate) fn open_to_write(path: &Path, durability: Durability) -> Result<Connection, JournalError> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| {
            let (path, cause) = (path.to_owned(), error.to_string());
            match error.kind() {
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    JournalError::ReadOnly { path, cause }
                }
                std::io::ErrorKind::StorageFull => JournalError::Full { path },
                _ => JournalError::Open { path, cause },
            }
        })?;
    }
    let fail = |error: rusqlite::Error| JournalError::from_sqlite(path, &error);
    let mut connection = Connection::open(path).map_err(fail)?;
    configure(&connection, durability).map_err(fail)?;
    migrate(path, &mut connection)?;
    if connection.is_readonly("main").map_err(fail)? {
        let cause = "the file is read-only".to_owned();
        return Err(JournalError::ReadOnly { path: path.to_owned(), cause });
    }
    Ok(connection)
}

/// Opens an existing file for reading only.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, JournalError> {
    let fail = |error: rusqlite::Error| JournalError::from_sqlite(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match Connection::open_with_flags(path, flags) {
        Ok(connection) => connection,
        Err(error) => return Err(fail(error)),
    };
    connection.busy_timeout(Duration::from_secs(5)).map_err(fail)?;
    connection.pragma_update(None, "cache_size", -1024).map_err(fail)?;
    check_format(path, &connection)?;
    Ok(connection)
}

fn configure(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    // A second process on the same project may be committing.
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(
        None,
        "synchronous",
        match durability {
            // In WAL mode a commit is then a write without fsync: the kernel has it, so kill -9 cannot lose it.
            Durability::Process => "NORMAL",
            Durability::Power => "FULL",
        },
    )?;
    connection.pragma_update(None, "cache_size", -1024)?;
    // Otherwise the last process out pays for a checkpoint and its fsyncs; the WAL is bounded by automatic ones.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

fn migrate(path: &Path, connection: &mut Connection) -> Result<(), JournalError> {
    if check_format(path, connection)? == FORMAT {
        return Ok(());
    }
    let fail = |error: rusqlite::Error| JournalError::from_sqlite(path, &error);
    // Two processes may come here at once: the second finds the format set.
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(fail)?;
    if check_format(path, &transaction)? < FORMAT {
        transaction.execute_batch(SCHEMA).map_err(fail)?;
        transaction.pragma_update(None, "user_version", FORMAT).map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

fn check_format(path: &Path, connection: &Connection) -> Result<i64, JournalError> {
    let found: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| JournalError::from_sqlite(path, &error))?;
    if found > FORMAT {
        return Err(JournalError::Newer { path: path.to_owned(), found, known: FORMAT });
    }
    Ok(found)
}
