//! Detects by content which files a command changed: the workspace is scanned before the first command of a
//! run and after each one.
//!
//! A scan stats every known file and directory. Only directories whose own stamp changed are listed again,
//! and only files whose stamp changed are read, so a scan costs about as much as `git status` and a turn
//! without a command costs nothing. Initial content comes from git's index where the stamps match it
//! (`tracked_files`), otherwise from reading the files. Ignored files, `.git`, `.fusee` and tool caches are skipped.

mod initial_snapshot;
mod scan;
mod snapshot_file;
mod tracked_files;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use crate::workspace::content::{ContentHash, DirectoryChange, FileChange, ModeChange};

pub(crate) use initial_snapshot::{CopyLimits, InitialSnapshot};
use scan::{FileStamp, ScanRoot, ScannedFile};

/// Larger files are compared by stamp only.
const READ_BYTES: u64 = 16 << 20;

/// Maximum number of files tracked; changes to files beyond it are not detected.
const MAX_FILES: usize = 400_000;

/// Maximum number of created and removed directories, and of changed permissions, recorded between two calls of
/// `take_directory_changes_of` and `take_mode_changes`.
const MAX_MOVED: usize = 10_000;

/// Up to this many entries, scanning inline is faster than waking another thread.
const FEW_FILES: usize = 64;

/// State of the workspace at the last scan.
#[derive(Debug)]
pub(crate) struct WorkspaceTracker {
    root: ScanRoot,
    directories: BTreeMap<String, TrackedDirectory>,
    files: usize,
    /// Directories created and removed since the last `take_directory_changes_of`.
    moved: Vec<DirectoryChange>,
    /// Changes of permissions alone since the last `take_mode_changes`.
    modes: Vec<ModeChange>,
}

#[derive(Debug, Default)]
struct TrackedDirectory {
    /// `None` if the directory changed during the scan; it is then listed again every time.
    stamp: Option<FileStamp>,
    files: HashMap<OsString, TrackedFile>,
}

/// State of one file at the last scan.
#[derive(Clone, Copy, Debug)]
struct TrackedFile {
    stamp: FileStamp,
    content: ContentId,
}

impl TrackedFile {
    /// File type and permissions; `None` if the file was never statted.
    fn mode(&self) -> Option<u32> {
        (self.stamp.mode != 0).then_some(self.stamp.mode)
    }
}

/// Identity of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentId {
    Hash(ContentHash),
    /// Too large to read: identified by its stamp.
    Large(FileStamp),
}

impl ContentId {
    fn hash(self) -> ContentHash {
        match self {
            Self::Hash(hash) => hash,
            Self::Large(stamp) => large_name(stamp.size, stamp.mtime_ns, stamp.inode),
        }
    }
}

/// Surrogate hash for a file that is too large to read.
pub(crate) fn large_name(size: u64, mtime_ns: i128, inode: u64) -> ContentHash {
    ContentHash::of(format!("{size} bytes of {mtime_ns} at {inode}").as_bytes())
}

impl WorkspaceTracker {
    /// Cheap check that nothing changed: there are few files, and no stamp moved. `false` means unknown.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.files + self.directories.len() <= FEW_FILES
            && self.root.stamps_of(&self.names()).into_iter().all(|(path, now)| {
                let (Some(known), Some(now)) = (self.directories.get(&path), now) else { return false };
                let same = |name: &OsString, stamp: &FileStamp| {
                    !stamp.is_fresh() && known.files.get(name).is_some_and(|file| file.stamp == *stamp)
                };
                now.stamp.is_some()
                    && now.stamp == known.stamp
                    && now
                        .files
                        .iter()
                        .all(|(name, stamp)| stamp.as_ref().is_some_and(|stamp| same(name, stamp)))
            })
    }

    /// Scans again and returns the changes since the last scan, sorted by path.
    pub(crate) fn scan(&mut self) -> Vec<FileChange> {
        let seen = self.root.stamps_of(&self.names());
        let mut changes = Vec::new();
        let mut fresh = Vec::new();
        for (path, now) in seen {
            let Some(known) = self.directories.get_mut(&path) else { continue };
            let Some(now) = now else {
                let gone = std::mem::take(known);
                self.files -= gone.files.len();
                changes.extend(gone.files.into_iter().map(|(name, file)| deleted(&path, &name, file)));
                self.directories.remove(&path);
                note(&mut self.moved, DirectoryChange::Removed(path));
                continue;
            };
            for (name, stamp) in now.files {
                let Some(file) = known.files.get_mut(&name) else { continue };
                match stamp {
                    None => {
                        if let Some(file) = known.files.remove(&name) {
                            self.files -= 1;
                            changes.push(deleted(&path, &name, file));
                        }
                    }
                    Some(stamp) if stamp == file.stamp && !stamp.is_fresh() => {}
                    Some(stamp) => {
                        let path = join(&path, &name);
                        let before = file.mode();
                        let change = reread(&self.root, &path, file, stamp);
                        if change.is_none() && before != file.mode() && self.modes.len() < MAX_MOVED {
                            let content = file.content.hash();
                            self.modes.push(ModeChange { path, content, before, after: stamp.mode });
                        }
                        changes.extend(change);
                    }
                }
            }
            if now.stamp.is_none() || now.stamp != known.stamp {
                known.stamp = now.stamp;
                fresh.push(path);
            }
        }
        for path in fresh {
            self.list_again(&path, &mut changes);
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }

    /// Takes the directories that scans found created or removed since the last call.
    pub(crate) fn take_directory_changes_of(&mut self) -> Vec<DirectoryChange> {
        std::mem::take(&mut self.moved)
    }

    /// Takes the changes of permissions alone that scans found since the last call.
    pub(crate) fn take_mode_changes(&mut self) -> Vec<ModeChange> {
        std::mem::take(&mut self.modes)
    }

    /// Records a change made by one of our own tools, so that the next scan does not report it again.
    pub(crate) fn record_own_change(&mut self, path: &str, after: Option<ContentHash>) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(known) = self.directories.get_mut(directory) else {
            // The next scan reads a directory it has not seen before; this entry marks the file as already
            // reported.
            if let Some(after) = after {
                let (stamp, content) = (FileStamp::matching_nothing(), ContentId::Hash(after));
                let entry = self.directories.entry(directory.to_owned()).or_default();
                entry.files.insert(name.into(), TrackedFile { stamp, content });
                self.files += 1;
            }
            return;
        };
        let name = OsString::from(name);
        // The write went through the symlink; the next scan finds the target by itself.
        if after.is_some() && known.files.get(&name).is_some_and(|file| file.stamp.link) {
            return;
        }
        match after {
            Some(hash) if known.files.get(&name).is_some_and(|file| file.content.hash() == hash) => {}
            Some(hash) => {
                let content = ContentId::Hash(hash);
                let known_before =
                    known.files.insert(name, TrackedFile { stamp: FileStamp::matching_nothing(), content });
                self.files += usize::from(known_before.is_none());
            }
            None => self.files -= usize::from(known.files.remove(&name).is_some()),
        }
    }

    /// Names to stat, by directory.
    fn names(&self) -> Vec<(String, Vec<OsString>)> {
        let names = |directory: &TrackedDirectory| directory.files.keys().cloned().collect();
        self.directories.iter().map(|(path, directory)| (path.clone(), names(directory))).collect()
    }

    /// Finds new files in a directory whose stamp moved, and in directories that are new in it.
    fn list_again(&mut self, path: &str, changes: &mut Vec<FileChange>) {
        let listed = self.root.list_below(path, |below| self.directories.contains_key(below));
        for (path, directory) in self.root.stamps(listed) {
            if !self.directories.contains_key(&path) {
                note(&mut self.moved, DirectoryChange::Made(path.clone()));
            }
            let known = self.directories.entry(path.clone()).or_default();
            known.stamp = directory.stamp;
            for (name, stamp) in directory.files {
                if known.files.contains_key(&name) || self.files >= MAX_FILES {
                    continue;
                }
                let full = join(&path, &name);
                let content = match self.root.content(&full, &stamp, READ_BYTES) {
                    ScannedFile::Bytes(bytes) => ContentId::Hash(ContentHash::of(&bytes)),
                    ScannedFile::Large => ContentId::Large(stamp),
                    ScannedFile::Nothing => continue,
                };
                known.files.insert(name, TrackedFile { stamp, content });
                self.files += 1;
                changes.push(FileChange {
                    path: full,
                    before: None,
                    after: Some(content.hash()),
                    mode: None,
                });
            }
        }
    }
}

fn note(moved: &mut Vec<DirectoryChange>, change: DirectoryChange) {
    if moved.len() < MAX_MOVED {
        moved.push(change);
    }
}

/// Rereads a file whose stamp moved; returns a change if its content differs.
fn reread(root: &ScanRoot, path: &str, file: &mut TrackedFile, stamp: FileStamp) -> Option<FileChange> {
    let (content, same) = match root.content(path, &stamp, READ_BYTES) {
        ScannedFile::Bytes(bytes) => {
            let same = matches!(file.content, ContentId::Hash(hash) if hash.is_of(&bytes));
            // Keep the git hash if the content matches it, so that later scans compare like with like.
            (if same { file.content } else { ContentId::Hash(ContentHash::of(&bytes)) }, same)
        }
        ScannedFile::Large => {
            let content = ContentId::Large(stamp);
            (content, content.hash() == file.content.hash())
        }
        ScannedFile::Nothing => return None,
    };
    let (before, mode) = (file.content.hash(), file.mode());
    *file = TrackedFile { stamp, content };
    let after = Some(content.hash());
    (!same).then(|| FileChange { path: path.to_owned(), before: Some(before), after, mode })
}

fn deleted(directory: &str, name: &OsString, file: TrackedFile) -> FileChange {
    let (before, mode) = (Some(file.content.hash()), file.mode());
    FileChange { path: join(directory, name), before, after: None, mode }
}

fn join(directory: &str, name: &OsString) -> String {
    let name = name.to_string_lossy();
    if directory.is_empty() { name.into_owned() } else { format!("{directory}/{name}") }
}
