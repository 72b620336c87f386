//! Suggests paths for a missing one: the same name elsewhere, or a similar name in the same directory.

use std::path::Path;

use super::{Workspace, WorkspacePath};
use crate::suggestions;

/// Maximum entries visited, so that a wrong path does not cost a walk through everything.
const MAX_ENTRIES: usize = 20_000;
const MAX_SUGGESTIONS: usize = 3;

pub(super) fn paths(workspace: &Workspace, missing: &WorkspacePath) -> Vec<String> {
    let wanted = missing.file_name();
    let (mut same_name, mut siblings) = (Vec::new(), Vec::new());
    let parent = missing.parent();
    let walk = crate::workspace::walk::builder(workspace.root(), true).build();
    for entry in walk.flatten().take(MAX_ENTRIES) {
        let Some(path) = relative(workspace.root(), entry.path()) else { continue };
        if path.file_name() == wanted {
            same_name.push(path);
        } else if path.parent() == parent {
            siblings.push(path);
        }
    }
    same_name.sort();
    let near = suggestions::names(wanted, siblings.iter().map(WorkspacePath::file_name), MAX_SUGGESTIONS);
    same_name
        .iter()
        .map(|path| path.to_string())
        .chain(near.iter().map(|name| parent.join(name).to_string()))
        .take(MAX_SUGGESTIONS)
        .collect()
}

fn relative(root: &Path, path: &Path) -> Option<WorkspacePath> {
    path.strip_prefix(root).ok().and_then(WorkspacePath::from_walk).filter(|path| !path.as_str().is_empty())
}
