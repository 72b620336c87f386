//! The runs that this process works on. They can be stopped and cancelled, and their deltas be seen; runs of other
//! processes are read from the journal.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fusee::engine::run::RunControl;
use fusee::journal::RunId;
use parking_lot::Mutex;

/// Interval at which ended runs are detected.
const CHECK: Duration = Duration::from_millis(250);

/// Runs of this process, by journal and id.
#[derive(Clone, Default)]
pub(crate) struct LiveRuns(Arc<Mutex<RunControls>>);

type RunControls = HashMap<(PathBuf, RunId), Arc<RunControl>>;

impl LiveRuns {
    /// Adds a run, until it has ended.
    pub(crate) fn add(&self, journal: &Path, run: RunControl) {
        let key = (journal.to_owned(), run.id().clone());
        let added = Arc::new(run);
        self.0.lock().insert(key.clone(), Arc::clone(&added));
        let runs = self.clone();
        tokio::spawn(async move {
            while !added.is_ended() {
                tokio::time::sleep(CHECK).await;
            }
            // A run that was resumed in the meantime has another handle.
            let mut runs = runs.0.lock();
            if runs.get(&key).is_some_and(|current| Arc::ptr_eq(current, &added)) {
                runs.remove(&key);
            }
        });
    }

    /// The handle of a run that is being worked on here.
    pub(crate) fn get(&self, journal: &Path, run: &RunId) -> Option<Arc<RunControl>> {
        let found = self.0.lock().get(&(journal.to_owned(), run.clone())).cloned();
        found.filter(|run| !run.is_ended())
    }
}
