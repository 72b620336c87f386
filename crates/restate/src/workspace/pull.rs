//! Applying the changes of a run to the user's directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::restore::{place, write_file};
use super::{FileTree, Scan, TreeEntry, TreePath};
use crate::{BlobStore, EngineError};

/// What a run did to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeChange {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// `added`, `changed` or `removed`.
    pub what: &'static str,
}

/// Why changes were not written.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// Files changed here since the run started.
    #[error("changed here since the run started: {}", paths(.0))]
    Conflicts(Vec<PathBuf>),
    /// Something failed.
    #[error(transparent)]
    Failed(#[from] EngineError),
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Outputs of commands that were too long for the model. They belong to the run, not to the user's work.
const OUTPUTS: &str = ".fusee/output";

/// What changed from one tree to another.
pub fn changes(before: &FileTree, after: &FileTree) -> Vec<TreeChange> {
    let change = |path: &TreePath, what| TreeChange { path: path.to_path(), what };
    let mut changes: Vec<TreeChange> = before
        .0
        .keys()
        .filter(|path| !after.0.contains_key(*path))
        .map(|path| change(path, "removed"))
        .collect();
    changes.extend(after.0.iter().filter_map(|(path, entry)| match before.0.get(path) {
        None => Some(change(path, "added")),
        Some(old) if old != entry => Some(change(path, "changed")),
        Some(_) => None,
    }));
    changes.retain(|change| !change.path.starts_with(OUTPUTS));
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}

/// Writes the changes from `before` to `after` into a directory. Nothing is written if one of the paths was changed
/// there in another way, unless `force` is set.
pub async fn write_changes(
    before: &FileTree,
    after: &FileTree,
    directory: &Path,
    force: bool,
    blobs: &BlobStore,
) -> Result<Vec<TreeChange>, PullError> {
    let wanted = changes(before, after);
    let here = Scan::default().store(directory, blobs).await?;
    let here = FileTree::read(&here, blobs).await?;
    let at = |tree: &FileTree, path: &TreePath| tree.0.get(path).cloned();
    let conflicts = wanted.iter().map(|change| TreePath::new(&change.path)).filter(|path| {
        let now = at(&here, path);
        now != at(before, path) && now != at(after, path)
    });
    let conflicts: Vec<PathBuf> = conflicts.map(|path| path.to_path()).collect();
    if !conflicts.is_empty() && !force {
        return Err(PullError::Conflicts(conflicts));
    }
    // What is removed goes first, the deepest path first; a directory may become a file and the reverse.
    for change in wanted.iter().rev() {
        let path = TreePath::new(&change.path);
        let (now, then) = (at(&here, &path), at(after, &path));
        if now.as_ref().is_some_and(|now| kind(now) != then.as_ref().map_or(0, kind)) {
            remove(&place(directory, &path)?)?;
        }
    }
    for change in &wanted {
        let path = TreePath::new(&change.path);
        if let Some(entry) = after.0.get(&path) {
            write(&place(directory, &path)?, entry, blobs).await?;
        }
    }
    Ok(wanted)
}

fn kind(entry: &TreeEntry) -> u8 {
    match entry {
        TreeEntry::File { .. } => 1,
        TreeEntry::Link(_) => 2,
        TreeEntry::Directory { .. } => 3,
    }
}

fn remove(path: &Path) -> Result<(), EngineError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        // The user has put something else into the directory.
        Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|error| EngineError::file(path, &error)),
    }
}

async fn write(path: &Path, entry: &TreeEntry, blobs: &BlobStore) -> Result<(), EngineError> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |error: std::io::Error| EngineError::file(path, &error);
    match entry {
        TreeEntry::File { content, mode } => write_file(path.to_owned(), content, *mode, blobs).await,
        TreeEntry::Link(target) => {
            if fs::symlink_metadata(path).is_ok() {
                fs::remove_file(path).map_err(failed)?;
            }
            symlink(target.to_path(), path).map_err(failed)
        }
        TreeEntry::Directory { mode } => {
            fs::create_dir_all(path).map_err(failed)?;
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).map_err(failed)
        }
    }
}
