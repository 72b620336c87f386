//! The directory tree of a run: which paths are reachable, what the run has seen, and its background jobs.
//!
//! A path is confined when it is opened, not when it is checked (`confined_open`), so swapping in a symlink
//! meanwhile does not lead outside. All writes go through `atomic_write`. A path typed by a model is first parsed
//! into a [`WorkspacePath`], whose text also names the file in events and in the journal.

mod atomic_write;
pub mod bounded_read;
pub(crate) mod confined_open;
pub mod content;
pub(crate) mod diff;
mod directory_undo;
mod disk_state;
pub(crate) mod file_status;
mod file_version;
pub(crate) mod git_index;
pub(crate) mod glob;
pub(crate) mod line_endings;
mod open_document;
mod path;
mod read_cache;
mod restore;
mod seen_files;
mod suggest;
mod undo_backup;
pub mod walk;

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, OFlags, Stat};

use crate::tool::ToolOutput;
use crate::tool::shell::Jobs;
use crate::workspace::content::{ContentHash, DirectoryChange, FileChange, ModeChange, SeenVersion};
use crate::workspace::diff::WorkspaceTracker;

pub(crate) use atomic_write::FileWrite;
pub use disk_state::DiskState;
pub use file_version::FileVersion;
pub use open_document::OpenDocuments;
pub use path::{PathProblem, WorkspacePath};
pub(crate) use read_cache::{CacheStamp, CachedContent};
pub use restore::{FileState, RestoreStep};
pub use undo_backup::{Backup, BackupContent, InitialBackups};

/// Larger files are not restored.
const PUT_BACK_BYTES: u64 = 256 << 20;

/// The workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace {path}", path = path.display())]
pub struct WorkspaceError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// A directory, what a run has seen in it, and the run's background commands.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// The root as given by the caller, which a model may have been told.
    given_root: PathBuf,
    directory: OwnedFd,
    resolution: confined_open::Resolution,
    seen: Mutex<seen_files::SeenFiles>,
    /// Files already backed up or changed by the run.
    keeping: Mutex<undo_backup::BackupState>,
    changes: Mutex<Option<WorkspaceTracker>>,
    /// Where the initial snapshot is stored, for a process that resumes the run.
    initial_snapshot_file: OnceLock<PathBuf>,
    initial_snapshot_saved: AtomicBool,
    remembered: Mutex<read_cache::ReadCache>,
    jobs: Jobs,
    documents: open_document::DocumentSource,
}

impl Workspace {
    /// Opens the workspace at `root`, which must be a directory.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let attempt = || -> io::Result<Self> {
            let given_root = std::path::absolute(root)?;
            let root = root.canonicalize()?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&root, flags, rustix::fs::Mode::empty())?;
            let resolution = confined_open::Resolution::probe(directory.as_fd());
            Ok(Self {
                root,
                given_root,
                directory,
                resolution,
                seen: Mutex::default(),
                keeping: Mutex::default(),
                changes: Mutex::default(),
                initial_snapshot_file: OnceLock::new(),
                initial_snapshot_saved: AtomicBool::new(false),
                remembered: Mutex::default(),
                jobs: Jobs::default(),
                documents: open_document::DocumentSource::default(),
            })
        };
        attempt().map_err(|source| WorkspaceError { path: root.to_owned(), source })
    }

    /// Makes paths below `path` mean the workspace, because that is where commands see it.
    #[must_use]
    pub fn shown_at(self, path: PathBuf) -> Self {
        Self { given_root: path, ..self }
    }

    /// Root directory, as commands see it.
    #[must_use]
    pub fn shown_root(&self) -> &Path {
        &self.given_root
    }

    /// Root directory, as an absolute path without symlinks.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Records a file version that the run has seen. Tools call this themselves; a resumed run replays it
    /// from the journal.
    pub fn record_seen(&self, seen: &SeenVersion) {
        self.remember(|files| files.insert(&seen.path, seen.hash));
    }

    /// Records everything a result says about files: seen versions and changes.
    pub fn record_output(&self, output: &ToolOutput) {
        for seen in &output.seen {
            self.record_seen(seen);
        }
        let mut changes = self.changes.lock();
        for change in &output.changed {
            self.keeping.lock().changed(&change.path);
            if let Some(tracker) = changes.as_mut() {
                tracker.record_own_change(&change.path, change.after);
            }
            // The run has not seen what a command wrote to the file.
            let shown = |hash| output.seen.iter().any(|seen| seen.path == change.path && seen.hash == hash);
            self.remember(|files| match change.after {
                Some(hash) if shown(hash) => files.insert(&change.path, hash),
                _ => files.remove(&change.path),
            });
        }
    }

    /// Takes the initial snapshot, unless there is one; from then on
    /// [`scan_changes`](Self::scan_changes) reports what commands change. The returned backup must be
    /// journaled before the command runs, because undoing the command needs it.
    pub fn start_tracking(&self) -> InitialBackups {
        let mut changes = self.changes.lock();
        if changes.is_some() {
            return InitialBackups::default();
        }
        let (tracker, first) = self.first_look().unzip();
        *changes = tracker;
        first.unwrap_or_default()
    }

    /// Stores the initial snapshot on disk, unless that was done before, so that it outlives the process.
    /// Call it after [`start_tracking`](Self::start_tracking) and before the command.
    pub fn save_snapshot(&self) {
        let Some(file) = self.initial_snapshot_file.get() else { return };
        let changes = self.changes.lock();
        if let Some(tracker) = changes.as_ref()
            && !self.initial_snapshot_saved.swap(true, Ordering::Relaxed)
        {
            // If this fails, only the changes of a killed command would go undetected, so the command still
            // runs.
            let _ = tracker.save(file);
        }
    }

    /// Whether the initial snapshot is stored, or need not be.
    #[must_use]
    pub fn is_snapshot_saved(&self) -> bool {
        self.initial_snapshot_file.get().is_none() || self.initial_snapshot_saved.load(Ordering::Relaxed)
    }

    /// Whether changes are tracked and a cheap check shows that nothing changed since the last scan.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.changes
            .try_lock()
            .is_some_and(|changes| changes.as_ref().is_some_and(WorkspaceTracker::is_unchanged))
    }

    /// Whether changes are tracked.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.changes.try_lock().is_some_and(|changes| changes.is_some())
    }

    /// Sets the file for the initial snapshot. If an earlier process of the run already stored one there, it
    /// is loaded and later scans are compared with it.
    pub fn load_snapshot(&self, file: PathBuf) {
        if let Some(tracker) = WorkspaceTracker::load(&self.root, &file) {
            *self.changes.lock() = Some(tracker);
            self.initial_snapshot_saved.store(true, Ordering::Relaxed);
        }
        // Only the first file is kept: a workspace belongs to one run.
        let _ = self.initial_snapshot_file.set(file);
    }

    /// Deletes the stored snapshot; call it when the run will not be resumed.
    pub fn delete_snapshot(&self) {
        if let Some(file) = self.initial_snapshot_file.get() {
            // It may never have been written.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Content of a file, from the read cache while its stamp is unchanged. `None` if it is larger than
    /// `most`.
    pub(crate) fn content(
        &self,
        path: &WorkspacePath,
        file: File,
        size: u64,
        most: u64,
    ) -> io::Result<Option<CachedContent>> {
        let stamp = CacheStamp::read(&file);
        let mut remembered = self.remembered.lock();
        if let Some(known) = stamp.and_then(|stamp| remembered.find(path.as_str(), &stamp)) {
            return Ok(Some(known));
        }
        drop(remembered);
        let Some(bytes) = read_bounded(file, size, most)? else { return Ok(None) };
        let content = CachedContent { hash: ContentHash::of(&bytes), bytes: bytes.into() };
        if let Some(stamp) = stamp {
            let mut remembered = self.remembered.lock();
            remembered.insert(path.as_str(), stamp, &content, now_ns());
        }
        Ok(Some(content))
    }

    /// Drops the cached content of a file that is written to.
    fn forget_content(&self, path: &WorkspacePath) {
        self.remembered.lock().remove(path.as_str());
    }

    /// Changes since the last scan, by content; empty if changes are not tracked.
    #[must_use]
    pub fn scan_changes(&self) -> Vec<FileChange> {
        let mut changes = self.changes.lock();
        changes.as_mut().map(WorkspaceTracker::scan).unwrap_or_default()
    }

    /// Takes the directories that scans found created or removed since the last call.
    #[must_use]
    pub fn take_directory_changes(&self) -> Vec<DirectoryChange> {
        let mut changes = self.changes.lock();
        changes.as_mut().map(WorkspaceTracker::take_directory_changes_of).unwrap_or_default()
    }

    /// Takes the changes of permissions alone that scans found since the last call.
    #[must_use]
    pub fn take_mode_changes(&self) -> Vec<ModeChange> {
        let mut changes = self.changes.lock();
        changes.as_mut().map(WorkspaceTracker::take_mode_changes).unwrap_or_default()
    }

    /// Paths of those changes whose files still differ from their earlier content.
    #[must_use]
    pub fn differing_paths(&self, changes: &[FileChange], most: u64) -> Vec<String> {
        let differs = |change: &&FileChange| {
            let Ok(path) = self.locate(&change.path) else { return true };
            let now = match self.open_to_read(&path) {
                Ok(OpenedPath::File { file, size }) => read_bounded(file, size, most).unwrap_or_default(),
                Ok(_) => return true,
                Err(_) => return change.before.is_some(),
            };
            match (change.before, now) {
                (Some(before), Some(bytes)) => !before.is_of(&bytes),
                _ => true,
            }
        };
        changes.iter().filter(differs).map(|change| change.path.clone()).collect()
    }

    /// Overwrites a file with this content, whatever it holds now. The error is the reason it failed.
    pub fn restore_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), String> {
        let path = self.locate(path).map_err(|problem| problem.to_string())?;
        if self
            .stat_no_symlinks(&path)
            .is_some_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
            && let Ok(parent) = self.resolution.parent_no_symlinks(self.directory.as_fd(), path.as_path())
        {
            // Otherwise the content would be written through the symlink.
            let _ = rustix::fs::unlinkat(parent, path.file_name(), AtFlags::empty());
            if content.is_none() {
                return Ok(());
            }
        }
        let now = self.current(&path, PUT_BACK_BYTES).map_err(|problem| problem.to_string())?;
        let change = FileWrite {
            path,
            before: now.map(|now| ContentHash::of(&now.content)),
            after: content.map(<[u8]>::to_vec),
            mode: None,
        };
        self.change(&[change], "put-back", PUT_BACK_BYTES).map_err(|error| error.to_string())
    }

    /// Ends all background jobs and waits until they have ended.
    pub async fn end_jobs(&self) {
        self.jobs.end_all().await;
    }

    /// Hash of the version of this file that the run last saw.
    #[must_use]
    pub fn last_seen(&self, path: &WorkspacePath) -> Option<ContentHash> {
        self.seen.lock().find(path.as_str())
    }

    /// Parses a path from a model: relative to the workspace, or absolute and inside it.
    pub fn locate(&self, given: &str) -> Result<WorkspacePath, PathProblem> {
        WorkspacePath::parse(given, &[&self.root, &self.given_root])
    }

    /// Opens a file or a directory for reading.
    pub fn open_to_read(&self, path: &WorkspacePath) -> Result<OpenedPath, PathProblem> {
        // Without NONBLOCK, opening a named pipe would block until there is a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let attempt = || -> io::Result<OpenedPath> {
            let descriptor = self.resolution.open(self.directory.as_fd(), path.as_path(), flags)?;
            let status = rustix::fs::fstat(&descriptor)?;
            Ok(match FileType::from_raw_mode(status.st_mode) {
                FileType::RegularFile => {
                    OpenedPath::File { file: File::from(descriptor), size: status.st_size as u64 }
                }
                FileType::Directory => OpenedPath::Directory(descriptor),
                FileType::Fifo => OpenedPath::Special("a named pipe"),
                FileType::Socket => OpenedPath::Special("a socket"),
                _ => OpenedPath::Special("a device"),
            })
        };
        attempt().map_err(|error| PathProblem::from_io(path, &error))
    }

    /// Resolves all symlinks of a directory path; a walk may start at the result.
    pub(crate) fn real_directory(&self, path: &WorkspacePath) -> Result<WorkspacePath, PathProblem> {
        let end = confined_open::walk(self.directory.as_fd(), path.as_path())
            .map_err(|error| PathProblem::from_io(path, &error))?;
        let real: PathBuf = end.components().collect();
        WorkspacePath::from_walk(&real).ok_or_else(|| PathProblem::Missing { path: path.clone() })
    }

    /// Status of a path found by a walk, if it exists in the workspace without a symlink on the way. A
    /// symlink as the last component is not followed.
    pub(crate) fn stat_no_symlinks(&self, path: &WorkspacePath) -> Option<Stat> {
        let parent = self.resolution.parent_no_symlinks(self.directory.as_fd(), path.as_path()).ok()?;
        let name = path.as_path().file_name().unwrap_or(OsStr::new("."));
        rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Target of a symlink found by a walk.
    pub(crate) fn link_text(&self, path: &WorkspacePath) -> Option<String> {
        let parent = self.resolution.parent_no_symlinks(self.directory.as_fd(), path.as_path()).ok()?;
        let text = rustix::fs::readlinkat(parent, path.file_name(), Vec::new()).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// Whether the workspace contains any file that is not ignored.
    #[must_use]
    pub fn has_files(&self) -> bool {
        let entries = crate::workspace::walk::builder(&self.root, true).build();
        entries.flatten().any(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
    }

    /// Paths of the files that are not ignored, in order; at most `most`.
    #[must_use]
    pub fn files(&self, most: usize) -> Vec<String> {
        let entries = crate::workspace::walk::builder(&self.root, false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .build();
        let files = entries.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let paths = files.filter_map(|entry| {
            let path = entry.path().strip_prefix(&self.root).ok()?;
            WorkspacePath::from_walk(path).map(|path| path.as_str().to_owned())
        });
        paths.take(most).collect()
    }

    /// Existing paths similar to a missing one, best first.
    pub(crate) fn suggestions(&self, missing: &WorkspacePath) -> Vec<String> {
        suggest::paths(self, missing)
    }

    /// Background commands of the run; they end with it.
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Descriptor of the root directory.
    pub(crate) fn held(&self) -> &OwnedFd {
        &self.directory
    }

    fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    fn remember(&self, note: impl FnOnce(&mut seen_files::SeenFiles)) {
        note(&mut self.seen.lock());
    }

    /// Forces the manual path walk that is used on kernels without openat2.
    #[cfg(test)]
    pub(crate) fn by_hand(mut self) -> Self {
        self.resolution = confined_open::Resolution::ByHand;
        self
    }
}

/// Result of opening a path.
#[derive(Debug)]
pub enum OpenedPath {
    /// A regular file and its size when it was opened.
    File {
        /// Open for reading, positioned at the start.
        file: File,
        /// Size in bytes.
        size: u64,
    },
    /// Opened, so that its entries can be listed.
    Directory(OwnedFd),
    /// Neither; reading it could block forever. The text says what it is.
    Special(&'static str),
}

#[expect(clippy::disallowed_methods, reason = "only to judge how recent a stamp is; never stored in a run")]
fn now_ns() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}

/// Reads the content; `None` if it is larger than `most`.
fn read_bounded(file: File, size: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
    if size > most {
        return Ok(None);
    }
    let mut content = Vec::with_capacity(size as usize + 1);
    // The file may have grown since it was statted.
    file.take(most + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= most).then_some(content))
}
