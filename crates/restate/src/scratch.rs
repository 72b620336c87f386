//! What the attempts of a worker share, and the folders in which they keep journals and workspaces.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fusee::journal::{Clock, RunId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::tenant::TenantPlaces;
use crate::{BlobStore, Engine, EngineError, RunHost};

/// How long a new attempt waits for an earlier one of the same run on this worker to end.
const LAST_ATTEMPT: Duration = Duration::from_secs(30);

/// What the attempts of a worker share.
pub(crate) struct WorkerParts {
    pub(crate) engine: Engine,
    pub(crate) blobs: BlobStore,
    pub(crate) host: Arc<dyn RunHost>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tenants: TenantPlaces,
    folder: PathBuf,
    /// Runs that an attempt works on.
    busy: Arc<BusyRuns>,
}

#[derive(Default)]
struct BusyRuns {
    runs: Mutex<HashSet<RunId>>,
    left: Notify,
}

/// The folder of a run on this worker, removed when the attempt ends.
pub(crate) struct RunFolder {
    path: PathBuf,
    run: RunId,
    busy: Arc<BusyRuns>,
}

impl RunFolder {
    /// The run's copy of its workspace.
    pub(crate) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// The run's journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal.db")
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What is left is removed before the next attempt.
        let _ = remove(&self.path);
        self.busy.runs.lock().remove(&self.run);
        self.busy.left.notify_waiters();
    }
}

impl WorkerParts {
    pub(crate) fn new(
        engine: Engine,
        blobs: BlobStore,
        host: Arc<dyn RunHost>,
        clock: Arc<dyn Clock>,
        tenants: TenantPlaces,
        folder: PathBuf,
    ) -> Self {
        Self { engine, blobs, host, clock, tenants, folder, busy: Arc::default() }
    }

    /// An empty folder for a run. Waits until an earlier attempt on this worker has left it.
    pub(crate) async fn folder(&self, run: &RunId) -> Result<RunFolder, EngineError> {
        let path = self.folder.join(run.as_str());
        let entered = tokio::time::timeout(LAST_ATTEMPT, async {
            loop {
                let mut left = std::pin::pin!(self.busy.left.notified());
                left.as_mut().enable();
                if self.busy.runs.lock().insert(run.clone()) {
                    break;
                }
                left.await;
            }
        });
        entered.await.map_err(|_| EngineError::file(&path, &"an earlier attempt still uses it"))?;
        let folder = RunFolder { path, run: run.clone(), busy: Arc::clone(&self.busy) };
        let made = remove(&folder.path).and_then(|()| fs::create_dir_all(&folder.path));
        made.map_err(|error| EngineError::file(&folder.path, &error))?;
        Ok(folder)
    }
}

/// Removes a folder with everything in it, also where a command left directories that cannot be written.
fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            unlock(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Makes all directories below `path` writable.
fn unlock(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unlock(&entry.path())?;
        }
    }
    Ok(())
}

/// Takes the folder for this worker and removes what an earlier one left.
pub(crate) fn lock(folder: &Path) -> Result<File, EngineError> {
    let failed = |error: &dyn std::fmt::Display| EngineError::file(folder, error);
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let file = File::create(folder.join("worker.lock")).map_err(|error| failed(&error))?;
    file.try_lock().map_err(|_| failed(&"another worker uses this folder"))?;
    for entry in fs::read_dir(folder).map_err(|error| failed(&error))?.flatten() {
        if entry.path().is_dir() {
            remove(&entry.path()).map_err(|error| failed(&error))?;
        }
    }
    Ok(file)
}
