//! Git's index, read without git: which files it follows, what they held, and the stamps under which that is known.
//! Where the index is of a kind that this does not read, or git changes content on its way to the disk, files are read
//! instead.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::scan::Stamp;
use crate::plain;

/// A larger index is not read.
const MOST_BYTES: u64 = 256 << 20;

/// Larger settings are not read.
const SETTINGS_BYTES: u64 = 1 << 20;

/// The files git follows under a directory.
pub(super) struct Index {
    entries: HashMap<String, Entry>,
    /// When the index was written: files changed since then may look as before.
    written_ns: i128,
}

struct Entry {
    blob: [u8; 20],
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
    pub(super) fn blob(&self, path: &str, stamp: &Stamp) -> Option<[u8; 20]> {
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
    let found = std::fs::metadata(&path).ok().filter(|found| found.len() <= MOST_BYTES)?;
    let written_ns = {
        use std::os::unix::fs::MetadataExt;
        i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())
    };
    let bytes = plain::read(&path, MOST_BYTES).ok()?;
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
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = (bytes.get(..4)? == b"DIRC").then(|| number(4)).flatten()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = number(8)? as usize;
    let mut entries = HashMap::with_capacity(count.min(1 << 20));
    let (mut at, mut name) = (12, Vec::new());
    for _ in 0..count {
        let start = at;
        let field = |n: usize| number(start + 4 * n);
        let entry = Entry {
            ctime: (field(0)?, field(1)?),
            mtime: (field(2)?, field(3)?),
            inode: field(5)?,
            size: field(9)?,
            blob: bytes.get(start + 40..start + 60)?.try_into().ok()?,
        };
        let mode = field(6)?;
        let flags = u16::from_be_bytes(bytes.get(start + 60..start + 62)?.try_into().ok()?);
        at = start + if flags & 0x4000 == 0 { 62 } else { 64 };
        if version == 4 {
            let (dropped, next) = variable_length(bytes, at)?;
            name.truncate(name.len().checked_sub(dropped)?);
            at = next;
        } else {
            name.clear();
        }
        let end = at + bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&bytes[at..end]);
        // Up to version 3 entries are filled up to whole groups of eight bytes.
        at = if version == 4 { end + 1 } else { start + ((end - start) / 8 + 1) * 8 };
        let stage = (flags >> 12) & 3;
        match mode >> 12 {
            // A directory stands for all in it: a sparse index.
            0o4 => return None,
            0o10 | 0o12 if stage == 0 => {
                let below = std::str::from_utf8(&name).ok().and_then(|path| strip(path, prefix));
                if let Some(path) = below {
                    entries.insert(path.to_owned(), entry);
                }
            }
            _ => {}
        }
    }
    // The rest of a split index is in another file.
    let split = bytes.get(at..)?.get(..4) == Some(b"link");
    (!split).then_some(entries)
}

fn strip<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    if prefix.is_empty() { Some(path) } else { path.strip_prefix(prefix)?.strip_prefix('/') }
}

/// A number in groups of seven bits, as version 4 has them.
fn variable_length(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(at)?;
        at += 1;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
    }
    Some((value, at))
}
