//! Undoes the changes of a run in its workspace, using its journal and git.
//!
//! A file change is a step whose intent holds the original content, recorded the first time a run touches the
//! file. Before its first command, a run backs up the files that git could not restore; the others come from
//! git (`git_objects`). So it is known, and shown, what can be restored before anything is done.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use fusee_journal::{Journal, JournalError, RunId, StepKind, StepRow};
use fusee_tools::workspace::{Backup, BackupContent, FileState, RestoreStep, bounded_read};
use fusee_tools::{ContentHash, DirectoryChange, FileChange, ToolOutput, Workspace};
use serde_json::Value;

use crate::git_objects;

/// Larger files are left alone.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum bytes restored at once.
const MAX_AT_ONCE: usize = 512 << 20;

/// Mode of a restored file whose permissions are unknown.
const PLAIN_FILE: u32 = 0o100644;

/// The plan for undoing a run.
#[derive(Debug, Default)]
pub struct UndoPlan {
    /// Files to restore, remove or recreate.
    pub files: Vec<RestoreStep>,
    /// Files that already have their original content.
    pub already: Vec<String>,
    /// Files left unchanged, each with the reason.
    pub left: Vec<(String, String)>,
    /// Directories created by the run that will be empty and are removed, innermost first.
    pub emptied: Vec<String>,
    /// Directories removed by the run that no restored file recreates; they are created again.
    pub missing: Vec<String>,
    /// Those of `files` that changed while a command ran. Someone else may have changed them at that time, so
    /// their current content is kept.
    pub uncertain: Vec<String>,
    /// Commands that were run. Their effects outside the tracked files (ignored files, `.git`, permissions,
    /// anything outside the workspace) are unknown.
    pub commands: Vec<String>,
}

/// History of a file within a run.
#[derive(Default)]
struct FileTrail {
    before: Option<ContentHash>,
    after: Option<ContentHash>,
    mode: Option<u32>,
    /// Whether a command made the first change.
    by_command: bool,
    /// Whether it changed while a command ran, so that someone else may have changed it.
    uncertain: bool,
}

/// Whether a directory existed before the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectoryBefore {
    There,
    Absent,
}

/// Where the original content comes from.
enum RestoreSource {
    /// The file did not exist.
    Nowhere,
    Kept(Vec<u8>, u32),
    Git([u8; 20], u32),
}

/// All changes found in the journal.
#[derive(Default)]
struct RecordedChanges {
    trails: BTreeMap<String, FileTrail>,
    kept: HashMap<String, Vec<Backup>>,
    commands: Vec<String>,
    /// Directories created or removed, and whether each existed before the run.
    directories: BTreeMap<String, DirectoryBefore>,
    /// Whether a command was interrupted and its effects are unknown.
    cut_off: bool,
}

impl UndoPlan {
    /// Determines what can be undone.
    pub fn plan(journal: &Journal, run: &RunId, workspace: &Workspace) -> Result<Self, JournalError> {
        let effects = |step: &StepRow| matches!(step.kind, StepKind::Tool | StepKind::Environment);
        let mut steps: Vec<StepRow> = journal.steps(run)?.into_iter().filter(effects).collect();
        // In chronological order, across branches.
        steps.sort_by_key(|step| step.at_ms);
        let mut found = RecordedChanges::default();
        for step in &steps {
            found.note(step);
        }
        let mut undo = Self::default();
        if found.cut_off {
            undo.leave_unknown(&found, workspace, crate::run::initial_snapshot_path(journal, run));
        }
        let mut pending = Vec::new();
        for (path, trail) in std::mem::take(&mut found.trails) {
            undo.uncertain.extend(trail.uncertain.then(|| path.clone()));
            let kept = found.kept.remove(&path).unwrap_or_default();
            if let Some((now, source)) = undo.classify(&path, &trail, &kept, workspace) {
                pending.push((path, now, source));
            }
        }
        undo.commands = found.commands;
        undo.fetch(pending, workspace);
        undo.drop_second_names(workspace);
        undo.judge_directories(&found.directories, workspace);
        let is_lost = |path: &String| undo.files.iter().any(|file| file.path == *path && file.now.is_some());
        undo.uncertain.retain(is_lost);
        Ok(undo)
    }

    /// Leaves files that changed since an interrupted command began: it cannot be determined whether the
    /// command or something later changed them.
    fn leave_unknown(&mut self, found: &RecordedChanges, workspace: &Workspace, look: std::path::PathBuf) {
        workspace.load_snapshot(look);
        let changes = found.trails.iter().map(|(path, trail)| FileChange {
            path: path.clone(),
            before: trail.before,
            after: trail.after,
            mode: None,
        });
        workspace.record_output(&ToolOutput { changed: changes.collect(), ..ToolOutput::default() });
        for change in workspace.scan_changes() {
            if !found.trails.contains_key(&change.path) {
                let why = "changed during or after an interrupted command".to_owned();
                self.left.push((change.path, why));
            }
        }
    }

    /// The current state and the source of the original content, unless the file is left alone.
    fn classify(
        &mut self,
        path: &str,
        trail: &FileTrail,
        kept: &[Backup],
        workspace: &Workspace,
    ) -> Option<(Option<FileState>, RestoreSource)> {
        let known =
            |state: &FileState| [trail.before, trail.after].into_iter().flatten().any(|name| state.is(name));
        let now = match workspace.file_state(path, MAX_BYTES) {
            // Tools write through symlinks, so the content is at the target.
            Ok(Some(link @ FileState::Link(_))) if !known(&link) => {
                workspace.file_state_behind_link(path, MAX_BYTES)
            }
            now => now,
        };
        let now = match now {
            Ok(now) => now,
            Err(why) => return self.leave(path, why),
        };
        let is = |name: Option<ContentHash>| match (&now, name) {
            (None, None) => true,
            (Some(now), Some(name)) => now.is(name),
            _ => false,
        };
        if is(trail.before) {
            self.already.push(path.to_owned());
            return None;
        }
        if !is(trail.after) {
            return self.leave(path, "changed again after the run".to_owned());
        }
        match source(trail, kept) {
            Ok(source) => Some((now, source)),
            Err(why) => self.leave(path, why),
        }
    }

    fn leave<T>(&mut self, path: &str, why: String) -> Option<T> {
        self.left.push((path.to_owned(), why));
        None
    }

    /// Loads the original content.
    fn fetch(&mut self, pending: Vec<(String, Option<FileState>, RestoreSource)>, workspace: &Workspace) {
        let wanted = pending.iter().filter_map(|(_, _, source)| match source {
            RestoreSource::Git(id, _) => Some(*id),
            RestoreSource::Nowhere | RestoreSource::Kept(..) => None,
        });
        let objects = git_objects::blobs(workspace.root(), &wanted.collect::<Vec<_>>(), MAX_AT_ONCE);
        let mut bytes = 0;
        for (path, now, source) in pending {
            let before = match source {
                RestoreSource::Nowhere => None,
                RestoreSource::Kept(content, mode) => Some((content, mode)),
                RestoreSource::Git(id, mode) => match objects.find(&id) {
                    Ok(content) => Some((content, mode)),
                    Err(why) => {
                        self.left.push((path, why));
                        continue;
                    }
                },
            };
            bytes += before.as_ref().map_or(0, |(content, _)| content.len());
            if bytes > MAX_AT_ONCE {
                let why = "too much to restore at once; undo again for the rest";
                self.left.push((path, why.to_owned()));
                continue;
            }
            self.files.push(RestoreStep { path, now, before });
        }
    }

    /// Drops aliases: a file changed under two names is restored under its real one.
    fn drop_second_names(&mut self, workspace: &Workspace) {
        let names: HashSet<String> = self.files.iter().map(|file| file.path.clone()).collect();
        self.files.retain(|file| match (&file.now, workspace.real_name(&file.path)) {
            (Some(FileState::File { .. }), Some(real)) => real == file.path || !names.contains(&real),
            _ => true,
        });
    }

    /// Finds the directories created by the run that will be empty, and the directories it removed that are
    /// still missing.
    fn judge_directories(&mut self, directories: &BTreeMap<String, DirectoryBefore>, workspace: &Workspace) {
        let removed: HashSet<&str> =
            self.files.iter().filter(|file| file.before.is_none()).map(|file| file.path.as_str()).collect();
        // In reverse order, the contents of a directory come before it.
        for (path, _) in directories.iter().rev().filter(|(_, before)| **before == DirectoryBefore::Absent) {
            let Some(names) = workspace.names_in(path) else { continue };
            let goes = |(name, is_directory): &(String, bool)| {
                let inner = format!("{path}/{name}");
                if *is_directory { self.emptied.contains(&inner) } else { removed.contains(inner.as_str()) }
            };
            if names.iter().all(goes) {
                self.emptied.push(path.clone());
            }
        }
        let back = self.files.iter().filter(|file| file.before.is_some()).map(|file| file.path.clone());
        let brought: Vec<String> = back.collect();
        let below =
            |path: &str, outer: &str| path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
        let missing = directories.iter().filter(|(path, before)| {
            **before == DirectoryBefore::There
                && workspace.names_in(path).is_none()
                && !brought.iter().any(|file| below(file, path))
        });
        self.missing = missing.map(|(path, _)| path.clone()).collect();
    }

    /// Whether there is nothing to undo.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.emptied.is_empty() && self.missing.is_empty()
    }

    /// Leaves the uncertain files as they are now.
    pub fn leave_uncertain(&mut self) {
        for path in std::mem::take(&mut self.uncertain) {
            self.files.retain(|file| file.path != path);
            self.left.push((path, "changed while a command ran, possibly not by it".to_owned()));
        }
        // A directory that was to be removed may hold such a file.
        let left = &self.left;
        self.emptied.retain(|directory| {
            !left.iter().any(|(path, _)| {
                path.strip_prefix(directory.as_str()).is_some_and(|rest| rest.starts_with('/'))
            })
        });
    }

    /// Executes the plan, for all files or none. A directory that is no longer empty stays. The content of
    /// uncertain files is copied to the directory `copies` first.
    pub fn apply(&self, workspace: &Workspace, run: &RunId, copies: &Path) -> Result<(), String> {
        for path in &self.uncertain {
            keep_copy(workspace, path, copies).map_err(|error| format!("cannot copy {path}: {error}"))?;
        }
        workspace.restore(&self.files, &format!("undo-{run}"), MAX_BYTES)?;
        for path in &self.emptied {
            workspace.remove_empty_directory(path);
        }
        for path in &self.missing {
            workspace.make_directory(path);
        }
        Ok(())
    }
}

impl RecordedChanges {
    fn note(&mut self, step: &StepRow) {
        let read = |value: Option<&Value>, name: &str| value.and_then(|value| value.get(name)).cloned();
        let command = read(step.intent.as_ref(), "command");
        let by_command = command.is_some() || step.kind == StepKind::Environment;
        if let Some(Value::String(command)) = command {
            self.cut_off |= step.result.is_none();
            self.commands.push(command);
        }
        let kept = read(step.intent.as_ref(), "kept")
            .and_then(|kept| serde_json::from_value::<Vec<Backup>>(kept).ok());
        for kept in kept.into_iter().flatten() {
            self.kept.entry(kept.path.clone()).or_default().push(kept);
        }
        // An interrupted call that was never settled may have happened, so its intent counts. Changes found
        // at the end of a task were made by commands that kept running in the background.
        let changed = match &step.result {
            Some(result) => read(Some(result), "changed").or_else(|| read(Some(result), "found")),
            None => read(step.intent.as_ref(), "changes"),
        };
        let changed = changed.and_then(|changed| serde_json::from_value::<Vec<FileChange>>(changed).ok());
        let changed = changed.unwrap_or_default();
        // A tool that changed nothing created no directories either, whatever its intent.
        let about_to = step.intent.as_ref().filter(|_| step.result.is_none() || !changed.is_empty());
        for step in [about_to, step.result.as_ref()] {
            self.note_directories(read(step, "directories"));
        }
        for change in changed {
            let first =
                FileTrail { before: change.before, mode: change.mode, by_command, ..FileTrail::default() };
            let trail = self.trails.entry(change.path).or_insert(first);
            trail.after = change.after;
            trail.uncertain |= by_command;
        }
    }
}

impl RecordedChanges {
    /// The first change of a directory tells whether it existed before.
    fn note_directories(&mut self, changes: Option<Value>) {
        let changes =
            changes.and_then(|changes| serde_json::from_value::<Vec<DirectoryChange>>(changes).ok());
        for change in changes.into_iter().flatten() {
            let (path, before) = match change {
                DirectoryChange::Made(path) => (path, DirectoryBefore::Absent),
                DirectoryChange::Removed(path) => (path, DirectoryBefore::There),
            };
            self.directories.entry(path).or_insert(before);
        }
    }
}

/// Copies a file of the workspace to a directory, under its own path. A link is copied as a link.
fn keep_copy(workspace: &Workspace, path: &str, copies: &Path) -> std::io::Result<()> {
    let (from, to) = (workspace.root().join(path), copies.join(path));
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    // An earlier undo of the same run may have left one.
    match std::fs::remove_file(&to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if from.symlink_metadata()?.is_symlink() {
        return std::os::unix::fs::symlink(std::fs::read_link(&from)?, &to);
    }
    std::fs::write(&to, bounded_read::read(&from, MAX_BYTES)?)
}

/// The source of a file's original content, or why it is unavailable.
fn source(trail: &FileTrail, kept: &[Backup]) -> Result<RestoreSource, String> {
    let Some(hash) = trail.before else { return Ok(RestoreSource::Nowhere) };
    let mut copies = kept.iter().filter_map(|kept| Some((kept.content.bytes()?, kept.mode)));
    if let Some((content, mode)) = copies.find(|(content, _)| hash.is_of(content)) {
        return Ok(RestoreSource::Kept(content, mode));
    }
    if let Some(id) = hash.git_blob() {
        return Ok(RestoreSource::Git(id, trail.mode.unwrap_or(PLAIN_FILE)));
    }
    Err(match kept.first().map(|kept| &kept.content) {
        Some(BackupContent::TooLarge(bytes)) => {
            format!("its original content ({bytes} bytes) was too large for the journal")
        }
        Some(_) => "its original content held a secret, which is never stored, or is damaged in the journal"
            .to_owned(),
        None if trail.by_command => {
            "its original content was not in git and was too large to back up before the run's first command"
                .to_owned()
        }
        None => "its original content is not in the journal of this run".to_owned(),
    })
}
