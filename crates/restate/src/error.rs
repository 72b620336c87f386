//! Errors of the engine and of the storage that workers and clients share.

/// An error of the engine, or of what workers and clients share.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Nothing answers at the URL, or not in time.
    #[error("cannot reach the engine at {url}: {cause}")]
    Unreachable {
        /// URL of the request.
        url: String,
        /// Message of the HTTP client or server.
        cause: String,
    },
    /// What answers is not the admin API of a Restate server.
    #[error("{url} is not the admin API of a Restate server: {cause}")]
    NotAnEngine {
        /// URL given by the user.
        url: String,
        /// What is wrong with the answer.
        cause: String,
    },
    /// The server is too old.
    #[error("the Restate server at {url} has version {found}; {needed} or newer is needed")]
    Old {
        /// URL given by the user.
        url: String,
        /// Its version.
        found: String,
        /// The oldest version that works.
        needed: &'static str,
    },
    /// No worker has been registered.
    #[error("the engine at {url} has no fusee workers")]
    NoWorker {
        /// URL given by the user.
        url: String,
    },
    /// The engine knows no such run.
    #[error("no such run on the engine: `{run}`")]
    NoSuchRun {
        /// The id asked for.
        run: String,
    },
    /// A run of this id exists.
    #[error("run id `{run}` already exists on the engine")]
    RunExists {
        /// The id.
        run: String,
    },
    /// The engine refused a request.
    #[error("the engine refused the request {url}: {status}: {message}")]
    Refused {
        /// URL of the request.
        url: String,
        /// HTTP status.
        status: u16,
        /// The engine's message.
        message: String,
    },
    /// A worker could not start the run.
    #[error("the worker could not start the run: {0}")]
    Start(String),
    /// The blob store failed.
    #[error("blob store {place}: {cause}")]
    Blob {
        /// The store.
        place: String,
        /// Message of the operating system.
        cause: String,
    },
    /// A file of a workspace cannot be read or written.
    #[error("{path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// Message of the operating system.
        cause: String,
    },
    /// A workspace is too large to be moved.
    #[error("the workspace {path} has more than {limit}; remove what the run does not need")]
    TooLarge {
        /// The workspace.
        path: String,
        /// Which bound was exceeded, with its value.
        limit: String,
    },
    /// What another fusee wrote cannot be read.
    #[error("cannot read what another fusee recorded: {0}")]
    Unreadable(String),
    /// The journal of this process failed.
    #[error(transparent)]
    Journal(#[from] fusee::journal::JournalError),
    /// A key of `--identity-key` cannot be used.
    #[error("`{key}` is not a request identity key: {cause}")]
    Key {
        /// As given.
        key: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The worker cannot listen.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Socket address of `--listen`.
        address: String,
        /// Message of the operating system.
        cause: String,
    },
}

impl EngineError {
    pub(crate) fn file(path: &std::path::Path, error: &dyn std::fmt::Display) -> Self {
        Self::File { path: path.display().to_string(), cause: error.to_string() }
    }
}
