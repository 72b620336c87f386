//! Journal errors, each with the file it concerns. A front end adds what to do next in its own words.

use std::io;
use std::path::{Path, PathBuf};

/// Failure to open, read or write a journal.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// The directory or file cannot be created or opened.
    #[error("cannot open the journal {}: {cause}", path.display())]
    Open {
        /// The journal file.
        path: PathBuf,
        /// Error text of the operating system or SQLite.
        cause: String,
    },
    /// The file or its directory is not writable.
    #[error(
        "cannot write the journal {}: {cause}; make its directory writable or use another one",
        path.display()
    )]
    ReadOnly {
        /// The journal file.
        path: PathBuf,
        /// Error text of the operating system or SQLite.
        cause: String,
    },
    /// The disk or quota is full.
    #[error("no space left for the journal {}; committed steps are kept", path.display())]
    Full {
        /// The journal file.
        path: PathBuf,
    },
    /// Part of the file is damaged; the rest can be read.
    #[error("the journal {} is damaged: {detail}", path.display())]
    Corrupt {
        /// The journal file.
        path: PathBuf,
        /// The damage.
        detail: String,
    },
    /// The file was removed or replaced while a run wrote to it.
    #[error("the journal {} was removed while the run was active: {outcome}", path.display())]
    Removed {
        /// The journal file.
        path: PathBuf,
        /// What happened to its content.
        outcome: String,
    },
    /// The header is damaged, or the file was never a journal.
    #[error(
        "the journal {} is damaged: it has no journal header; move it away to start a new one",
        path.display()
    )]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by another version of fusee.
    #[error(
        "the journal {} has format {found}, but this fusee supports format {known} only; {}",
        path.display(),
        other_format_advice(*found, *known)
    )]
    UnsupportedFormat {
        /// The journal file.
        path: PathBuf,
        /// Format of the file.
        found: i64,
        /// The supported format.
        known: i64,
    },
    /// Another process holds the run's lock.
    #[error("run {run} is in use by another process{}; wait for it or stop it first", holder(*pid))]
    Locked {
        /// Id of the locked run.
        run: String,
        /// Process id of the holder, if known.
        pid: Option<u32>,
    },
    /// There is no run of this name.
    #[error("run `{name}` not found{}", suggestion(nearest))]
    NoSuchRun {
        /// The requested name.
        name: String,
        /// Similar run names, best match first.
        nearest: Vec<String>,
    },
    /// A run of this name already exists.
    #[error("run id `{0}` already exists")]
    RunExists(String),
    /// The system that records the run did not take a batch, or has lost the run.
    #[error("{cause}")]
    Relay {
        /// Why not.
        cause: String,
    },
    /// Any other SQLite error.
    #[error("the journal {} failed: {cause}", path.display())]
    Failed {
        /// The journal file.
        path: PathBuf,
        /// SQLite's error text.
        cause: String,
    },
}

fn other_format_advice(found: i64, known: i64) -> &'static str {
    if found > known {
        "use a newer fusee"
    } else {
        "move it away to start a new one, or read it with the fusee that wrote it"
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}

fn suggestion(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

impl JournalError {
    /// Part of the file is damaged.
    pub(crate) fn damaged(path: &Path, what: &str) -> Self {
        Self::Corrupt { path: path.to_owned(), detail: what.to_owned() }
    }

    /// Committed rows are missing.
    pub(crate) fn shorter(path: &Path, what: &str) -> Self {
        let marks = crate::schema::sibling_path(path, "-marks");
        let detail = format!(
            "{what}; commands that ran already might run again, so restore the file, or remove {} to accept the loss",
            marks.display()
        );
        Self::Corrupt { path: path.to_owned(), detail }
    }

    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        let (path, cause) = (path.to_owned(), error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { path, cause }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::IsADirectory => Self::Open { path, cause: "it is a directory".to_owned() },
            _ => Self::Open { path, cause },
        }
    }

    pub(crate) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        use rusqlite::ffi;
        let failed = |cause: String| Self::Failed { path: path.to_owned(), cause };
        let cause = error.to_string();
        match (error.sqlite_error_code(), error.sqlite_extended_error_code()) {
            (None, _) if !matches!(error, rusqlite::Error::ToSqlConversionFailure(_)) => {
                // A column value has the wrong type or is out of range.
                Self::damaged(path, &cause)
            }
            (_, Some(ffi::SQLITE_READONLY_DBMOVED)) => {
                Self::Removed { path: path.to_owned(), outcome: cause }
            }
            (Some(Code::DiskFull), _) => Self::Full { path: path.to_owned() },
            (Some(Code::SystemIoFailure), _) => {
                failed(format!("{cause} (a full or failing disk, or a file size limit)"))
            }
            (Some(Code::ReadOnly | Code::PermissionDenied), _) => {
                Self::ReadOnly { path: path.to_owned(), cause }
            }
            (Some(Code::NotADatabase), _) => Self::NoHeader { path: path.to_owned() },
            (Some(Code::DatabaseCorrupt), _) => Self::damaged(path, &cause),
            (Some(Code::CannotOpen), _) => Self::Open { path: path.to_owned(), cause },
            (Some(Code::DatabaseBusy | Code::DatabaseLocked), _) => {
                failed(format!("{cause}: another process has held the write lock for a minute"))
            }
            (_, Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY)) => {
                failed("the run was removed in the meantime".to_owned())
            }
            _ => failed(cause),
        }
    }
}
