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

fn is_state(name: &std::ffi::OsStr) -> bool {
    [".git", ".fusee", ".jj", ".hg", ".svn"].iter().any(|state| name == *state)
}
