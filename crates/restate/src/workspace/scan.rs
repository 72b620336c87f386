//! Storing a workspace repeatedly: only changed files are read.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{FileTree, TreeEntry, TreePath};
use crate::{BlobHash, BlobStore, EngineError};

/// Maximum number of files and directories.
const ENTRIES: usize = 200_000;

/// Maximum size of all files together.
const BYTES: u64 = 4 << 30;

/// Files read and stored at the same time.
const TOGETHER: usize = 8;

/// What is known of the files from the last time.
#[derive(Clone, Default)]
pub(crate) struct Scan {
    known: HashMap<PathBuf, (Stamp, BlobHash)>,
    /// The tree that was stored last, and its address: most entries of a run change no file.
    last: Option<(FileTree, BlobHash)>,
}

/// A file has changed if one of these has: size, inode, times of the last changes of content and inode.
type Stamp = (u64, u64, (i64, i64), (i64, i64));

/// A file to be stored.
struct FoundFile {
    path: PathBuf,
    mode: u32,
    stamp: Stamp,
}

impl Scan {
    /// Knows the files of a directory into which a tree has just been restored, so that they are not read again.
    pub(crate) async fn of_restored(directory: &Path, tree: &FileTree) -> Result<Self, EngineError> {
        let root = directory.to_owned();
        let walked = tokio::task::spawn_blocking(move || walk(&root)).await;
        let (_, files) = walked.map_err(|error| EngineError::file(directory, &error))??;
        let mut scan = Self::default();
        for file in files {
            if let Some(TreeEntry::File { content, .. }) = tree.0.get(&TreePath::new(&file.path)) {
                scan.known.insert(file.path, (file.stamp, content.clone()));
            }
        }
        Ok(scan)
    }

    /// Stores the files of a directory and returns the address of their tree.
    pub(crate) async fn store(
        &mut self,
        directory: &Path,
        blobs: &BlobStore,
    ) -> Result<BlobHash, EngineError> {
        let root = directory.to_owned();
        let walked = tokio::task::spawn_blocking(move || walk(&root)).await;
        let (mut tree, files) = walked.map_err(|error| EngineError::file(directory, &error))??;
        let known = std::mem::take(&mut self.known);
        let mut storing = Vec::with_capacity(files.len());
        for file in files {
            let hash = known.get(&file.path).filter(|(stamp, _)| *stamp == file.stamp);
            let hash = hash.map(|(_, hash)| hash.clone());
            storing.push(store_file(directory, file, hash, blobs));
        }
        let stored: Vec<_> = stream::iter(storing).buffer_unordered(TOGETHER).try_collect().await?;
        for (file, content) in stored.into_iter().flatten() {
            tree.insert(
                TreePath::new(&file.path),
                TreeEntry::File { content: content.clone(), mode: file.mode },
            );
            self.known.insert(file.path, (file.stamp, content));
        }
        let tree = FileTree(tree);
        if let Some((last, hash)) = &self.last
            && *last == tree
        {
            return Ok(hash.clone());
        }
        let hash = tree.write(blobs).await?;
        self.last = Some((tree, hash.clone()));
        Ok(hash)
    }
}

/// Stores a file unless its content is known; `None` if it was removed since it was found.
async fn store_file(
    directory: &Path,
    file: FoundFile,
    known: Option<BlobHash>,
    blobs: &BlobStore,
) -> Result<Option<(FoundFile, BlobHash)>, EngineError> {
    if let Some(hash) = known {
        return Ok(Some((file, hash)));
    }
    let path = directory.join(&file.path);
    let place = path.clone();
    let reading = tokio::task::spawn_blocking(move || fs::read(place));
    match reading.await.unwrap_or_else(|lost| Err(lost.into())) {
        Ok(content) => Ok(Some((file, blobs.put(content.into()).await?))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EngineError::file(&path, &error)),
    }
}

/// Finds everything in a directory. Links are not followed; sockets, pipes and devices are left out, and so is the
/// journal of the user.
fn walk(root: &Path) -> Result<(BTreeMap<TreePath, TreeEntry>, Vec<FoundFile>), EngineError> {
    let (mut tree, mut files, mut bytes) = (BTreeMap::new(), Vec::new(), 0);
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let full = root.join(&folder);
        for entry in fs::read_dir(&full).map_err(|error| EngineError::file(&full, &error))? {
            let name = entry.map_err(|error| EngineError::file(&full, &error))?.file_name();
            let path = folder.join(name);
            if is_own(&path) {
                continue;
            }
            let full = root.join(&path);
            let Ok(found) = fs::symlink_metadata(&full) else { continue };
            let mode = found.mode() & 0o7777;
            if found.is_dir() {
                tree.insert(TreePath::new(&path), TreeEntry::Directory { mode });
                open.push(path);
            } else if found.is_symlink() {
                let target = fs::read_link(&full).map_err(|error| EngineError::file(&full, &error))?;
                tree.insert(TreePath::new(&path), TreeEntry::Link(TreePath::new(&target)));
            } else if found.is_file() {
                bytes += found.len();
                let changed = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
                files.push(FoundFile { path, mode, stamp: (found.len(), found.ino(), changed.0, changed.1) });
            }
            if tree.len() + files.len() > ENTRIES || bytes > BYTES {
                let limit = format!("{ENTRIES} files or {} GiB", BYTES >> 30);
                return Err(EngineError::TooLarge { path: root.display().to_string(), limit });
            }
        }
    }
    Ok((tree, files))
}

/// Whether a path belongs to the journal, which stays where it is.
fn is_own(path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(".fusee") else { return false };
    let name = rest.to_string_lossy();
    name.starts_with("journal.db") || name == "locks"
}
