//! The files of a workspace as a tree in the blob store: contents, modes, links and empty directories. A worker that
//! takes over a run restores exactly this state; `fusee pull` applies the changes to the user's directory.

mod pull;
mod restore;
mod scan;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{BlobHash, BlobStore, EngineError};

pub use pull::{PullError, TreeChange, changes, write_changes};
pub use restore::restore;
pub(crate) use scan::Scan;

/// Files of a workspace by their path, relative to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTree(pub(crate) BTreeMap<TreePath, TreeEntry>);

/// A relative path. One that is not UTF-8 is written as a NUL and its bytes in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct TreePath(String);

/// One file, link or directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TreeEntry {
    /// A regular file.
    File {
        /// Blob that holds the bytes of the file.
        content: BlobHash,
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link, with its target.
    Link(TreePath),
    /// A directory, recorded for its permission bits.
    Directory {
        /// Permission bits.
        mode: u32,
    },
}

impl TreePath {
    pub(crate) fn new(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self(text.to_owned()),
            None => Self(path.as_os_str().as_bytes().iter().fold("\0".to_owned(), |mut hex, byte| {
                hex.push_str(&format!("{byte:02x}"));
                hex
            })),
        }
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        match self.0.strip_prefix('\0') {
            None => PathBuf::from(&self.0),
            Some(hex) => {
                let digits: Vec<u8> = hex.bytes().filter_map(hex_digit).collect();
                let bytes = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
                PathBuf::from(OsString::from_vec(bytes))
            }
        }
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

impl FileTree {
    /// Reads a tree from the blob store.
    pub async fn read(hash: &BlobHash, blobs: &BlobStore) -> Result<Self, EngineError> {
        let unreadable = |error: serde_json::Error| EngineError::Unreadable(error.to_string());
        serde_json::from_slice(&blobs.get(hash).await?).map_err(unreadable)
    }

    async fn write(&self, blobs: &BlobStore) -> Result<BlobHash, EngineError> {
        // Cannot fail: paths and entries are strings and numbers.
        blobs.put(serde_json::to_vec(self).unwrap_or_default().into()).await
    }
}

/// Stores the files of a directory and returns the address of their tree.
pub async fn store(directory: &Path, blobs: &BlobStore) -> Result<BlobHash, EngineError> {
    Scan::default().store(directory, blobs).await
}

#[cfg(test)]
mod tests;
