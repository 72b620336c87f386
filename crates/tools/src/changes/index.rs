//! Git's index, read without git: which files it follows, what they held, and the stamps under which that is known.
//! Where the index is of a kind that this does not read, or git changes content on its way to the disk, files are read
//! instead.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::scan::Stamp;
use crate::{git_index, plain};

/// The name of a file's content; repositories with longer names are not read.
const BLOB_BYTES: usize = 20;

/// Larger settings are not read.
const SETTINGS_BYTES: u64 = 1 << 20;

/// The files git follows under a directory.
pub(super) struct Index {
    entries: HashMap<String, Entry>,
    /// When the index was written: files changed since then may look as before.
    written_ns: i128,
}

struct Entry {
    blob: [u8; BLOB_BYTES],
    size: u32,
    mtime: (u32, u32),
    ctime: (u32, u32),
    inode: u32,
}

impl Index {
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// What a file holds, if the index knows it under this stamp.
    pub(super) fn blob(&self, path: &str, stamp: &Stamp) -> Option<[u8; BLOB_BYTES]> {
        let entry = self.entries.get(path)?;
        let ns = |(seconds, nanos): (u32, u32)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let same = u64::from(entry.size) == stamp.size & u64::from(u32::MAX)
            && ns(entry.mtime) == stamp.mtime_ns
            && ns(entry.ctime) == stamp.ctime_ns
            && u64::from(entry.inode) == stamp.inode & u64::from(u32::MAX);
        (same && stamp.mtime_ns < self.written_ns).then_some(entry.blob)
    }
}

/// Reads the index of the repository that `root` is in; `None` where there is none that can be used.
pub(super) fn read(root: &Path) -> Option<Index> {
    let (top, git) = root.ancestors().find_map(|folder| Some((folder, git_folder(folder)?)))?;
    if converts(top, &git) {
        return None;
    }
    let path = git.join("index");
    let found = std::fs::metadata(&path).ok().filter(|found| found.len() <= git_index::MOST_BYTES)?;
    let written_ns = {
        use std::os::unix::fs::MetadataExt;
        i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())
    };
    let bytes = plain::read(&path, git_index::MOST_BYTES).ok()?;
    let prefix = root.strip_prefix(top).ok()?.to_str()?;
    let entries = parse(&bytes, prefix)?;
    Some(Index { entries, written_ns })
}

/// The folder git keeps its state in; of a worktree that is elsewhere.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = plain::read_text(&git, SETTINGS_BYTES).ok()?;
    Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Whether git changes content on its way to the disk, so that what it calls a file is not the hash of its bytes.
fn converts(top: &Path, git: &Path) -> bool {
    let holds = |path: PathBuf, words: &[&str]| match plain::read(&path, SETTINGS_BYTES) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        }
        // What cannot be read may say anything.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    let attributes = &["text", "eol", "filter", "ident", "encoding", "crlf"];
    holds(git.join("config"), &["autocrlf", "eol", "objectformat", "splitindex", "[filter"])
        || holds(git.join("info/attributes"), attributes)
        || holds(top.join(".gitattributes"), attributes)
}

/// The entries below a prefix. `None` for a kind of index that is not read here.
fn parse(bytes: &[u8], prefix: &str) -> Option<HashMap<String, Entry>> {
    let mut entries = HashMap::new();
    let rest = git_index::each(bytes, BLOB_BYTES, |entry| {
        let is_settled = (entry.flags >> 12) & 3 == 0;
        match entry.kind() {
            // A directory stands for all in it: a sparse index.
            0o4 => return ControlFlow::Break(()),
            0o10 | 0o12 if is_settled => {
                let path = std::str::from_utf8(entry.path).ok().and_then(|path| strip(path, prefix));
                if let Some((path, blob)) = path.zip(entry.content.try_into().ok()) {
                    let known = Entry {
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
    // The rest of a split index is in another file.
    let split = rest.get(..4) == Some(b"link");
    (!split).then_some(entries)
}

fn strip<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    if prefix.is_empty() { Some(path) } else { path.strip_prefix(prefix)?.strip_prefix('/') }
}
