//! What a file held at some moment, by hash: the currency between a call's intent, the workspace's memory of
//! what a run has seen, and the settling of a call that a crash cut off.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The BLAKE3 hash of a file's whole content, written as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash(blake3::Hash);

impl ContentHash {
    /// The hash of these bytes.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content))
    }

    /// What git calls the content: it is known without reading the file.
    #[must_use]
    pub fn of_git_blob(id: [u8; 20]) -> Self {
        let mut bytes = [0; 32];
        bytes[12..].copy_from_slice(&id);
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// What git would call these bytes.
    #[must_use]
    pub fn named_by_git(content: &[u8]) -> Self {
        Self::of_git_blob(git_blob(content))
    }

    /// The hash itself.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// What [`as_bytes`](Self::as_bytes) gave.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// What git calls the content, if that is how it is known.
    #[must_use]
    pub fn git_blob(&self) -> Option<[u8; 20]> {
        match self.0.as_bytes() {
            // No content has a hash of so many zeros, so this is a name that git gave.
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, id @ ..] => Some(*id),
            _ => None,
        }
    }

    /// Whether these bytes are the content.
    #[must_use]
    pub fn is_of(&self, content: &[u8]) -> bool {
        match self.git_blob() {
            Some(id) => id == git_blob(content),
            None => *self == Self::of(content),
        }
    }
}

/// The name git gives to content.
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

/// A file's content that the run has now seen, in full or in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Relative to the workspace, `/` between components.
    pub path: String,
    /// Of the whole file, also when only a part was shown.
    pub hash: ContentHash,
}

/// A directory that was not there before, or is not there any more, by its path relative to the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectoryChange {
    /// It was made.
    Made(String),
    /// It was taken away.
    Removed(String),
}

/// One file before and after a change; `None` is a file that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the workspace, `/` between components.
    pub path: String,
    /// What it held before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
    /// What it holds after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ContentHash>,
    /// What kind of file it was before and its permissions, as the system writes them; told of what commands change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}
