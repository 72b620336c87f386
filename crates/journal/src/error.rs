//! What can go wrong with a journal, each with the file it happened in and the next step.

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
        "no space left for the journal {}: all that was committed is kept; free some space (`fusee runs gc` \
         helps) and run `fusee resume`",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Damaged.
    #[error("the journal {} is damaged: {detail}; what is not damaged can still be read with `fusee show`", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is damaged.
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
    pub(crate) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        let cause = error.to_string();
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full { path },
            Some(Code::SystemIoFailure) if cause.contains("disk I/O") => Self::Failed {
                path,
                cause: format!("{cause} (a full or failing disk, or a file size limit)"),
            },
            Some(Code::ReadOnly | Code::PermissionDenied) => Self::ReadOnly { path, cause },
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Corrupt { path, detail: cause },
            Some(Code::CannotOpen) => Self::Open { path, cause },
            _ => Self::Failed { path, cause },
        }
    }
}
