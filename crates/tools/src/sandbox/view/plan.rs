//! Which pieces of a view are mounted, in which order: what lies around others first.

use std::path::{Path, PathBuf};

use crate::sandbox::mounting::Links;
use crate::sandbox::policy::Policy;

/// What a piece is. Of two for the same path the later one here counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Scratch,
    Read,
    Write,
    Hidden,
}

/// A piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'p> {
    pub(super) path: &'p Path,
    pub(super) kind: Kind,
    /// Below what commands can change no link is followed: one of them may have made it.
    pub(super) links: Links,
}

fn of_kind(paths: &[PathBuf], kind: Kind) -> Vec<(&Path, Kind)> {
    paths.iter().map(|path| (path.as_path(), kind)).collect()
}

/// The pieces of a policy, without those that change nothing.
pub(super) fn plan(policy: &Policy) -> Vec<Entry<'_>> {
    let mut all = [
        of_kind(&policy.scratch, Kind::Scratch),
        of_kind(&policy.read, Kind::Read),
        of_kind(&policy.write, Kind::Write),
        of_kind(&policy.hidden, Kind::Hidden),
    ]
    .concat();
    // By parts of paths, so that a tree is followed by all that lies in it; the stricter of two comes first and stays.
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
            // The workspace is the user's, also where it holds a directory for temporary files.
            (Some(Kind::Write), Kind::Scratch) => false,
            // There is nothing to hide.
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
