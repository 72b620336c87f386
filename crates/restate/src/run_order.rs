//! What a client hands to the engine for a run, and what a worker needs from its process to work on it.

use std::path::PathBuf;

use fusee::engine::run::{RunHandle, RunSpec};
use fusee::journal::{BoxFuture, Journal, RunId};
use fusee::launch::LaunchError;
use serde::{Deserialize, Serialize};

use crate::BlobHash;

/// Name of the service on the engine.
pub const SERVICE: &str = "FuseeRun";

/// A run as a client orders it: the input of the workflow. It contains no keys of models.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOrder {
    /// Settings of the run.
    pub spec: RunSpec,
    /// Directory of the client, at which the model sees the workspace where the worker's sandbox can do that.
    pub directory: PathBuf,
    /// Files of the workspace at the start.
    pub files: BlobHash,
    /// Whose run it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// What is known of a run from its start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunAbout {
    /// The request, on one line.
    pub(crate) title: String,
    /// Files of the workspace at the start.
    pub(crate) files: BlobHash,
    /// Whose run it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
}

/// A run that a worker starts or resumes.
pub struct WorkerLaunch {
    /// Its id.
    pub run: RunId,
    /// Its settings, with the worker's own copy of the workspace.
    pub spec: RunSpec,
    /// The journal to work on.
    pub journal: Journal,
    /// Whether the journal contains the beginning of the run.
    pub resumes: bool,
}

/// Starts runs in the worker's process: opens models with the worker's keys, and sets up the sandbox.
pub trait RunHost: Send + Sync {
    /// Starts or resumes a run. It is working when this returns.
    fn launch(&self, launch: WorkerLaunch) -> BoxFuture<'_, Result<RunHandle, LaunchError>>;
}
