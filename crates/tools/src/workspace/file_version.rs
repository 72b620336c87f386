//! Versions of files as a call left them, stored with its result. A rewind takes the content of a turn from them;
//! `undo_backup` keeps what was there before the run.

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::Workspace;
use super::disk_state::DiskState;
use super::undo_backup::BackupContent;
use crate::redact::Secrets;
use crate::workspace::content::FileChange;

/// Maximum bytes of one stored version.
const MAX_FILE: u64 = 4 << 20;

/// Maximum bytes of all versions of a run, counted in this process.
const MAX_RUN: usize = 256 << 20;

/// Maximum number of versions stored with one call.
const MAX_FILES: usize = 5_000;

/// A file as a call left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// Path relative to the workspace, without symlinks on the way.
    pub path: String,
    /// Path by which the call named the file, if it goes through a symlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// `st_mode`: file type and permissions.
    pub mode: u32,
    /// Content, or its size if it is too large; for a symlink, its target.
    #[serde(flatten)]
    pub content: BackupContent,
}

impl FileVersion {
    /// Removes known secrets from the content, which is then not that of the file any more: secrets are never stored.
    pub fn withhold(&mut self, secrets: &Secrets) {
        if let BackupContent::Text(text) = &mut self.content {
            secrets.remove_from(text);
        }
    }
}

impl Workspace {
    /// Reads the files that a call changed, as they are now. A file that something else changed in the meantime is
    /// left out, and the content of those beyond the limits.
    #[must_use]
    pub fn versions_of(&self, changed: &[FileChange]) -> Box<[FileVersion]> {
        let mut stored = self.keeping.lock();
        let mut versions = Vec::new();
        for change in changed {
            let Some(hash) = change.after else { continue };
            let (state, real) = match self.disk_state(&change.path, MAX_FILE) {
                // Tools write through symlinks.
                Ok(DiskState::Link(target)) if !hash.is_of(&target) => {
                    let Some(real) = self.real_name(&change.path) else { continue };
                    (self.disk_state(&real, MAX_FILE), Some(real))
                }
                // A symlink is on the way.
                Ok(DiskState::Absent) => {
                    let Some(real) = self.real_name(&change.path) else { continue };
                    (self.disk_state(&real, MAX_FILE), Some(real))
                }
                state => (state, None),
            };
            let (mode, content) = match state {
                Ok(DiskState::File { content, mode }) if hash.is_of(&content) => {
                    if stored.version_bytes + content.len() > MAX_RUN || versions.len() >= MAX_FILES {
                        (mode, BackupContent::TooLarge(content.len() as u64))
                    } else {
                        stored.version_bytes += content.len();
                        (mode, BackupContent::new(content))
                    }
                }
                Ok(DiskState::Link(target)) if hash.is_of(&target) => {
                    (FileType::Symlink.as_raw_mode() | 0o777, BackupContent::new(target))
                }
                Ok(DiskState::Large { size, mode }) => (mode, BackupContent::TooLarge(size)),
                _ => continue,
            };
            let path = real.unwrap_or_else(|| change.path.clone());
            let via = (path != change.path).then(|| change.path.clone());
            versions.push(FileVersion { path, via, mode, content });
        }
        versions.into()
    }
}
