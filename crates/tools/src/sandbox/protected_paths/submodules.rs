//! Repositories inside a work tree that git's index links to: submodules, and anything made to look like one.
//!
//! `git status` queries each of them, using its own settings. So those decide what runs outside the sandbox
//! just like the settings of the work tree itself: `policy` protects the existing ones, `nested_repos`
//! handles those that a command created.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;

use super::entry::Entry;
use crate::workspace::{bounded_read, git_index};

/// Maximum size in bytes of a file that points to a git directory.
const POINTER_BYTES: u64 = 4 << 10;

/// Length in bytes of an object id, for the two object formats.
const NAMES: [usize; 2] = [20, 32];

/// An index that cannot be read, so that its links are unknown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnreadableIndex(pub(crate) PathBuf);

/// The git directory of a work tree.
pub(crate) fn git_folder(tree: &Path) -> Option<PathBuf> {
    let git = tree.join(".git");
    let found = git.symlink_metadata().ok()?;
    if found.is_dir() { Some(git) } else { pointed_at(&git) }
}

/// The git directory that a `.git` file points to.
pub(crate) fn pointed_at(pointer: &Path) -> Option<PathBuf> {
    let text = bounded_read::read_text(pointer, POINTER_BYTES).ok()?;
    Some(pointer.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

/// The existing directories that the index of a work tree links to. `tree` must not contain symbolic links.
pub(crate) fn linked(tree: &Path) -> Result<Vec<PathBuf>, UnreadableIndex> {
    // A git directory that does not exist has no index.
    let Some(folder) = git_folder(tree).and_then(|folder| folder.canonicalize().ok()) else {
        return Ok(Vec::new());
    };
    let mut linked = Vec::new();
    for index in indexes(&folder).map_err(|_| UnreadableIndex(folder.join("index")))? {
        let unreadable = |_| UnreadableIndex(index.clone());
        let entry = Entry::at(&index).map_err(unreadable)?;
        let Some(entry) = entry.filter(|entry| !matches!(entry.kind(), Ok(None))) else { continue };
        let (_, bytes) = entry.read(git_index::MAX_BYTES).map_err(unreadable)?;
        // The settings tell the object format. Parsed with the wrong one, the index gives paths that do not
        // exist.
        for name in NAMES {
            for path in links(&bytes, name) {
                linked.extend(directory(tree, &path).map_err(unreadable)?);
            }
        }
    }
    linked.sort();
    linked.dedup();
    Ok(linked)
}

/// The index, and the shared indexes it may refer to.
fn indexes(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let names = Entry::at(folder)?.map_or(Ok(Vec::new()), |entry| entry.names())?;
    let is_shared = |name: &OsStr| name.as_bytes().starts_with(b"sharedindex.");
    let shared = names.iter().filter(|(name, _)| is_shared(name)).map(|(name, _)| folder.join(name));
    Ok([folder.join("index")].into_iter().chain(shared).collect())
}

/// A directory in the tree, with no symbolic link on the path to it: git follows no other.
fn directory(tree: &Path, path: &[u8]) -> io::Result<Option<PathBuf>> {
    let path = Path::new(OsStr::from_bytes(path));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    // Not the tree itself, which would recurse forever.
    if !is_plain || path.components().next().is_none() {
        return Ok(None);
    }
    let full = tree.join(path);
    let kind = Entry::at(&full)?.map_or(Ok(None), |entry| entry.kind())?;
    Ok((kind == Some(FileType::Directory)).then_some(full))
}

/// The paths of the entries that are links to repositories.
fn links(bytes: &[u8], name_length: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    // Git does not accept a truncated index either.
    let _ = git_index::visit_entries(bytes, name_length, |entry| {
        if entry.kind() == git_index::LINK {
            found.push(entry.path.to_vec());
        }
        ControlFlow::Continue(())
    });
    found
}

#[cfg(test)]
pub(crate) use tests::git;

#[cfg(test)]
mod tests;
