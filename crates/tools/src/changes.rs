//! What a command changed, by content: the workspace is looked at before the first command of a run and after each one.
//!
//! A look is a stat of every known file and directory; only directories whose own stamp moved are listed again, and only
//! files whose stamp moved are read. So a look costs about what `git status` does, and a turn without a command nothing.
//! What the files held at first comes from git's index where their stamps agree with it (`index`), else from reading
//! them. Ignored files, `.git`, `.fusee` and the caches of tools are left out.

mod baseline;
mod first;
mod index;
mod scan;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use crate::content::{ContentHash, DirectoryChange, FileChange};

pub(crate) use first::{AtFirst, Room};
use scan::{Found, Root, Stamp};

/// Larger files are told apart by their stamps alone.
const READ_BYTES: u64 = 16 << 20;

/// More files than this are not followed; their changes are not seen.
const MOST_FILES: usize = 400_000;

/// More directories than this that come or go at once are not told of.
const MOST_MOVED: usize = 10_000;

/// So few files are looked at sooner than another thread is awake to do it.
const FEW_FILES: usize = 64;

/// The workspace as it was at the last look.
#[derive(Debug)]
pub(crate) struct Tracker {
    root: Root,
    directories: BTreeMap<String, Directory>,
    files: usize,
    /// Directories that came and went since somebody asked for them.
    moved: Vec<DirectoryChange>,
}

#[derive(Debug, Default)]
struct Directory {
    /// `None` for one that is listed again at every look: it changed while it was looked at.
    stamp: Option<Stamp>,
    files: HashMap<OsString, Known>,
}

/// A file at the last look.
#[derive(Clone, Copy, Debug)]
struct Known {
    stamp: Stamp,
    content: Content,
}

impl Known {
    /// What kind of file it is and its permissions, if it was looked at.
    fn mode(&self) -> Option<u32> {
        (self.stamp.mode != 0).then_some(self.stamp.mode)
    }
}

/// What a file held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Hash(ContentHash),
    /// Too large to be read: its stamp stands for it.
    Large(Stamp),
}

impl Content {
    fn hash(self) -> ContentHash {
        match self {
            Self::Hash(hash) => hash,
            Self::Large(stamp) => large_name(stamp.size, stamp.mtime_ns, stamp.inode),
        }
    }
}

/// What a file is called that is too large to be read.
pub(crate) fn large_name(size: u64, mtime_ns: i128, inode: u64) -> ContentHash {
    ContentHash::of(format!("{size} bytes of {mtime_ns} at {inode}").as_bytes())
}

impl Tracker {
    /// Whether it is plain at a glance that nothing changed: the files are few, and none of their stamps moved.
    pub(crate) fn is_unmoved(&self) -> bool {
        self.files + self.directories.len() <= FEW_FILES
            && self.root.stamps_of(&self.names()).into_iter().all(|(path, now)| {
                let (Some(known), Some(now)) = (self.directories.get(&path), now) else { return false };
                let same = |name: &OsString, stamp: &Stamp| {
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

    /// What changed since the last look, in order of path.
    pub(crate) fn look(&mut self) -> Vec<FileChange> {
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
                        changes.extend(refreshed(&self.root, &join(&path, &name), file, stamp));
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

    /// The directories that came and went, as far as looks found them, since this was last asked.
    pub(crate) fn take_moved(&mut self) -> Vec<DirectoryChange> {
        std::mem::take(&mut self.moved)
    }

    /// Takes note of what one of our own tools did, so that the next look does not tell it again.
    pub(crate) fn told(&mut self, path: &str, after: Option<ContentHash>) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(known) = self.directories.get_mut(directory) else {
            // A directory that the look finds new is read; its files are then known to be ours.
            if let Some(after) = after {
                let (stamp, content) = (Stamp::never(), Content::Hash(after));
                let entry = self.directories.entry(directory.to_owned()).or_default();
                entry.files.insert(name.into(), Known { stamp, content });
                self.files += 1;
            }
            return;
        };
        let name = OsString::from(name);
        // What was written went through the link, to a file that the look finds by itself.
        if after.is_some() && known.files.get(&name).is_some_and(|file| file.stamp.link) {
            return;
        }
        match after {
            Some(hash) if known.files.get(&name).is_some_and(|file| file.content.hash() == hash) => {}
            Some(hash) => {
                let content = Content::Hash(hash);
                let known_before = known.files.insert(name, Known { stamp: Stamp::never(), content });
                self.files += usize::from(known_before.is_none());
            }
            None => self.files -= usize::from(known.files.remove(&name).is_some()),
        }
    }

    /// The names to be looked at, by directory.
    fn names(&self) -> Vec<(String, Vec<OsString>)> {
        let names = |directory: &Directory| directory.files.keys().cloned().collect();
        self.directories.iter().map(|(path, directory)| (path.clone(), names(directory))).collect()
    }

    /// Finds what is new in a directory whose stamp moved, and in directories that are new in it.
    fn list_again(&mut self, path: &str, changes: &mut Vec<FileChange>) {
        let listed = self.root.list_below(path, |below| self.directories.contains_key(below));
        for (path, directory) in self.root.stamps(listed) {
            if !self.directories.contains_key(&path) {
                note(&mut self.moved, DirectoryChange::Made(path.clone()));
            }
            let known = self.directories.entry(path.clone()).or_default();
            known.stamp = directory.stamp;
            for (name, stamp) in directory.files {
                if known.files.contains_key(&name) || self.files >= MOST_FILES {
                    continue;
                }
                let full = join(&path, &name);
                let content = match self.root.content(&full, &stamp, READ_BYTES) {
                    Found::Bytes(bytes) => Content::Hash(ContentHash::of(&bytes)),
                    Found::Large => Content::Large(stamp),
                    Found::Nothing => continue,
                };
                known.files.insert(name, Known { stamp, content });
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
    if moved.len() < MOST_MOVED {
        moved.push(change);
    }
}

/// A file whose stamp moved: what it holds now, and whether that is something else.
fn refreshed(root: &Root, path: &str, file: &mut Known, stamp: Stamp) -> Option<FileChange> {
    let (content, same) = match root.content(path, &stamp, READ_BYTES) {
        Found::Bytes(bytes) => {
            let same = matches!(file.content, Content::Hash(hash) if hash.is_of(&bytes));
            // What git calls it stays its name, so that a later look compares the same things.
            (if same { file.content } else { Content::Hash(ContentHash::of(&bytes)) }, same)
        }
        Found::Large => {
            let content = Content::Large(stamp);
            (content, content.hash() == file.content.hash())
        }
        Found::Nothing => return None,
    };
    let (before, mode) = (file.content.hash(), file.mode());
    *file = Known { stamp, content };
    let after = Some(content.hash());
    (!same).then(|| FileChange { path: path.to_owned(), before: Some(before), after, mode })
}

fn deleted(directory: &str, name: &OsString, file: Known) -> FileChange {
    let (before, mode) = (Some(file.content.hash()), file.mode());
    FileChange { path: join(directory, name), before, after: None, mode }
}

fn join(directory: &str, name: &OsString) -> String {
    let name = name.to_string_lossy();
    if directory.is_empty() { name.into_owned() } else { format!("{directory}/{name}") }
}
