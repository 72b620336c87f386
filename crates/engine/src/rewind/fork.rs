//! Forks: runs that share the beginning of another run and continue differently, in the same workspace or in a copy of it.

use std::path::Path;

use fusee_journal::{Journal, RunId};

use super::family::Family;
use super::{Rewind, RewindError, RewindParts, find_turn, open, restore_plan};
use crate::restore::aside_folder;
use crate::run::RunSpec;

impl Rewind {
    /// Plans a fork of `run` after `turn` turns. `copy` is a copy of its workspace in which the fork is to work; its files
    /// will be those of the turn. Without one, the fork works with the files as they are.
    pub fn plan_fork(
        journal: &Journal,
        run: &RunId,
        turn: u32,
        copy: Option<&Path>,
    ) -> Result<Self, RewindError> {
        let family = Family::load(journal, run)?;
        let member = find_turn(journal, &family, run, turn)?;
        let parts = RewindParts { files: copy.is_some(), conversation: true };
        let mut fork = Self::without_files(journal, member, turn, parts)?;
        if let Some(asked) = family.member(run) {
            fork.spec.workspace.clone_from(&asked.spec.workspace);
        }
        if let Some(copy) = copy {
            let workspace = open(copy)?;
            restore_plan::plan(&mut fork, &family, member, &workspace)?;
            // What the user changed since is still in the original.
            fork.aside.clear();
            for file in &mut fork.plan.files {
                let now = workspace.disk_state(&file.path, crate::restore::MAX_BYTES);
                file.replaces = now.ok().and_then(|now| now.hash());
            }
        }
        Ok(fork)
    }

    /// Settings of the run that is forked.
    #[must_use]
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Gives the copy of the workspace the files of the turn. Nobody else works in it, so this is not journaled: a fork
    /// exists only once its files are there.
    pub fn restore_copy(&self, journal: &Journal, run: &RunId, copy: &Path) -> Result<(), RewindError> {
        let (workspace, aside) = (open(copy)?, aside_folder(journal, run));
        let restored = self.plan.apply(&workspace, &aside, &format!("fork-{run}"));
        restored.map(drop).map_err(RewindError::Files)
    }

    /// The settings of the fork, from those of the original with changes.
    #[must_use]
    pub fn fork_spec(&self, spec: RunSpec, copy: Option<&Path>) -> RunSpec {
        let original = copy.map(|_| self.spec.workspace.clone());
        let workspace = copy.map_or_else(|| self.spec.workspace.clone(), Path::to_owned);
        RunSpec { workspace, origin: Some(self.origin(original)), ..spec }
    }

    /// Writes the fork with the steps that it shares into the journal, ready to be resumed.
    pub async fn begin_fork(self, journal: &Journal, run: &RunId, spec: RunSpec) -> Result<(), RewindError> {
        let started = self.begin(journal, run, spec, false).await?;
        started.record_rewind_event().await
    }
}
