//! Content hashes of files. They connect a call's intent, the workspace's record of what a run has seen, and
//! the settling of a call that a crash interrupted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// BLAKE3 hash of a file's entire content, serialized as 64 hex digits; or a git blob id in its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash(blake3::Hash);

impl ContentHash {
    /// Hashes the bytes with BLAKE3.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content))
    }

    /// Wraps a git blob id, which is known without reading the file. The leading 12 bytes are zero.
    #[must_use]
    pub fn of_git_blob(id: [u8; 20]) -> Self {
        let mut bytes = [0; 32];
        bytes[12..].copy_from_slice(&id);
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// Computes the git blob id of the bytes.
    #[must_use]
    pub fn git_blob_of(content: &[u8]) -> Self {
        Self::of_git_blob(git_blob(content))
    }

    /// The raw hash bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Restores a hash from the bytes of [`as_bytes`](Self::as_bytes).
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// The git blob id, if this hash holds one.
    #[must_use]
    pub fn git_blob(&self) -> Option<[u8; 20]> {
        match self.0.as_bytes() {
            // No BLAKE3 hash starts with 12 zero bytes in practice, so this is a git blob id.
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, id @ ..] => Some(*id),
            _ => None,
        }
    }

    /// Whether the bytes have this hash, for either kind of hash.
    #[must_use]
    pub fn is_of(&self, content: &[u8]) -> bool {
        match self.git_blob() {
            Some(id) => id == git_blob(content),
            None => *self == Self::of(content),
        }
    }
}

/// Computes git's blob id: SHA-1 over a header and the content.
fn git_blob(content: &[u8]) -> [u8; 20] {
    use sha1::Digest;
    let head = format!("blob {}\0", content.len());
    sha1::Sha1::new().chain_update(head).chain_update(content).finalize().into()
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ContentHash({})", &self.0.to_hex()[..12])
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for ContentHash {
    type Error = blake3::HexError;

    fn try_from(hex: String) -> Result<Self, Self::Error> {
        blake3::Hash::from_hex(hex).map(Self)
    }
}

/// A file version that the run has seen, entirely or in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenVersion {
    /// Path relative to the workspace, with `/` separators.
    pub path: String,
    /// Hash of the entire file, even if only a part was shown.
    pub hash: ContentHash,
}

/// A directory that was created or removed, by its path relative to the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectoryChange {
    /// The directory was created.
    Made(String),
    /// The directory was removed.
    Removed(String),
}

/// New permissions of a file whose content stayed the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChange {
    /// Path relative to the workspace, with `/` separators.
    pub path: String,
    /// Hash of the content.
    pub content: ContentHash,
    /// `st_mode` before (file type and permissions), if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
    /// `st_mode` now.
    pub after: u32,
}

/// A file before and after a change; `None` stands for a file that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the workspace, with `/` separators.
    pub path: String,
    /// Content hash before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
    /// Content hash after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ContentHash>,
    /// `st_mode` before the change (file type and permissions); only set for changes made by commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}
