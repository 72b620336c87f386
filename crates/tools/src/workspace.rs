//! The directory tree a run works in: how far paths reach, what the run has seen, and its jobs.
//!
//! A path is confined when it is opened, not when it is looked at (`beneath`), so a symbolic link that is swapped
//! in the meantime leads nowhere. `replace` is the only way content gets into a file. What a model typed is first
//! turned into a [`WorkspacePath`], whose text is also the name of a file in events and in the journal.

mod beneath;
mod directories;
mod kept;
mod path;
mod remembered;
mod replace;
mod seen;
mod standing;
mod suggest;

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::{AtFlags, FileType, OFlags, Stat};

use crate::changes::Tracker;
use crate::content::{ContentHash, DirectoryChange, FileChange, Seen};
use crate::shell::Jobs;
use crate::tool::ToolOutput;

pub use kept::{FirstLook, Kept, KeptContent};
pub use path::{PathProblem, WorkspacePath};
pub(crate) use remembered::{Content, Stamp};
pub(crate) use replace::Change;
pub use standing::{PutBack, Standing};

/// Larger files are not put back.
const PUT_BACK_BYTES: u64 = 256 << 20;

/// A workspace that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace {path}", path = path.display())]
pub struct OpenError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// A directory, what a run has seen in it, and the commands that the run has in the background.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// As it was given: a model may have been told this name.
    given_root: PathBuf,
    directory: OwnedFd,
    resolution: beneath::Resolution,
    seen: Mutex<seen::SeenFiles>,
    /// What was there before the run changed it, and is kept already.
    keeping: Mutex<kept::Keeping>,
    changes: Mutex<Option<Tracker>>,
    /// Where the first look is written down, for a process that goes on with the run.
    first_look_file: OnceLock<PathBuf>,
    first_look_saved: AtomicBool,
    remembered: Mutex<remembered::Remembered>,
    jobs: Jobs,
}

impl Workspace {
    /// The workspace at `root`, which must be a directory.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        let attempt = || -> io::Result<Self> {
            let given_root = std::path::absolute(root)?;
            let root = root.canonicalize()?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&root, flags, rustix::fs::Mode::empty())?;
            let resolution = beneath::Resolution::probe(directory.as_fd());
            Ok(Self {
                root,
                given_root,
                directory,
                resolution,
                seen: Mutex::default(),
                keeping: Mutex::default(),
                changes: Mutex::default(),
                first_look_file: OnceLock::new(),
                first_look_saved: AtomicBool::new(false),
                remembered: Mutex::default(),
                jobs: Jobs::default(),
            })
        };
        attempt().map_err(|source| OpenError { path: root.to_owned(), source })
    }

    /// Its directory, as an absolute path without symbolic links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes note of content that the run knows. Tools do this themselves; a resumed run does it again for
    /// what its journal holds.
    pub fn saw(&self, seen: &Seen) {
        self.remember(|files| files.insert(&seen.path, seen.hash));
    }

    /// Takes note of everything a result says about files: [`saw`](Self::saw) for a whole result.
    pub fn recall(&self, output: &ToolOutput) {
        for seen in &output.seen {
            self.saw(seen);
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for change in &output.changed {
            self.keeping().changed(&change.path);
            if let Some(tracker) = changes.as_mut() {
                tracker.told(&change.path, change.after);
            }
            // What a command did to a file nobody has seen yet.
            let shown = |hash| output.seen.iter().any(|seen| seen.path == change.path && seen.hash == hash);
            self.remember(|files| match change.after {
                Some(hash) if shown(hash) => files.insert(&change.path, hash),
                _ => files.remove(&change.path),
            });
        }
    }

    /// Takes note of the state of all files, unless that was done before: what a command changes is told by
    /// [`look_for_changes`](Self::look_for_changes) from then on. What it gives is to be written down before the command
    /// runs: it is what undoing the command needs.
    pub fn watch_for_changes(&self) -> FirstLook {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.is_some() {
            return FirstLook::default();
        }
        let (tracker, first) = self.first_look().unzip();
        *changes = tracker;
        first.unwrap_or_default()
    }

    /// Writes the first look down, unless that was done before, so that it outlives the process. To be done after
    /// [`watch_for_changes`](Self::watch_for_changes) and before the command.
    pub fn save_first_look(&self) {
        let Some(file) = self.first_look_file.get() else { return };
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tracker) = changes.as_ref()
            && !self.first_look_saved.swap(true, Ordering::Relaxed)
        {
            // Without it only a killed command's changes would go unseen, so the command runs all the same.
            let _ = tracker.save(file);
        }
    }

    /// Whether there is no first look to be written down.
    #[must_use]
    pub fn is_first_look_saved(&self) -> bool {
        self.first_look_file.get().is_none() || self.first_look_saved.load(Ordering::Relaxed)
    }

    /// Whether somebody watches, and it is plain at a glance that nothing changed since the last look.
    #[must_use]
    pub fn is_unmoved(&self) -> bool {
        self.changes.try_lock().is_ok_and(|changes| changes.as_ref().is_some_and(Tracker::is_unmoved))
    }

    /// Whether changes are told already.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.changes.try_lock().is_ok_and(|changes| changes.is_some())
    }

    /// Has the first look written down in `file`, so that it outlives the process. Where an earlier process of the run
    /// did so already, that is the look that later ones are compared with.
    pub fn keep_first_look(&self, file: PathBuf) {
        if let Some(tracker) = Tracker::load(&self.root, &file) {
            *self.changes.lock().unwrap_or_else(PoisonError::into_inner) = Some(tracker);
            self.first_look_saved.store(true, Ordering::Relaxed);
        }
        // A second file is another run's, and no workspace has two.
        let _ = self.first_look_file.set(file);
    }

    /// Nobody will go on with the run.
    pub fn drop_first_look(&self) {
        if let Some(file) = self.first_look_file.get() {
            // It may never have been written.
            let _ = std::fs::remove_file(file);
        }
    }

    /// What a file holds: from memory, while its stamp stands as it was. `None` if it is larger than `most`.
    pub(crate) fn content(
        &self,
        path: &WorkspacePath,
        file: File,
        size: u64,
        most: u64,
    ) -> io::Result<Option<Content>> {
        let stamp = Stamp::of(&file);
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stamp.and_then(|stamp| remembered.find(path.as_str(), &stamp)) {
            return Ok(Some(known));
        }
        drop(remembered);
        let Some(bytes) = read_bounded(file, size, most)? else { return Ok(None) };
        let content = Content { hash: ContentHash::of(&bytes), bytes: bytes.into() };
        if let Some(stamp) = stamp {
            let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            remembered.keep(path.as_str(), stamp, &content, now_ns());
        }
        Ok(Some(content))
    }

    /// Drops what is remembered of a file that is written to.
    fn forget_content(&self, path: &WorkspacePath) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).forget(path.as_str());
    }

    /// What changed since the last look, by content; nothing if nobody watches.
    #[must_use]
    pub fn look_for_changes(&self) -> Vec<FileChange> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.as_mut().map(Tracker::look).unwrap_or_default()
    }

    /// The directories that came and went, as looks for changes found them, each told once.
    #[must_use]
    pub fn take_directory_changes(&self) -> Vec<DirectoryChange> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.as_mut().map(Tracker::take_moved).unwrap_or_default()
    }

    /// Of these changes those whose files still differ from before.
    #[must_use]
    pub fn still_differ(&self, changes: &[FileChange], most: u64) -> Vec<String> {
        let differs = |change: &&FileChange| {
            let Ok(path) = self.locate(&change.path) else { return true };
            let now = match self.open_to_read(&path) {
                Ok(Opened::File { file, size }) => read_bounded(file, size, most).unwrap_or_default(),
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

    /// Gives a file this content again, whatever stands there now. The error says why it could not.
    pub fn restore_file(&self, path: &str, content: &[u8]) -> Result<(), String> {
        let path = self.locate(path).map_err(|problem| problem.to_string())?;
        if self
            .stands_plainly(&path)
            .is_some_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
            && let Ok(parent) = self.resolution.parent_plainly(self.directory.as_fd(), path.as_path())
        {
            // A link in its place would have the content written elsewhere.
            let _ = rustix::fs::unlinkat(parent, path.file_name(), AtFlags::empty());
        }
        let now = self.current(&path, PUT_BACK_BYTES).map_err(|problem| problem.to_string())?;
        let change = Change {
            path,
            before: now.map(|now| ContentHash::of(&now.content)),
            after: Some(content.to_vec()),
            mode: None,
        };
        self.change(&[change], "put-back", PUT_BACK_BYTES).map_err(|error| error.to_string())
    }

    /// What the run last saw in this file.
    #[must_use]
    pub fn last_seen(&self, path: &WorkspacePath) -> Option<ContentHash> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).find(path.as_str())
    }

    /// The path a model means: relative to the workspace, or absolute and inside it.
    pub fn locate(&self, given: &str) -> Result<WorkspacePath, PathProblem> {
        WorkspacePath::parse(given, &[&self.root, &self.given_root])
    }

    /// Opens a file or a directory for reading.
    pub fn open_to_read(&self, path: &WorkspacePath) -> Result<Opened, PathProblem> {
        // Without NONBLOCK a named pipe would hold the call until somebody writes to it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let attempt = || -> io::Result<Opened> {
            let descriptor = self.resolution.open(self.directory.as_fd(), path.as_path(), flags)?;
            let status = rustix::fs::fstat(&descriptor)?;
            Ok(match FileType::from_raw_mode(status.st_mode) {
                FileType::RegularFile => {
                    Opened::File { file: File::from(descriptor), size: status.st_size as u64 }
                }
                FileType::Directory => Opened::Directory(descriptor),
                FileType::Fifo => Opened::Special("a named pipe"),
                FileType::Socket => Opened::Special("a socket"),
                _ => Opened::Special("a device"),
            })
        };
        attempt().map_err(|error| PathProblem::from_io(path, &error))
    }

    /// The directory that this path really names, without symbolic links: where a walk may start.
    pub(crate) fn real_directory(&self, path: &WorkspacePath) -> Result<WorkspacePath, PathProblem> {
        let end = beneath::walk(self.directory.as_fd(), path.as_path())
            .map_err(|error| PathProblem::from_io(path, &error))?;
        let real: PathBuf = end.components().collect();
        WorkspacePath::from_walk(&real).ok_or_else(|| PathProblem::Missing { path: path.clone() })
    }

    /// The status of what a walk found, if it stands in the workspace with no symbolic link on the way to it. A link
    /// at its end is itself.
    pub(crate) fn stands_plainly(&self, path: &WorkspacePath) -> Option<Stat> {
        let parent = self.resolution.parent_plainly(self.directory.as_fd(), path.as_path()).ok()?;
        let name = path.as_path().file_name().unwrap_or(OsStr::new("."));
        rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// What a symbolic link that a walk found says.
    pub(crate) fn link_text(&self, path: &WorkspacePath) -> Option<String> {
        let parent = self.resolution.parent_plainly(self.directory.as_fd(), path.as_path()).ok()?;
        let text = rustix::fs::readlinkat(parent, path.file_name(), Vec::new()).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// Whether there is any file that a model could read, ignored ones left out.
    #[must_use]
    pub fn has_files(&self) -> bool {
        let entries = crate::walk::builder(&self.root, true).build();
        entries.flatten().any(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
    }

    /// The files of the workspace in order, ignored ones left out, at most so many.
    #[must_use]
    pub fn files(&self, most: usize) -> Vec<String> {
        let entries = crate::walk::builder(&self.root, false).sort_by_file_name(std::ffi::OsStr::cmp).build();
        let files = entries.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let paths = files.filter_map(|entry| {
            let path = entry.path().strip_prefix(&self.root).ok()?;
            WorkspacePath::from_walk(path).map(|path| path.as_str().to_owned())
        });
        paths.take(most).collect()
    }

    /// Existing paths that a missing one may have meant, best first.
    pub(crate) fn suggestions(&self, missing: &WorkspacePath) -> Vec<String> {
        suggest::paths(self, missing)
    }

    /// The run's commands in the background; they end with it.
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    fn keeping(&self) -> std::sync::MutexGuard<'_, kept::Keeping> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory itself, held.
    pub(crate) fn held(&self) -> &OwnedFd {
        &self.directory
    }

    fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    fn remember(&self, note: impl FnOnce(&mut seen::SeenFiles)) {
        note(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The same workspace with paths walked by hand, as on a kernel without openat2.
    #[cfg(test)]
    pub(crate) fn by_hand(mut self) -> Self {
        self.resolution = beneath::Resolution::ByHand;
        self
    }
}

/// What stands at a path.
#[derive(Debug)]
pub enum Opened {
    /// A regular file and its size when it was opened.
    File {
        /// Open for reading, at its start.
        file: File,
        /// In bytes.
        size: u64,
    },
    /// A directory.
    Directory(OwnedFd),
    /// Neither; reading it could wait for ever.
    Special(&'static str),
}

#[expect(
    clippy::disallowed_methods,
    reason = "only to tell how fresh a stamp is; nothing of it is kept in a run"
)]
fn now_ns() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}

/// The content, or `None` if there is more of it than `most`.
fn read_bounded(file: File, size: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
    if size > most {
        return Ok(None);
    }
    let mut content = Vec::with_capacity(size as usize + 1);
    // The file may have grown since its size was asked for.
    file.take(most + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= most).then_some(content))
}
