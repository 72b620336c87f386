//! Puts the files of a workspace into a planned state. The plan is journaled as the intent of a step before anything
//! is changed, and carrying it out twice has the same result as once: after a crash the step is concluded by carrying
//! it out again. `crate::rewind` makes the plans.

mod aside;

use std::path::Path;
use std::sync::Arc;

use fusee_journal::{BoxFuture, DurableRun, Intention, OnceOutcome, RunAborted, StepRequest, step_body};
use fusee_tools::workspace::{BackupContent, DiskState, RestoreStep};
use fusee_tools::{ContentHash, Workspace};
use serde::{Deserialize, Serialize};

use crate::git_objects::{self, GitObjects};

pub use aside::aside_folder;

/// Larger files are not restored.
pub(crate) const MAX_BYTES: u64 = 64 << 20;

/// Maximum bytes read from git at once.
const MAX_AT_ONCE: usize = 512 << 20;

/// The part of a mode that is the type of the file, and its value for a symlink.
const FILE_TYPE: u32 = 0o170_000;
const SYMLINK: u32 = 0o120_000;

/// Mode of a file whose permissions are unknown.
const PLAIN_FILE: u32 = 0o100_644;

/// The planned state of files and directories. Everything that is not named stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePlan {
    /// Files and symlinks.
    pub files: Vec<PlannedFile>,
    /// Directories that are removed if they are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Directories that are created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
}

/// The planned state of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// Path relative to the workspace.
    pub path: String,
    /// The file or symlink; `None` if there is none.
    pub target: Option<PlannedContent>,
    /// Hash of the content that is replaced, if it can be restored from the journal or from git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ContentHash>,
}

/// A planned file or symlink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedContent {
    /// `st_mode`, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Where the content comes from.
    pub content: ContentSource,
}

/// Where planned content comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentSource {
    /// The plan itself.
    Kept(BackupContent),
    /// Git, by blob id.
    Git(ContentHash),
}

/// Result of carrying out a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// Number of files that were written, removed or given other permissions.
    pub files: usize,
    /// Paths whose content was copied or moved to the folder for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
}

impl PlannedContent {
    /// Whether a path is in this state.
    pub(crate) fn is_at(&self, state: &DiskState) -> bool {
        let is_content = |content: &[u8]| match &self.content {
            ContentSource::Kept(kept) => kept.bytes().is_some_and(|kept| kept == content),
            ContentSource::Git(hash) => hash.is_of(content),
        };
        match state {
            DiskState::File { content, mode } => {
                let same_mode = self.mode.is_none_or(|wanted| wanted & 0o7777 == mode & 0o7777);
                !self.is_link() && same_mode && is_content(content)
            }
            DiskState::Link(target) => self.is_link() && is_content(target),
            _ => false,
        }
    }

    fn is_link(&self) -> bool {
        self.mode.is_some_and(|mode| mode & FILE_TYPE == SYMLINK)
    }

    fn bytes(&self, objects: &GitObjects) -> Result<Vec<u8>, String> {
        match &self.content {
            ContentSource::Kept(kept) => kept.bytes().ok_or_else(|| "its content was not kept".to_owned()),
            ContentSource::Git(hash) => match hash.git_blob() {
                Some(id) => objects.find(&id),
                None => Err("it is not in git".to_owned()),
            },
        }
    }
}

impl PlannedFile {
    /// Whether the path is in the planned state. Directories are planned separately.
    pub(crate) fn is_at(&self, state: &DiskState) -> bool {
        match &self.target {
            Some(target) => target.is_at(state),
            None => matches!(state, DiskState::Absent | DiskState::Directory),
        }
    }
}

/// A path that is not in the planned state.
struct PendingFile<'p> {
    file: &'p PlannedFile,
    now: DiskState,
    content: Option<Vec<u8>>,
}

impl PendingFile<'_> {
    /// Whether the current content would be lost.
    fn needs_aside(&self) -> bool {
        match &self.now {
            DiskState::Absent => false,
            DiskState::Directory => self.content.is_some(),
            state => state.hash().is_none() || state.hash() != self.file.replaces,
        }
    }

    /// Whether it cannot be replaced in place.
    fn is_in_the_way(&self) -> bool {
        matches!(self.now, DiskState::Directory | DiskState::Large { .. } | DiskState::Special)
    }

    fn step(&self) -> RestoreStep {
        let mode = self.file.target.as_ref().and_then(|target| target.mode);
        let mode = mode.or(match &self.now {
            DiskState::File { mode, .. } => Some(*mode),
            _ => None,
        });
        let before = self.content.clone().map(|content| (content, mode.unwrap_or(PLAIN_FILE)));
        RestoreStep { path: self.file.path.clone(), now: self.now.file_state(), before }
    }
}

impl RestorePlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.removed.is_empty() && self.made.is_empty()
    }

    /// Carries out the plan. What is found at a path and cannot be restored from elsewhere is copied to `aside` first.
    /// `token` identifies the attempt in temporary names.
    pub fn apply(&self, workspace: &Workspace, aside: &Path, token: &str) -> Result<RestoreReport, String> {
        let mut open = self.open_files(workspace)?;
        let mut report = RestoreReport { files: open.len(), ..RestoreReport::default() };
        for file in open.iter().filter(|file| file.needs_aside() && !file.is_in_the_way()) {
            aside::copy(workspace, &file.file.path, &file.now, aside)?;
            report.aside.push(file.file.path.clone());
        }
        let gone: Vec<RestoreStep> = open
            .iter()
            .filter(|file| file.content.is_none() && !file.is_in_the_way())
            .map(PendingFile::step)
            .collect();
        workspace.restore(&gone, token, MAX_BYTES)?;
        let mut removed = self.removed.clone();
        // In reverse order, the contents of a directory come before it.
        removed.sort_unstable_by(|one, other| other.cmp(one));
        for path in &removed {
            workspace.remove_empty_directory(path);
        }
        for file in open.iter_mut().filter(|file| file.is_in_the_way()) {
            let path = &file.file.path;
            if workspace.disk_state(path, 0)? != DiskState::Absent {
                aside::move_away(workspace, path, aside)?;
                report.aside.push(path.clone());
            }
            file.now = DiskState::Absent;
        }
        open.retain(|file| file.content.is_some());
        if let Some(file) = open.iter().find(|file| is_behind_link(workspace, &file.file.path)) {
            return Err(format!("`{}` cannot be restored: its directory is now a symlink", file.file.path));
        }
        workspace.restore(&open.iter().map(PendingFile::step).collect::<Vec<_>>(), token, MAX_BYTES)?;
        for path in &self.made {
            if !workspace.make_directory(path) {
                return Err(format!("cannot create the directory `{path}`"));
            }
        }
        Ok(report)
    }

    /// The files that are not in the planned state, with the content to write.
    fn open_files(&self, workspace: &Workspace) -> Result<Vec<PendingFile<'_>>, String> {
        let mut open = Vec::new();
        for file in &self.files {
            let now = workspace.disk_state(&file.path, MAX_BYTES)?;
            if !file.is_at(&now) {
                open.push(PendingFile { file, now, content: None });
            }
        }
        let wanted = open.iter().filter_map(|file| match &file.file.target.as_ref()?.content {
            ContentSource::Git(hash) => hash.git_blob(),
            ContentSource::Kept(_) => None,
        });
        let objects = git_objects::blobs(workspace.root(), &wanted.collect::<Vec<_>>(), MAX_AT_ONCE);
        for file in &mut open {
            if let Some(target) = &file.file.target {
                let content = target.bytes(&objects);
                file.content = Some(content.map_err(|why| format!("`{}`: {why}", file.file.path))?);
            }
        }
        Ok(open)
    }
}

/// Whether a path leads through a symlink, other than itself.
fn is_behind_link(workspace: &Workspace, path: &str) -> bool {
    let Some((directory, _)) = path.rsplit_once('/') else { return false };
    workspace.real_name(directory).is_some_and(|real| real != directory)
}

/// Concludes the step of a run that restores files, if it has not been concluded. Its plan is in the journal since the
/// run exists. A plan that cannot be carried out is an error, and is tried again by the next resume.
pub async fn conclude_restore(
    engine: &dyn DurableRun,
    request: StepRequest,
    workspace: &Arc<Workspace>,
    aside: &Path,
) -> Result<RestoreReport, RunAborted> {
    let nothing = serde_json::to_value(RestoreReport::default()).unwrap_or_default();
    let intend =
        Box::new(move || Box::pin(async { Intention::Resolved(nothing) }) as BoxFuture<'_, Intention>);
    match engine.once(request, intend, step_body(async {})).await? {
        OnceOutcome::Done(recorded) => recorded.read(),
        OnceOutcome::Interrupted { key, intent } => {
            let plan = RestorePlan::deserialize(&intent)
                .map_err(|error| RunAborted::Unreadable(error.to_string()))?;
            let (workspace, aside) = (Arc::clone(workspace), aside.to_owned());
            let token = format!("rewind-{}", engine.run());
            let work = tokio::task::spawn_blocking(move || plan.apply(&workspace, &aside, &token));
            let report = work
                .await
                .map_err(|error| RunAborted::NotRestored(error.to_string()))?
                .map_err(|problem| RunAborted::NotRestored(problem.to_string()))?;
            let concluded = engine.conclude(key, step_body(async { report })).await?.read();
            engine.flush().await?;
            concluded
        }
    }
}
