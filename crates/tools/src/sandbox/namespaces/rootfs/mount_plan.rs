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
    /// Where the content comes from: the same path, unless a folder is moved.
    pub(super) source: &'p Path,
    pub(super) kind: MountKind,
    /// Below a writable tree no links are followed: a command may have created them.
    pub(super) links: SymlinkPolicy,
}

/// Path, kind and source of a mount.
type Entry<'p> = (&'p Path, MountKind, &'p Path);

fn of_kind(paths: &[PathBuf], kind: MountKind) -> Vec<Entry<'_>> {
    paths.iter().map(|path| (path.as_path(), kind, path.as_path())).collect()
}

/// Moved folders, at their new paths.
fn moved(policy: &Policy) -> Vec<Entry<'_>> {
    let kind = |writable: bool| if writable { MountKind::Write } else { MountKind::Read };
    policy
        .moved
        .iter()
        .map(|folder| (folder.target.as_path(), kind(folder.writable), folder.source.as_path()))
        .collect()
}

/// The mounts of a policy, without redundant ones.
pub(super) fn plan(policy: &Policy) -> Vec<PlannedMount<'_>> {
    let mut all = [
        of_kind(&policy.scratch, MountKind::Scratch),
        of_kind(&policy.read, MountKind::Read),
        of_kind(&policy.write, MountKind::Write),
        of_kind(&policy.hidden, MountKind::Hidden),
        moved(policy),
    ]
    .concat();
    // A moved folder exists at its new path only.
    all.retain(|(path, _, source)| {
        path != source || !policy.moved.iter().any(|folder| folder.source == *path)
    });
    // By path components, so that a tree is followed by everything in it; of two for the same path the
    // stricter one comes first and is kept.
    all.sort_by(|one, other| one.0.cmp(other.0).then(other.1.cmp(&one.1)));
    all.dedup_by_key(|(path, ..)| *path);
    let mut kept: Vec<PlannedMount<'_>> = Vec::new();
    let mut around: Vec<(&Path, MountKind)> = Vec::new();
    for (path, kind, source) in all {
        while around.last().is_some_and(|(outer, _)| !path.starts_with(outer)) {
            around.pop();
        }
        let changes = match (around.last().map(|(_, kind)| *kind), kind) {
            _ if path != source => true,
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
            kept.push(PlannedMount { path, source, kind, links });
            around.push((path, kind));
        }
    }
    kept
}

#[cfg(test)]
mod tests;
