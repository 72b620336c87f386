//! Reads git's index without running git: tracked files, their blob ids, and the stamps for which these are
//! valid. If the index has an unsupported format, or git converts content on checkout, the files are read
//! instead.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::scan::FileStamp;
use crate::workspace::{bounded_read, git_index};

/// Length of a SHA-1 blob id; repositories with longer ids are not supported.
const BLOB_BYTES: usize = 20;

/// Maximum size of a git settings file; larger ones are not read.
const SETTINGS_BYTES: u64 = 1 << 20;

/// Tracked files below a directory.
pub(super) struct TrackedFiles {
    entries: HashMap<String, TrackedEntry>,
    /// Modification time of the index: a file changed at or after it may have an unchanged stamp.
    written_ns: i128,
}

struct TrackedEntry {
    blob: [u8; BLOB_BYTES],
    size: u32,
    mtime: (u32, u32),
    ctime: (u32, u32),
    inode: u32,
}

impl TrackedFiles {
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Blob id of a file, if the index records it with this stamp.
    pub(super) fn blob(&self, path: &str, stamp: &FileStamp) -> Option<[u8; BLOB_BYTES]> {
        let entry = self.entries.get(path)?;
        let ns = |(seconds, nanos): (u32, u32)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let same = u64::from(entry.size) == stamp.size & u64::from(u32::MAX)
            && ns(entry.mtime) == stamp.mtime_ns
            && ns(entry.ctime) == stamp.ctime_ns
            && u64::from(entry.inode) == stamp.inode & u64::from(u32::MAX);
        (same && stamp.mtime_ns < self.written_ns).then_some(entry.blob)
    }
}

/// Reads the index of the repository that contains `root`; `None` if there is no usable one.
pub(super) fn read(root: &Path) -> Option<TrackedFiles> {
    let (top, git) = root.ancestors().find_map(|folder| Some((folder, git_folder(folder)?)))?;
    if converts_content(top, &git) {
        return None;
    }
    let path = git.join("index");
    let found = std::fs::metadata(&path).ok().filter(|found| found.len() <= git_index::MAX_BYTES)?;
    let written_ns = {
        use std::os::unix::fs::MetadataExt;
        i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())
    };
    let bytes = bounded_read::read(&path, git_index::MAX_BYTES).ok()?;
    let prefix = root.strip_prefix(top).ok()?.to_str()?;
    let entries = parse(&bytes, prefix)?;
    Some(TrackedFiles { entries, written_ns })
}

/// Git's state directory; for a worktree it lies elsewhere.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = bounded_read::read_text(&git, SETTINGS_BYTES).ok()?;
    Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Whether git converts content on checkout, so that blob ids are not hashes of the bytes on disk.
fn converts_content(top: &Path, git: &Path) -> bool {
    let holds = |path: PathBuf, words: &[&str]| match bounded_read::read(&path, SETTINGS_BYTES) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        }
        // An unreadable file may contain any setting.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    let attributes = &["text", "eol", "filter", "ident", "encoding", "crlf"];
    holds(git.join("config"), &["autocrlf", "eol", "objectformat", "splitindex", "[filter"])
        || holds(git.join("info/attributes"), attributes)
        || holds(top.join(".gitattributes"), attributes)
}

/// Parses the entries below a prefix. `None` for an unsupported index format.
fn parse(bytes: &[u8], prefix: &str) -> Option<HashMap<String, TrackedEntry>> {
    let mut entries = HashMap::new();
    let rest = git_index::visit_entries(bytes, BLOB_BYTES, |entry| {
        let is_settled = (entry.flags >> 12) & 3 == 0;
        match entry.kind() {
            // A directory entry means a sparse index.
            0o4 => return ControlFlow::Break(()),
            0o10 | 0o12 if is_settled => {
                let path = std::str::from_utf8(entry.path).ok().and_then(|path| strip(path, prefix));
                if let Some((path, blob)) = path.zip(entry.content.try_into().ok()) {
                    let known = TrackedEntry {
                        ctime: (entry.number(0), entry.number(1)),
                        mtime: (entry.number(2), entry.number(3)),
                        inode: entry.number(5),
                        size: entry.number(9),
                        blob,
                    };
                    entries.insert(path.to_owned(), known);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    // A split index keeps its other entries in a shared file.
    let split = rest.get(..4) == Some(b"link");
    (!split).then_some(entries)
}

fn strip<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    if prefix.is_empty() { Some(path) } else { path.strip_prefix(prefix)?.strip_prefix('/') }
}
