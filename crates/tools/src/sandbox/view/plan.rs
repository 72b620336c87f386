//! Which parts of the root file system are mounted, and in which order: outer paths before inner ones.

use std::path::{Path, PathBuf};

use crate::sandbox::mounting::Links;
use crate::sandbox::policy::Policy;

/// Kind of a mount. If there are two for the same path, the later variant wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Scratch,
    Read,
    Write,
    Hidden,
}

/// One planned mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'p> {
    pub(super) path: &'p Path,
    pub(super) kind: Kind,
    /// Below a writable tree no links are followed: a command may have created them.
    pub(super) links: Links,
}

fn of_kind(paths: &[PathBuf], kind: Kind) -> Vec<(&Path, Kind)> {
    paths.iter().map(|path| (path.as_path(), kind)).collect()
}

/// The mounts of a policy, without redundant ones.
pub(super) fn plan(policy: &Policy) -> Vec<Entry<'_>> {
    let mut all = [
        of_kind(&policy.scratch, Kind::Scratch),
        of_kind(&policy.read, Kind::Read),
        of_kind(&policy.write, Kind::Write),
        of_kind(&policy.hidden, Kind::Hidden),
    ]
    .concat();
    // By path components, so that a tree is followed by everything in it; of two for the same path the
    // stricter one comes first and is kept.
    all.sort_by(|one, other| one.0.cmp(other.0).then(other.1.cmp(&one.1)));
    all.dedup_by_key(|(path, _)| *path);
    let mut kept: Vec<Entry<'_>> = Vec::new();
    let mut around: Vec<(&Path, Kind)> = Vec::new();
    for (path, kind) in all {
        while around.last().is_some_and(|(outer, _)| !path.starts_with(outer)) {
            around.pop();
        }
        let changes = match (around.last().map(|(_, kind)| *kind), kind) {
            (Some(outer), inner) if outer == inner => inner == Kind::Scratch,
            // The workspace is the user's, even if it contains a directory for temporary files.
            (Some(Kind::Write), Kind::Scratch) => false,
            // The path is not visible, so there is nothing to hide.
            (None | Some(Kind::Scratch), Kind::Hidden) => false,
            _ => true,
        };
        if changes {
            let writable = around.iter().any(|(_, kind)| *kind == Kind::Write);
            let links = if writable { Links::Refused } else { Links::Followed };
            kept.push(Entry { path, kind, links });
            around.push((path, kind));
        }
    }
    kept
}

#[cfg(test)]
mod tests;
