//! Directory walks with `ignore`, set up the same way for listing, finding and searching.
//!
//! A walk goes by names, so a directory that is swapped for a symlink meanwhile could divert it. Its results
//! are therefore only used after [`Workspace`](crate::Workspace) has resolved them through its own confined
//! lookup.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use crate::workspace::bounded_read;

mod walk_fingerprint;

pub use walk_fingerprint::{FingerprintState, WalkFingerprint};

/// Larger ignore files are not read, and their directories are skipped.
const IGNORE_BYTES: u64 = 1 << 20;

/// Maximum size of a file that points to a repository's location.
const POINTER_BYTES: u64 = 4 << 10;

/// Walk from `start` that honours ignore files. `hidden` also visits names that begin with a dot, except
/// version control state and our own.
pub(crate) fn builder(start: &Path, hidden: bool) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    builder
        .hidden(!hidden)
        // The user's global ignore file is located through the environment, which this crate does not read.
        .git_global(false)
        // Ignore files also apply before the first commit and under other version control systems.
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || !is_state(entry.file_name()) && may_enter(entry));
    bound_ignore_files(&mut builder, start);
    builder
}

/// Disables ignore files for a walk from `start` if one in `start` or above it cannot be safely read to its
/// end. [`may_enter`] handles those below.
pub fn bound_ignore_files(builder: &mut WalkBuilder, start: &Path) {
    if !start.ancestors().all(has_harmless_ignore_files) {
        builder.parents(false).ignore(false).git_ignore(false).git_exclude(false);
    }
}

/// Whether a walk may enter the directory. A walk reads the ignore files of every directory it enters, and
/// one could be a pipe without a writer or a symlink to a device, which would block forever.
pub fn may_enter(entry: &DirEntry) -> bool {
    !entry.file_type().is_some_and(|kind| kind.is_dir()) || has_harmless_ignore_files(entry.path())
}

fn has_harmless_ignore_files(directory: &Path) -> bool {
    let names = [".gitignore", ".ignore"];
    names.iter().all(|name| bounded_read::is_bounded_file(&directory.join(name), IGNORE_BYTES))
        && excludes(directory).is_some_and(|file| bounded_read::is_bounded_file(&file, IGNORE_BYTES))
}

/// Path of the repository's `info/exclude` file; `None` if resolving it could block.
fn excludes(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let folder = match git.metadata() {
        Ok(found) if found.is_file() => {
            let pointer = bounded_read::read_text(&git, POINTER_BYTES).ok()?;
            let folder = directory.join(pointer.lines().next()?.strip_prefix("gitdir: ").unwrap_or_default());
            let pointer = folder.join("commondir");
            let harmless = bounded_read::is_bounded_file(&pointer, POINTER_BYTES);
            let common = bounded_read::read_text(&pointer, POINTER_BYTES).unwrap_or_default();
            harmless.then(|| folder.join(common.lines().next().unwrap_or_default()))?
        }
        _ => git,
    };
    Some(folder.join("info/exclude"))
}

/// Whether the name is a version control system's state directory, or our own.
pub(crate) fn is_state(name: &std::ffi::OsStr) -> bool {
    [".git", ".fusee", ".jj", ".hg", ".svn"].iter().any(|state| name == *state)
}

/// Files under a directory that are not ignored, as relative paths in order; at most `most`. The fingerprint
/// covers the inputs that determined the result.
pub fn tree_under(root: &Path, most: usize) -> (Vec<String>, WalkFingerprint) {
    let (mut files, mut ground) = (Vec::new(), WalkFingerprint::starting_at(root));
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
