//! Applies the changes of a fork, made in its copy of the workspace, to the original.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fusee_journal::{Journal, RunId};
use fusee_tools::Workspace;
use fusee_tools::workspace::{BackupContent, DiskState};

use super::family::Family;
use super::file_history::PathState;
use super::{FileAction, RewindError, open};
use crate::restore::{ContentSource, MAX_BYTES, PlannedContent, PlannedFile, RestorePlan, RestoreReport};

/// The planned changes of the original workspace. Nothing has changed yet.
#[derive(Debug)]
pub struct Adoption {
    /// The original workspace.
    pub original: PathBuf,
    /// The copy that the fork works in.
    pub copy: PathBuf,
    /// Changes of files, with what happens to each.
    pub changes: Vec<(String, FileAction)>,
    /// Files that were changed in the original as well since the fork began.
    pub conflicts: Vec<String>,
    /// Files that cannot be adopted, each with the reason.
    pub left: Vec<(String, String)>,
    plan: RestorePlan,
}

impl Adoption {
    /// Determines what adopting a fork, or a run that continues one, changes.
    pub fn plan(journal: &Journal, run: &RunId) -> Result<Self, RewindError> {
        let family = Family::load(journal, run)?;
        let mut fork = family.member(run);
        let origin = loop {
            let Some(member) = fork else {
                return Err(RewindError::NoFork { run: run.clone() });
            };
            let origin = member.spec.origin.as_ref();
            if let Some((origin, workspace)) =
                origin.and_then(|origin| Some((origin, origin.workspace.clone()?)))
            {
                break (origin, workspace, member);
            }
            let earlier = origin.map(|origin| &origin.run).or(member.spec.continues.as_ref());
            fork = earlier.and_then(|earlier| family.member(earlier));
        };
        let (origin, original, member) = origin;
        let copy = member.spec.workspace.clone();
        if let Some(busy) = family.in_workspace(&copy).find(|other| journal.is_active(&other.id)) {
            return Err(RewindError::InProgress { run: busy.id.clone() });
        }
        let (ours, theirs) = (open(&original)?, open(&copy)?);
        let mut adoption = Self {
            original,
            copy: copy.clone(),
            changes: Vec::new(),
            conflicts: Vec::new(),
            left: Vec::new(),
            plan: RestorePlan::default(),
        };
        let paths: BTreeSet<&str> = family.paths(&copy);
        let parent = family.member(&origin.run).unwrap_or(member);
        for path in paths {
            let base = family.state(parent, Some(origin.turn), path);
            if let Err(why) = adoption.plan_path(path, base, &ours, &theirs) {
                adoption.left.push((path.to_owned(), why));
            }
        }
        Ok(adoption)
    }

    fn plan_path(
        &mut self,
        path: &str,
        base: Option<PathState>,
        ours: &Workspace,
        theirs: &Workspace,
    ) -> Result<(), String> {
        let (now, new) = (ours.disk_state(path, MAX_BYTES)?, theirs.disk_state(path, MAX_BYTES)?);
        let target = match &new {
            DiskState::Absent => {
                if now == DiskState::Directory {
                    self.plan.removed.push(path.to_owned());
                }
                None
            }
            DiskState::Directory => {
                if now == DiskState::Absent {
                    self.plan.made.push(path.to_owned());
                }
                return Ok(());
            }
            DiskState::File { content, mode } => Some((content, *mode)),
            DiskState::Link(target) => Some((target, 0o120_777)),
            DiskState::Large { size, .. } => return Err(format!("it is too large ({size} bytes)")),
            DiskState::Special => return Err("it is neither a file nor a symlink".to_owned()),
        };
        let target = target.map(|(content, mode)| PlannedContent {
            mode: Some(mode),
            content: ContentSource::Kept(BackupContent::new(content.clone())),
        });
        // The original has what the fork began with.
        let is_base = match (base, &now) {
            (
                Some(PathState::File { hash, .. }),
                DiskState::File { content, .. } | DiskState::Link(content),
            ) => hash.is_of(content),
            (Some(PathState::Absent), DiskState::Absent | DiskState::Directory) => true,
            _ => false,
        };
        let replaces = if is_base { now.hash() } else { None };
        let file = PlannedFile { path: path.to_owned(), target, replaces };
        if file.is_at(&now) {
            return Ok(());
        }
        if !is_base && now != DiskState::Absent {
            self.conflicts.push(path.to_owned());
        }
        let action = match (&now, &file.target) {
            (_, None) => FileAction::Removed,
            (DiskState::Absent, Some(_)) => FileAction::Recreated,
            (_, Some(_)) => FileAction::Restored,
        };
        self.changes.push((path.to_owned(), action));
        self.plan.files.push(file);
        Ok(())
    }

    /// Whether there is nothing to adopt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plan.is_empty()
    }

    /// Changes the original. What the fork would overwrite there is copied to `aside` first. After an interruption, the
    /// rest is brought back by adopting again.
    pub fn apply(&self, run: &RunId, aside: &Path) -> Result<RestoreReport, RewindError> {
        let workspace = open(&self.original)?;
        self.plan.apply(&workspace, aside, &format!("adopt-{run}")).map_err(RewindError::Files)
    }
}
