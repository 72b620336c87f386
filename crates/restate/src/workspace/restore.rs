//! Writing a stored workspace into an empty directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{FileTree, TreeEntry, TreePath};
use crate::{BlobHash, BlobStore, EngineError};

/// Files written at the same time.
const TOGETHER: usize = 8;

/// Writes a tree into a directory, which must be empty or not exist.
pub async fn restore(tree: &FileTree, directory: &Path, blobs: &BlobStore) -> Result<(), EngineError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| EngineError::file(&path, &error)
    };
    fs::create_dir_all(directory).map_err(failed(directory))?;
    // Directories come before what they contain, and get their modes last: one may be read-only.
    for (path, entry) in &tree.0 {
        if let TreeEntry::Directory { .. } = entry {
            let path = place(directory, path)?;
            fs::create_dir(&path).map_err(failed(&path))?;
        }
    }
    let mut files = Vec::new();
    for (path, entry) in &tree.0 {
        if let TreeEntry::File { content, mode } = entry {
            files.push(write_file(place(directory, path)?, content, *mode, blobs));
        }
    }
    stream::iter(files).buffer_unordered(TOGETHER).try_collect::<()>().await?;
    for (path, entry) in &tree.0 {
        if let TreeEntry::Link(target) = entry {
            let path = place(directory, path)?;
            symlink(target.to_path(), &path).map_err(failed(&path))?;
        }
    }
    for (path, entry) in tree.0.iter().rev() {
        if let TreeEntry::Directory { mode } = entry {
            let path = place(directory, path)?;
            fs::set_permissions(&path, Permissions::from_mode(*mode)).map_err(failed(&path))?;
        }
    }
    Ok(())
}

/// Writes one file with its mode.
pub(super) async fn write_file(
    path: PathBuf,
    content: &BlobHash,
    mode: u32,
    blobs: &BlobStore,
) -> Result<(), EngineError> {
    let content = blobs.get(content).await?;
    let place = path.clone();
    let writing = tokio::task::spawn_blocking(move || {
        fs::write(&place, &content)?;
        fs::set_permissions(&place, Permissions::from_mode(mode))
    });
    writing.await.unwrap_or_else(|lost| Err(lost.into())).map_err(|error| EngineError::file(&path, &error))
}

/// Where an entry is in a directory. A tree that somebody else wrote cannot lead out of it.
pub(super) fn place(directory: &Path, path: &TreePath) -> Result<PathBuf, EngineError> {
    let path = path.to_path();
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside && path.components().next().is_some() {
        Ok(directory.join(path))
    } else {
        Err(EngineError::Unreadable(format!("the path `{}` leads out of the workspace", path.display())))
    }
}
