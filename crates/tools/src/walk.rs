//! How directory trees are walked: by `ignore`, the same way for listing, finding and searching.
//!
//! A walk goes by names and could be led astray by a directory that is swapped for a link meanwhile. So what a
//! walk found is only believed after [`Workspace`](crate::Workspace) has found it too, through its own confined way.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use crate::plain;

mod ground;

pub use ground::{Ground, Stamp};

/// Larger ignore files are not read, nor is what lies beside them.
const IGNORE_BYTES: u64 = 1 << 20;

/// A file that says where a repository is.
const POINTER_BYTES: u64 = 4 << 10;

/// A walk from `start` that honours ignore files. `hidden` also visits names that begin with a dot, except those
/// that hold a version control system's or our own state.
pub(crate) fn builder(start: &Path, hidden: bool) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    builder
        .hidden(!hidden)
        // The user's own ignore file is found through the environment, which is not ours to read.
        .git_global(false)
        // Ignore files mean what they say also before the first commit, and under other systems than git.
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || !is_state(entry.file_name()) && ends(entry));
    keep_from_reading_for_ever(&mut builder, start);
    builder
}

/// Makes a walk from `start` go without ignore files where one on the way to it cannot be read to its end. Those below
/// are [`ends`]'s part.
pub fn keep_from_reading_for_ever(builder: &mut WalkBuilder, start: &Path) {
    if !start.ancestors().all(has_harmless_ignore_files) {
        builder.parents(false).ignore(false).git_ignore(false).git_exclude(false);
    }
}

/// Whether a walk that goes there comes to an end: it reads the ignore files of every directory it enters, and one may be
/// a pipe that nobody writes to, or a link to a device.
pub fn ends(entry: &DirEntry) -> bool {
    !entry.file_type().is_some_and(|kind| kind.is_dir()) || has_harmless_ignore_files(entry.path())
}

fn has_harmless_ignore_files(directory: &Path) -> bool {
    let names = [".gitignore", ".ignore"];
    names.iter().all(|name| plain::is_harmless(&directory.join(name), IGNORE_BYTES))
        && excludes(directory).is_some_and(|file| plain::is_harmless(&file, IGNORE_BYTES))
}

/// The file of a repository's own that excludes names; `None` if looking for it would not come to an end.
fn excludes(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let folder = match git.metadata() {
        Ok(found) if found.is_file() => {
            let pointer = plain::read_text(&git, POINTER_BYTES).ok()?;
            let folder = directory.join(pointer.lines().next()?.strip_prefix("gitdir: ").unwrap_or_default());
            let told = folder.join("commondir");
            let harmless = plain::is_harmless(&told, POINTER_BYTES);
            let common = plain::read_text(&told, POINTER_BYTES).unwrap_or_default();
            harmless.then(|| folder.join(common.lines().next().unwrap_or_default()))?
        }
        _ => git,
    };
    Some(folder.join("info/exclude"))
}

/// Whether a name holds a version control system's state, or our own.
pub(crate) fn is_state(name: &std::ffi::OsStr) -> bool {
    [".git", ".fusee", ".jj", ".hg", ".svn"].iter().any(|state| name == *state)
}

/// The files under a directory as ignore files leave them, by paths from there, in order; at most so many.
pub fn files_under(root: &Path, most: usize) -> Vec<String> {
    tree_under(root, most).0
}

/// The same with what decided which those are.
pub fn tree_under(root: &Path, most: usize) -> (Vec<String>, Ground) {
    let (mut files, mut ground) = (Vec::new(), Ground::around(root));
    for entry in builder(root, false).sort_by_file_name(std::ffi::OsStr::cmp).build().flatten() {
        let Some(kind) = entry.file_type() else { continue };
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        if kind.is_dir() {
            ground.enter(root, path);
        } else if let Some(path) = path.to_str().filter(|_| kind.is_file()) {
            files.push(path.to_owned());
        }
        if files.len() == most {
            break;
        }
    }
    (files, ground)
}

#[cfg(test)]
mod tests;
