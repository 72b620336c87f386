//! Compares the files of two runs that work in different copies of a workspace.

use std::collections::BTreeSet;

use fusee_journal::{Journal, RunId};
use fusee_tools::workspace::DiskState;

use super::family::Family;
use super::{RewindError, open};

/// Larger files are only named.
const MAX_BYTES: u64 = 1 << 20;

/// A file that differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDifference {
    /// Path relative to the workspaces.
    pub path: String,
    /// The file in the workspace of the first run.
    pub one: DiskState,
    /// The file in the workspace of the second run.
    pub other: DiskState,
}

/// The files that either run changed and that differ between their workspaces now. Runs in the same workspace have the
/// same files.
pub fn file_differences(
    journal: &Journal,
    one: &RunId,
    other: &RunId,
) -> Result<Vec<FileDifference>, RewindError> {
    let (first, second) = (Family::load(journal, one)?, Family::load(journal, other)?);
    let (Some(mine), Some(theirs)) = (first.member(one), second.member(other)) else { return Ok(Vec::new()) };
    let places = (&mine.spec.workspace, &theirs.spec.workspace);
    // Two projects of a journal have nothing in common.
    if places.0 == places.1 || first.member(other).is_none() {
        return Ok(Vec::new());
    }
    let (left, right) = (open(places.0)?, open(places.1)?);
    let paths: BTreeSet<&str> =
        mine.history.changes.keys().chain(theirs.history.changes.keys()).map(String::as_str).collect();
    let mut differences = Vec::new();
    for path in paths {
        let state = |workspace: &fusee_tools::Workspace| workspace.disk_state(path, MAX_BYTES);
        let (one, other) =
            (state(&left).map_err(RewindError::Files)?, state(&right).map_err(RewindError::Files)?);
        if one != other {
            differences.push(FileDifference { path: path.to_owned(), one, other });
        }
    }
    Ok(differences)
}
