//! Repositories inside of a work tree that git's index links to: submodules, and whatever was made to look like one.
//!
//! `git status` asks each of them for its state, by the settings it has of its own. So those decide over programs outside
//! as much as the settings of the work tree itself: `policy` guards what is there, `guard::nested` what a command made.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::{git_index, plain};

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
        let bytes = match plain::read(&index, git_index::MOST_BYTES) {
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
    let _ = git_index::each(bytes, name_length, |entry| {
        if entry.kind() == git_index::LINK {
            found.push(entry.path.to_vec());
        }
        ControlFlow::Continue(())
    });
    found
}

#[cfg(test)]
pub(super) use tests::git;

#[cfg(test)]
mod tests;
