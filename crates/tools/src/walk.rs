//! How directory trees are walked: by `ignore`, the same way for listing, finding and searching.
//!
//! A walk goes by names and could be led astray by a directory that is swapped for a link meanwhile. So what a
//! walk found is only believed after [`Workspace`](crate::Workspace) has found it too, through its own confined way.

use std::path::Path;

use ignore::WalkBuilder;

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
        .filter_entry(|entry| entry.depth() == 0 || !is_state(entry.file_name()));
    builder
}

/// Whether a name holds a version control system's state, or our own.
pub(crate) fn is_state(name: &std::ffi::OsStr) -> bool {
    [".git", ".fusee", ".jj", ".hg", ".svn"].iter().any(|state| name == *state)
}

/// The files under a directory as ignore files leave them, by paths from there, in order; at most so many.
pub fn files_under(root: &Path, most: usize) -> Vec<String> {
    let walk = builder(root, false).sort_by_file_name(std::ffi::OsStr::cmp).build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let path = |entry: ignore::DirEntry| entry.path().strip_prefix(root).ok()?.to_str().map(str::to_owned);
    files.filter_map(path).take(most).collect()
}
