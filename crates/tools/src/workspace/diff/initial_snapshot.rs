//! Initial snapshot of a workspace: a hash of every file, and copies of the files that git could not restore.
//!
//! A tracked file that is unmodified needs no copy. Of the others the smallest are copied, up to the limits,
//! so the space goes to hand-written files rather than to generated ones.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::Path;

use super::scan::{FileStamp, ScanRoot, ScannedFile};
use super::tracked_files::{self, TrackedFiles};
use super::{ContentId, MAX_FILES, READ_BYTES, TrackedDirectory, TrackedFile, WorkspaceTracker, join};
use crate::workspace::content::ContentHash;

/// Limits for the copies of files that git could not restore.
pub(crate) struct CopyLimits<'a> {
    /// Maximum size of one copied file.
    pub(crate) file_bytes: u64,
    /// Maximum size of all copies together.
    pub(crate) bytes: u64,
    /// Maximum number of copies.
    pub(crate) files: usize,
    /// Files backed up elsewhere, which need no copy.
    pub(crate) except: &'a dyn Fn(&str) -> bool,
}

/// Copies of files from the initial snapshot.
#[derive(Debug, Default)]
pub(crate) struct InitialSnapshot {
    /// Path, mode (file type and permissions), and content; for a symlink, its target.
    pub(crate) kept: Vec<(String, u32, Vec<u8>)>,
    /// Number and total bytes of files that were not copied because of the limits.
    pub(crate) left: (usize, u64),
}

/// File name, stamp, and git blob id if the index vouches for the content.
type SnapshotEntry = (OsString, FileStamp, Option<[u8; 20]>);

impl WorkspaceTracker {
    /// Takes the initial snapshot. `None` if the workspace cannot be opened.
    pub(crate) fn begin(root: &Path, room: &CopyLimits<'_>) -> Option<(Self, InitialSnapshot)> {
        let root = ScanRoot::open(root)?;
        let index = tracked_files::read(root.path());
        let mut listed = root.list_all(MAX_FILES);
        if let Some(index) = &index {
            root.add_tracked(index.paths(), &mut listed);
        }
        let stamped = root.stamps(listed).into_iter();
        let found: Vec<(String, Option<FileStamp>, Vec<SnapshotEntry>)> = stamped
            .map(|(path, directory)| {
                let known = |(name, stamp): (OsString, FileStamp)| {
                    let blob = git_has(index.as_ref(), &path, &name, &stamp);
                    (name, stamp, blob)
                };
                let files = directory.files.into_iter().map(known).collect();
                (path, directory.stamp, files)
            })
            .collect();
        let largest = largest_kept(&found, room);
        let mut tracker =
            Self { root, directories: BTreeMap::new(), files: 0, moved: Vec::new(), modes: Vec::new() };
        let mut first = CopyCollector { room, largest, bytes: 0, copies: InitialSnapshot::default() };
        for (path, stamp, listed) in found {
            let mut files = HashMap::with_capacity(listed.len());
            for (name, stamp, blob) in listed {
                let content = match blob {
                    Some(blob) => ContentId::Hash(ContentHash::of_git_blob(blob)),
                    None => match first.read(&tracker.root, join(&path, &name), stamp) {
                        Some(content) => content,
                        None => continue,
                    },
                };
                files.insert(name, TrackedFile { stamp, content });
            }
            tracker.files += files.len();
            tracker.directories.insert(path, TrackedDirectory { stamp, files });
        }
        Some((tracker, first.copies))
    }
}

fn git_has(index: Option<&TrackedFiles>, path: &str, name: &OsString, stamp: &FileStamp) -> Option<[u8; 20]> {
    index.and_then(|index| index.blob(&join(path, name), stamp))
}

/// Size of the largest file that still fits when all smaller ones are copied.
fn largest_kept(found: &[(String, Option<FileStamp>, Vec<SnapshotEntry>)], room: &CopyLimits<'_>) -> u64 {
    let mut sizes = Vec::new();
    for (path, _, files) in found {
        let wanted = files.iter().filter(|(name, stamp, blob)| {
            blob.is_none() && stamp.size <= room.file_bytes && !(room.except)(&join(path, name))
        });
        sizes.extend(wanted.map(|(_, stamp, _)| stamp.size));
    }
    sizes.sort_unstable();
    let mut all = 0;
    let fits = |size: &&u64| {
        all += **size;
        all <= room.bytes
    };
    sizes.iter().take(room.files).take_while(fits).last().copied().unwrap_or_default()
}

/// Copies being collected, with the limits that apply.
struct CopyCollector<'a> {
    room: &'a CopyLimits<'a>,
    largest: u64,
    bytes: u64,
    copies: InitialSnapshot,
}

impl CopyCollector<'_> {
    /// Reads and hashes a file, and copies it if the limits allow.
    fn read(&mut self, root: &ScanRoot, path: String, stamp: FileStamp) -> Option<ContentId> {
        let content = match root.content(&path, &stamp, READ_BYTES) {
            ScannedFile::Bytes(bytes) => bytes,
            ScannedFile::Large => {
                self.leave(stamp.size);
                return Some(ContentId::Large(stamp));
            }
            ScannedFile::Nothing => return None,
        };
        let (hash, size) = (ContentHash::of(&content), content.len() as u64);
        if !(self.room.except)(&path) {
            let fits = size <= self.largest
                && self.bytes + size <= self.room.bytes
                && self.copies.kept.len() < self.room.files;
            if fits {
                self.bytes += size;
                self.copies.kept.push((path, stamp.mode, content));
            } else {
                self.leave(size);
            }
        }
        Some(ContentId::Hash(hash))
    }

    fn leave(&mut self, bytes: u64) {
        self.copies.left.0 += 1;
        self.copies.left.1 += bytes;
    }
}
