//! Repositories inside a work tree that git's index links to: submodules, and anything made to look like one.
//!
//! `git status` queries each of them, using its own settings. So those decide what runs outside the sandbox
//! just like the settings of the work tree itself: `policy` protects the existing ones, `guard::nested`
//! handles those that a command created.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

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
    let Some(folder) = git_folder(tree) else { return Ok(Vec::new()) };
    let mut linked = Vec::new();
    for index in indexes(&folder) {
        let bytes = match bounded_read::read(&index, git_index::MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return Err(UnreadableIndex(index)),
        };
        // The settings tell the object format. Parsed with the wrong one, the index gives paths that do not
        // exist.
        for name in NAMES {
            linked.extend(links(&bytes, name).into_iter().filter_map(|path| directory(tree, &path)));
        }
    }
    linked.sort();
    linked.dedup();
    Ok(linked)
}

/// The index, and the shared indexes it may refer to.
fn indexes(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_shared = |name: &OsStr| name.as_bytes().starts_with(b"sharedindex.");
    let shared = entries.filter(|entry| is_shared(&entry.file_name())).map(|entry| entry.path());
    [folder.join("index")].into_iter().chain(shared).collect()
}

/// A directory in the tree, with no symbolic link on the path to it: git follows no other.
fn directory(tree: &Path, path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    // Not the tree itself, which would recurse forever.
    let is_plain = is_plain && path.components().next().is_some();
    let full = tree.join(path);
    (is_plain && full.canonicalize().is_ok_and(|real| real == full) && full.is_dir()).then_some(full)
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
