//! Which parts of the root file system are mounted, and in which order: outer paths before inner ones.

use std::path::{Path, PathBuf};

use crate::sandbox::namespaces::mount::SymlinkPolicy;
use crate::sandbox::policy::Policy;

/// Kind of a mount. If there are two for the same path, the later variant wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MountKind {
    Scratch,
    Read,
    Write,
    Hidden,
}

/// A path to mount in the new root, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedMount<'p> {
    pub(super) path: &'p Path,
    pub(super) kind: MountKind,
    /// Below a writable tree no links are followed: a command may have created them.
    pub(super) links: SymlinkPolicy,
}

fn of_kind(paths: &[PathBuf], kind: MountKind) -> Vec<(&Path, MountKind)> {
    paths.iter().map(|path| (path.as_path(), kind)).collect()
}

/// The mounts of a policy, without redundant ones.
pub(super) fn plan(policy: &Policy) -> Vec<PlannedMount<'_>> {
    let mut all = [
        of_kind(&policy.scratch, MountKind::Scratch),
        of_kind(&policy.read, MountKind::Read),
        of_kind(&policy.write, MountKind::Write),
        of_kind(&policy.hidden, MountKind::Hidden),
    ]
    .concat();
    // By path components, so that a tree is followed by everything in it; of two for the same path the
    // stricter one comes first and is kept.
    all.sort_by(|one, other| one.0.cmp(other.0).then(other.1.cmp(&one.1)));
    all.dedup_by_key(|(path, _)| *path);
    let mut kept: Vec<PlannedMount<'_>> = Vec::new();
    let mut around: Vec<(&Path, MountKind)> = Vec::new();
    for (path, kind) in all {
        while around.last().is_some_and(|(outer, _)| !path.starts_with(outer)) {
            around.pop();
        }
        let changes = match (around.last().map(|(_, kind)| *kind), kind) {
            (Some(outer), inner) if outer == inner => inner == MountKind::Scratch,
            // The workspace is the user's, even if it contains a directory for temporary files.
            (Some(MountKind::Write), MountKind::Scratch) => false,
            // The path is not visible, so there is nothing to hide.
            (None | Some(MountKind::Scratch), MountKind::Hidden) => false,
            _ => true,
        };
        if changes {
            let writable = around.iter().any(|(_, kind)| *kind == MountKind::Write);
            let links = if writable { SymlinkPolicy::Refused } else { SymlinkPolicy::Followed };
            kept.push(PlannedMount { path, kind, links });
            around.push((path, kind));
        }
    }
    kept
}

#[cfg(test)]
mod tests;
