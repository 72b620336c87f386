//! Repositories inside of a work tree that git's index links to: submodules, and whatever was made to look like one.
//!
//! `git status` asks each of them for its state, by the settings it has of its own. So those decide over programs outside
//! as much as the settings of the work tree itself: `policy` guards what is there, `guard::nested` what a command made.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::plain;

/// A larger index is not read.
const INDEX_BYTES: u64 = 256 << 20;

/// A file that says where a repository is.
const POINTER_BYTES: u64 = 4 << 10;

/// Bytes that a name of content has, in the two kinds of repositories.
const NAMES: [usize; 2] = [20, 32];

/// An index that cannot be read, so that nobody knows what it links to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) PathBuf);

/// The folder git keeps the state of a work tree in.
pub(super) fn git_folder(tree: &Path) -> Option<PathBuf> {
    let git = tree.join(".git");
    let found = git.symlink_metadata().ok()?;
    if found.is_dir() { Some(git) } else { pointed_at(&git) }
}

/// Where a `.git` that is a file says that the folder is.
pub(super) fn pointed_at(pointer: &Path) -> Option<PathBuf> {
    let text = plain::read_text(pointer, POINTER_BYTES).ok()?;
    Some(pointer.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

/// The directories that the index of a work tree links to, as far as they are there. `tree` has no symbolic links in it.
pub(super) fn linked(tree: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let Some(folder) = git_folder(tree) else { return Ok(Vec::new()) };
    let mut linked = Vec::new();
    for index in indexes(&folder) {
        let bytes = match plain::read(&index, INDEX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return Err(Unreadable(index)),
        };
        // Which kind it is stands in the settings. Taken for the other kind it gives paths that do not exist.
        for name in NAMES {
            linked.extend(links(&bytes, name).into_iter().filter_map(|path| directory(tree, &path)));
        }
    }
    linked.sort();
    linked.dedup();
    Ok(linked)
}

/// The index, and what it may share with others.
fn indexes(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_shared = |name: &OsStr| name.as_bytes().starts_with(b"sharedindex.");
    let shared = entries.filter(|entry| is_shared(&entry.file_name())).map(|entry| entry.path());
    [folder.join("index")].into_iter().chain(shared).collect()
}

/// A directory that stands in the tree with no link on the way to it: git goes to no other.
fn directory(tree: &Path, path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    // Of itself it is no part: that would go on for ever.
    let is_plain = is_plain && path.components().next().is_some();
    let full = tree.join(path);
    (is_plain && full.canonicalize().is_ok_and(|real| real == full) && full.is_dir()).then_some(full)
}

/// The paths of the entries that are links to repositories.
fn links(bytes: &[u8], name_length: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    // An index that ends in the middle is none for git either.
    let _ = each_link(bytes, name_length, |path| found.push(path.to_vec()));
    found
}

fn each_link(bytes: &[u8], name_length: usize, mut found: impl FnMut(&[u8])) -> Option<()> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = (bytes.get(..4)? == b"DIRC").then(|| number(4)).flatten()?;
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..number(8)? {
        let start = at;
        let is_link = number(start + 24)? >> 12 == 0o16;
        let flags = start + 40 + name_length;
        let extended = *bytes.get(flags)? & 0x40 != 0;
        at = flags + if extended { 4 } else { 2 };
        if version == 4 {
            let (dropped, next) = variable_length(bytes, at)?;
            path.truncate(path.len().checked_sub(dropped)?);
            at = next;
        } else {
            path.clear();
        }
        let end = at + bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&bytes[at..end]);
        // Up to version 3 entries are filled up to whole groups of eight bytes.
        at = if version == 4 { end + 1 } else { start + ((end - start) / 8 + 1) * 8 };
        if is_link {
            found(&path);
        }
    }
    Some(())
}

/// A number in groups of seven bits, as version 4 has them.
fn variable_length(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(at)?;
        at += 1;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at))
}

#[cfg(test)]
pub(super) use tests::git;

#[cfg(test)]
mod tests;
