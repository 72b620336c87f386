//! Backups of files from before a run first changed them, stored with the intent of that change and restored
//! by `undo` (`restore`). For a tool call, that is the file it changes. For the first command, which may
//! change any file, it is every file that git could not restore.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::atomic_write::FileWrite;
use crate::workspace::diff::{CopyLimits, InitialSnapshot, WorkspaceTracker};

/// Maximum bytes of one backed-up file.
const MAX_FILE: usize = 4 << 20;
/// Maximum bytes of all backups of a run, counted in this process.
const MAX_RUN: usize = 64 << 20;

/// Before the first command: maximum bytes of one backed-up file.
const FIRST_FILE: u64 = 1 << 20;
/// Before the first command: maximum bytes of all backups together.
const FIRST_ALL: u64 = 16 << 20;
/// Before the first command: maximum number of backups.
const FIRST_FILES: usize = 5_000;

/// Backup of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// Path relative to the workspace.
    pub path: String,
    /// Permissions; if backed up before a command, also the file type.
    pub mode: u32,
    /// Content, or its size if it is too large.
    #[serde(flatten)]
    pub content: BackupContent,
}

/// Backed-up content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupContent {
    /// UTF-8 text.
    Text(String),
    /// Other content, hex-encoded.
    Bytes(String),
    /// Not backed up because of its size, which is this many bytes.
    TooLarge(u64),
}

impl BackupContent {
    /// Encodes content.
    #[must_use]
    pub fn new(content: Vec<u8>) -> Self {
        match String::from_utf8(content) {
            Ok(text) => Self::Text(text),
            Err(other) => {
                let digits = other.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 15]);
                Self::Bytes(digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect())
            }
        }
    }

    /// The content; `None` if it was not backed up.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Bytes(digits) => digits
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect(),
            Self::TooLarge(_) => None,
        }
    }
}

/// Files that need no further backup, and the bytes backed up so far.
#[derive(Debug, Default)]
pub(super) struct BackupState {
    known: HashSet<String>,
    bytes: usize,
    /// Bytes of the versions stored with results.
    pub(super) version_bytes: usize,
}

impl BackupState {
    /// Records that the run has changed this file.
    pub(super) fn changed(&mut self, path: &str) {
        if !self.known.contains(path) {
            self.known.insert(path.to_owned());
        }
    }
}

/// Backups taken with the initial snapshot of a workspace, for undoing the changes of commands.
#[derive(Debug, Default)]
pub struct InitialBackups {
    /// Files that git could not restore.
    pub kept: Vec<Backup>,
    /// Number of further files that were not backed up because of the limits.
    pub left: usize,
    /// Total bytes of those files.
    pub left_bytes: u64,
}

impl Workspace {
    /// Backs up the files that these changes modify for the first time in this run.
    pub(crate) fn back_up(&self, changes: &[FileWrite], most: u64) -> Vec<Backup> {
        let mut keeping = self.keeping.lock();
        let mut kept = Vec::new();
        for change in changes.iter().filter(|change| change.before.is_some()) {
            if keeping.known.contains(change.path.as_str()) {
                continue;
            }
            let Ok(Some(current)) = self.current(&change.path, most) else { continue };
            let length = current.content.len();
            let content = if length > MAX_FILE || keeping.bytes + length > MAX_RUN {
                BackupContent::TooLarge(length as u64)
            } else {
                keeping.bytes += length;
                BackupContent::new(current.content)
            };
            kept.push(Backup { path: change.path.as_str().to_owned(), mode: current.mode, content });
        }
        kept
    }

    /// Takes the initial snapshot of the workspace, with backups of files that git could not restore.
    pub(super) fn first_look(&self) -> Option<(WorkspaceTracker, InitialBackups)> {
        let mut keeping = self.keeping.lock();
        let room = CopyLimits {
            file_bytes: FIRST_FILE,
            bytes: FIRST_ALL.min((MAX_RUN - keeping.bytes) as u64),
            files: FIRST_FILES,
            except: &|path| keeping.known.contains(path),
        };
        let (tracker, InitialSnapshot { kept, left }) = WorkspaceTracker::begin(self.root(), &room)?;
        keeping.bytes += kept.iter().map(|(_, _, content)| content.len()).sum::<usize>();
        let keep = |(path, mode, content)| Backup { path, mode, content: BackupContent::new(content) };
        let kept = kept.into_iter().map(keep).collect();
        Some((tracker, InitialBackups { kept, left: left.0, left_bytes: left.1 }))
    }
}

#[cfg(test)]
mod tests;
