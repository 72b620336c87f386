//! The database file: schema, creation and opening. `ops.rs`, `reader.rs` and `gc.rs` hold the
//! statements.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::{Durability, JournalError, OwnerKey, owner};

/// The format this version writes. A file with a higher format is not touched.
pub(crate) const FORMAT: i64 = 1;

/// SQLite `application_id` of journal files: `Fuse` in ASCII.
const APPLICATION: i64 = 0x4675_7365;

/// Bytes of memory that SQLite uses before it prefers to reuse pages of its caches.
const MAX_HEAP: i64 = 16 << 20;
/// How long to wait for another process's write lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Columns ending in `sum` are checksums of their row (`checksum.rs`), which SQLite does not provide. Run ids are
/// never reused, so that no data of a removed run can turn up in another.
const SCHEMA: &str = "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        status TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        ended_ms INTEGER
    );
    CREATE TABLE steps (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        branch TEXT NOT NULL,
        n INTEGER NOT NULL,
        kind TEXT NOT NULL,
        callee TEXT NOT NULL,
        args TEXT NOT NULL,
        intent TEXT,
        asked_sum INTEGER NOT NULL,
        result TEXT,
        at_ms INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL DEFAULT 0,
        done_sum INTEGER,
        PRIMARY KEY (run, branch, n)
    ) WITHOUT ROWID;
    CREATE TABLE events (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        task TEXT NOT NULL,
        k INTEGER,
        ts_ms INTEGER NOT NULL,
        body TEXT NOT NULL,
        sum INTEGER NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;
    CREATE TABLE blobs (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, text TEXT NOT NULL);
    CREATE TABLE refs (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        blob INTEGER NOT NULL,
        PRIMARY KEY (run, blob)
    ) WITHOUT ROWID;
    CREATE INDEX refs_by_blob ON refs (blob);
    CREATE TABLE signals (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        UNIQUE (run, name)
    );
";

/// Opens the file for writing and creates it and its directory if necessary. A new one is signed by its owner.
///
/// Only SQLite may open the file: when a process closes any descriptor of a file, the kernel drops all POSIX
/// locks of that process on it, which would silently unlock other connections of this process.
pub(crate) fn open_to_write(
    path: &Path,
    durability: Durability,
    owner: Option<&OwnerKey>,
) -> Result<Connection, JournalError> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| JournalError::from_io(path, &error))?;
    }
    inspect(path)?;
    let fresh = create_if_missing(path, durability, owner)?;
    let fail = |error: rusqlite::Error| unwritable(path, &error);
    let mut connection = Connection::open(path).map_err(fail)?;
    if is_empty(path) {
        release_pages(&connection).map_err(fail)?;
    }
    writable(path, &connection)?;
    configure(&connection, durability).map_err(fail)?;
    create_tables(path, &mut connection)?;
    // A trigger in a journal that someone else made would add rows to the user's runs.
    let foreign = "SELECT COUNT(*) FROM sqlite_schema WHERE type IN ('trigger', 'view')";
    if connection.query_row(foreign, [], |row| row.get::<_, i64>(0)).map_err(fail)? > 0 {
        let cause = "it has triggers or views, which fusee never creates".to_owned();
        return Err(JournalError::Open { path: path.to_owned(), cause });
    }
    if fresh && durability == Durability::Process {
        // The first commit creates the WAL and would fsync its header; `settle` restores the setting.
        connection.pragma_update(None, "synchronous", "OFF").map_err(fail)?;
    }
    Ok(connection)
}

/// Restores `synchronous` after the first commit on a new file, so that checkpoints fsync again.
pub(crate) fn apply_durability(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    if durability == Durability::Process {
        connection.pragma_update(None, "synchronous", "NORMAL")?;
    }
    Ok(())
}

/// Creates an empty journal under a temporary name and links it into place, so that a kill at any point
/// leaves either no journal or a complete one. Fsyncs only for `Durability::Power`. Returns whether it was
/// created.
fn create_if_missing(
    path: &Path,
    durability: Durability,
    owner: Option<&OwnerKey>,
) -> Result<bool, JournalError> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    if !is_empty(path) {
        return Ok(false);
    }
    let name = format!(".new-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let half = sibling_path(path, &name);
    // Marks of a journal that was removed say nothing about the new one.
    let _ = std::fs::remove_file(sibling_path(path, "-marks"));
    let made = make(&half, path, durability, owner);
    // This fails if another process was faster, if an empty file exists, or if the file system has no hard
    // links; the journal is then created in place.
    let linked = made.map(|()| std::fs::hard_link(&half, path).is_ok());
    if durability == Durability::Power
        && let Some(directory) = path.parent()
    {
        // The directory entry must reach the disk too. If the directory cannot be synced, nothing can be done
        // about it.
        let _ = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    }
    // A leftover after a kill is small and harmless.
    let _ = std::fs::remove_file(&half);
    linked
}

/// Whether the file is missing or has length 0.
fn is_empty(path: &Path) -> bool {
    !std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// Enables incremental vacuum (`gc.rs`). Must run before the first page is written: later it has no
/// effect but still is a commit of its own, which fsyncs if it creates the WAL.
fn release_pages(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
}

/// Writes a journal without runs with one write call; creating it page by page costs ten times the system
/// calls. Errors name `path`, the file the user knows.
fn make(
    half: &Path,
    path: &Path,
    durability: Durability,
    owner: Option<&OwnerKey>,
) -> Result<(), JournalError> {
    let fail = |error: std::io::Error| JournalError::from_io(path, &error);
    // Requests, answers and file contents are nobody else's business. SQLite gives its other files this mode.
    let mut file = private_file().truncate(true).open(half).map_err(fail)?;
    let image = without_runs(owner, &file).map_err(|error| JournalError::from_sqlite(path, &error))?;
    file.write_all(&image).map_err(fail)?;
    match durability {
        Durability::Process => Ok(()),
        Durability::Power => file.sync_all().map_err(fail),
    }
}

/// Options that create a file which only its owner can read.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

/// Serialized image of a journal without runs, for this file.
fn without_runs(owner: Option<&OwnerKey>, file: &File) -> rusqlite::Result<Vec<u8>> {
    /// Offset of the read and write format versions in the database header, which select WAL mode.
    const FORMAT_VERSIONS: std::ops::Range<usize> = 18..20;
    const A_LOG: u8 = 2;
    let mut connection = Connection::open_in_memory()?;
    release_pages(&connection)?;
    connection.execute_batch(SCHEMA)?;
    owner.map_or(Ok(()), |owner| owner::sign_new(&connection, owner, file))?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", FORMAT)?;
    let mut image = connection.serialize(rusqlite::MAIN_DB)?.to_vec();
    // An in-memory database cannot be switched to WAL mode, so patch the header.
    if let Some(keeping) = image.get_mut(FORMAT_VERSIONS) {
        keeping.fill(A_LOG);
    }
    Ok(image)
}

/// Checks the file and its siblings without opening them. Opening a FIFO would block. The journal must be empty
/// or at least as long as the smallest page, because SQLite would overwrite a file of a few bytes.
fn inspect(path: &Path) -> Result<(), JournalError> {
    for ending in ["-wal", "-shm", "-marks", ""] {
        let file = sibling_path(path, ending);
        let Ok(found) = std::fs::metadata(&file) else { continue };
        if found.is_dir() {
            return Err(JournalError::from_io(&file, &ErrorKind::IsADirectory.into()));
        }
        if !found.is_file() {
            return Err(JournalError::Open { path: file, cause: "it is not a regular file".to_owned() });
        }
        if ending.is_empty() && (1..512).contains(&found.len()) {
            return Err(JournalError::NoHeader { path: path.to_owned() });
        }
    }
    Ok(())
}

/// Fails early if the file cannot be written: SQLite silently opens such a file read-only.
fn writable(path: &Path, connection: &Connection) -> Result<(), JournalError> {
    let fail = |error: rusqlite::Error| JournalError::from_sqlite(path, &error);
    let may = |place: &Path| rustix::fs::access(place, rustix::fs::Access::WRITE_OK);
    let denied = path.parent().and_then(|directory| may(directory).err()).or_else(|| may(path).err());
    match denied {
        Some(errno) => Err(JournalError::from_io(path, &errno.into())),
        None if connection.is_readonly(rusqlite::MAIN_DB).map_err(fail)? => {
            Err(JournalError::from_io(path, &ErrorKind::ReadOnlyFilesystem.into()))
        }
        None => Ok(()),
    }
}

/// Adds the operating system's reason where SQLite only reports that it cannot open a file.
fn unwritable(path: &Path, error: &rusqlite::Error) -> JournalError {
    match (JournalError::from_sqlite(path, error), path.parent()) {
        (JournalError::Open { path, cause }, Some(directory)) => {
            match rustix::fs::access(directory, rustix::fs::Access::WRITE_OK) {
                Ok(()) => JournalError::Open { path, cause },
                Err(errno) => JournalError::from_io(&path, &errno.into()),
            }
        }
        (error, _) => error,
    }
}

/// Opens an existing file read-only.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, JournalError> {
    let fail = |error: rusqlite::Error| JournalError::from_sqlite(path, &error);
    inspect(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    match ready_to_read(path, &connection) {
        // No process has it open, and we are not allowed to create the `-shm` file SQLite needs.
        Err(JournalError::Open { .. } | JournalError::ReadOnly { .. })
            if !sibling_path(path, "-shm").exists() =>
        {
            let alone = open_alone(path, flags).map_err(fail)?;
            ready_to_read(path, &alone)?;
            Ok(alone)
        }
        ready => ready.map(|()| connection),
    }
}

/// Opens a file in a read-only directory. Its WAL, if any, is read without a shared index and without locks.
fn open_alone(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    if sibling_path(path, "-wal").exists() {
        let connection = Connection::open_with_flags_and_vfs(path, flags, "unix-none")?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        return Ok(connection);
    }
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                address.push(char::from(*byte))
            }
            other => address.push_str(&format!("%{other:02x}")),
        }
    }
    address.push_str("?immutable=1");
    Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI)
}

fn ready_to_read(path: &Path, connection: &Connection) -> Result<(), JournalError> {
    let fail = |error: rusqlite::Error| JournalError::from_sqlite(path, &error);
    inspect(path)?;
    connection.busy_timeout(LOCK_TIMEOUT).map_err(fail)?;
    limit_memory(connection).map_err(fail)?;
    match format(path, connection)? {
        Some(_) => Ok(()),
        None => Err(JournalError::Open { path: path.to_owned(), cause: "the file is empty".to_owned() }),
    }
}

pub(crate) fn sibling_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether the WAL ends in the middle of a frame.
pub(crate) fn has_torn_log(path: &Path) -> bool {
    const HEADER: u64 = 32;
    const FRAME: u64 = 24 + 4096;
    let length = std::fs::metadata(sibling_path(path, "-wal")).map_or(0, |file| file.len());
    length > HEADER && !(length - HEADER).is_multiple_of(FRAME)
}

/// Bounds the page cache of a connection, and those of all journals of the process together: a server has hundreds
/// open. Beyond the bound a cache reuses its own pages.
fn limit_memory(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -1024)?;
    connection.pragma_update(None, "soft_heap_limit", MAX_HEAP)
}

fn configure(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(
        None,
        "synchronous",
        match durability {
            // In WAL mode, a commit is then a write without fsync: the kernel has the data, so kill -9 cannot
            // lose it.
            Durability::Process => "NORMAL",
            Durability::Power => "FULL",
        },
    )?;
    limit_memory(connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Otherwise the last process to close pays for a checkpoint and its fsyncs; the writer keeps the WAL
    // small.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

fn create_tables(path: &Path, connection: &mut Connection) -> Result<(), JournalError> {
    if format(path, connection)? == Some(FORMAT) {
        return Ok(());
    }
    let fail = |error: rusqlite::Error| JournalError::from_sqlite(path, &error);
    // Two processes may get here at once: the second finds the format already set.
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(fail)?;
    if format(path, &transaction)?.is_none() {
        transaction.execute_batch(SCHEMA).map_err(fail)?;
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(fail)?;
        transaction.pragma_update(None, "user_version", FORMAT).map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

/// Format of the file; `None` if nothing was written to it yet.
fn format(path: &Path, connection: &Connection) -> Result<Option<i64>, JournalError> {
    // One transaction for a consistent view: another process may be creating the schema right now.
    let _read_transaction = connection
        .is_autocommit()
        .then(|| connection.unchecked_transaction())
        .transpose()
        .map_err(|error| JournalError::from_sqlite(path, &error))?;
    let number = |sql: &str| -> Result<i64, JournalError> {
        connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|error| JournalError::from_sqlite(path, &error))
    };
    let found = number("PRAGMA user_version")?;
    if number("PRAGMA application_id")? == APPLICATION {
        return match found {
            FORMAT => Ok(Some(found)),
            found => Err(JournalError::UnsupportedFormat { path: path.to_owned(), found, known: FORMAT }),
        };
    }
    if found == 0 && number("SELECT COUNT(*) FROM sqlite_schema")? == 0 {
        return Ok(None);
    }
    let cause = "it is a database of another application; move it away to start a new one".to_owned();
    Err(JournalError::Open { path: path.to_owned(), cause })
}
