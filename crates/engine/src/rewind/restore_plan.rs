//! Plans the restoration of files to a turn of a run.

use std::collections::BTreeMap;

use fusee_tools::Workspace;
use fusee_tools::workspace::DiskState;

use super::family::{Family, Member};
use super::file_history::PathState;
use super::{FileAction, Rewind, RewindError};
use crate::restore::{ContentSource, MAX_BYTES, PlannedContent, PlannedFile};

/// Plans the state of every path that a run of the family changed, as it was at the turn of the rewind.
pub(super) fn plan(
    rewind: &mut Rewind,
    family: &Family,
    member: &Member,
    workspace: &Workspace,
) -> Result<(), RewindError> {
    let directory = rewind.spec.workspace.clone();
    let mut states: BTreeMap<&str, PathState> = BTreeMap::new();
    for path in family.paths(&directory) {
        if let Some(state) = family.state(member, Some(rewind.turn), path) {
            states.insert(path, state);
        }
    }
    for (path, state) in states {
        match workspace.disk_state(path, MAX_BYTES) {
            Err(why) => rewind.left.push((path.to_owned(), why)),
            Ok(now) => plan_path(rewind, family, path, state, &now),
        }
    }
    Ok(())
}

fn plan_path(rewind: &mut Rewind, family: &Family, path: &str, state: PathState, now: &DiskState) {
    let target = match state {
        PathState::Directory => {
            if *now != DiskState::Directory {
                rewind.plan.made.push(path.to_owned());
            }
            // A file at the place of a directory has to go first.
            if matches!(now, DiskState::Absent | DiskState::Directory) {
                return;
            }
            None
        }
        PathState::Absent => {
            if *now == DiskState::Directory {
                rewind.plan.removed.push(path.to_owned());
            }
            None
        }
        PathState::File { mode, hash } => {
            let content = match (hash.git_blob(), family.content(hash)) {
                (_, Some(kept)) => Ok(ContentSource::Kept(kept.clone())),
                (Some(_), None) => Ok(ContentSource::Git(hash)),
                (None, None) => Err(now),
            };
            match content {
                Ok(content) => Some(PlannedContent { mode, content }),
                // It is not in the journal, but it is still there.
                Err(DiskState::File { content, .. } | DiskState::Link(content)) if hash.is_of(content) => {
                    return;
                }
                Err(_) => {
                    rewind.left.push((path.to_owned(), family.reason(path)));
                    return;
                }
            }
        }
    };
    let is_known = |content: &[u8]| family.has_version(path, content);
    let replaces = match now {
        DiskState::File { content, .. } | DiskState::Link(content) if is_known(content) => now.hash(),
        _ => None,
    };
    let file = PlannedFile { path: path.to_owned(), target, replaces };
    if file.is_at(now) {
        return;
    }
    let action = match (now, &file.target) {
        (_, None) => FileAction::Removed,
        (DiskState::Absent, Some(_)) => FileAction::Recreated,
        (_, Some(_)) => FileAction::Restored,
    };
    if *now != DiskState::Absent && replaces.is_none() {
        rewind.aside.push(path.to_owned());
    }
    rewind.changes.push((path.to_owned(), action));
    rewind.plan.files.push(file);
}
