//! What can go wrong with a journal, each with the file it happened in and the next step.

use std::io;
use std::path::{Path, PathBuf};

/// A journal that cannot be opened, read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// The directory or the file cannot be made or opened.
    #[error("cannot open the journal {}: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: String,
    },
    /// The file or its directory may not be written.
    #[error(
        "the journal {} cannot be written: {cause}; make its directory writable, or start in another one",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: String,
    },
    /// No space.
    #[error(
        "no space left for the journal {}: all that was committed is kept; free some space and run `fusee resume`",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Damaged.
    #[error("the journal {} is damaged: {detail}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is damaged, and what can be done.
        detail: String,
    },
    /// Written by a newer version.
    #[error(
        "the journal {} has format {found}, and this fusee knows formats up to {known}: use a newer fusee",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The newest known.
        known: i64,
    },
    /// Another process has the run.
    #[error("run {run} is being worked on by another process{}: wait for it or stop it first", holder(*pid))]
    Locked {
        /// The run.
        run: String,
        /// The other process, where it said so.
        pid: Option<u32>,
    },
    /// No such run.
    #[error("there is no run `{name}` here{}", near(nearest))]
    NoSuchRun {
        /// What was asked for.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
    },
    /// A run of this name exists.
    #[error("run id `{0}` is in use: choose another, or `fusee resume {0}`")]
    RunExists(String),
    /// Anything else SQLite says.
    #[error("the journal {} failed: {cause}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        cause: String,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}

fn near(names: &[String]) -> String {
    match names {
        [] => "; `fusee runs` lists them".to_owned(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

impl JournalError {
    /// Some of the file is not what was written.
    pub(crate) fn damaged(path: &Path, what: &str) -> Self {
        let detail = format!("{what}; what is not damaged can still be read with `fusee show`");
        Self::Corrupt { path: path.to_owned(), detail }
    }

    /// The beginning of the file is not what was written, or it never was a journal.
    pub(crate) fn no_journal(path: &Path) -> Self {
        let detail = "it does not begin as a journal does; move it away to begin a new one".to_owned();
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
                // What stands in a row is not of its column's type, or out of its range.
                Self::damaged(path, &cause)
            }
            (Some(Code::DiskFull), _) => Self::Full { path: path.to_owned() },
            (Some(Code::SystemIoFailure), _) => {
                failed(format!("{cause} (a full or failing disk, or a file size limit)"))
            }
            (Some(Code::ReadOnly | Code::PermissionDenied), _) => {
                Self::ReadOnly { path: path.to_owned(), cause }
            }
            (Some(Code::NotADatabase), _) => Self::no_journal(path),
            (Some(Code::DatabaseCorrupt), _) => Self::damaged(path, &cause),
            (Some(Code::CannotOpen), _) => Self::Open { path: path.to_owned(), cause },
            (Some(Code::DatabaseBusy | Code::DatabaseLocked), _) => {
                failed(format!("{cause}: another process has been writing it for a minute"))
            }
            (_, Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY)) => {
                failed("the run was removed meanwhile".to_owned())
            }
            _ => failed(cause),
        }
    }
}
