//! Reads the current state of a path and restores an earlier one: files and symlinks, all or none. `replace`
//! writes the files; symlinks are removed before and created after.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType};

use super::atomic_write::{FileWrite, protection};
use super::{Workspace, WorkspacePath};
use crate::workspace::content::ContentHash;
use crate::workspace::diff::large_name;
use crate::workspace::file_status;

/// State of an existing path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// A regular file, with every hash that may identify its content.
    File {
        /// BLAKE3 hash of the content.
        content: ContentHash,
        /// Git blob id, and the surrogate hash for files that are too large to read.
        other: [ContentHash; 2],
    },
    /// A symlink and its target.
    Link(String),
}

impl FileState {
    /// Whether the state matches the hash.
    #[must_use]
    pub fn is(&self, name: ContentHash) -> bool {
        match self {
            Self::File { content, other } => *content == name || other.contains(&name),
            Self::Link(target) => name.is_of(target.as_bytes()),
        }
    }
}

/// A path to restore; `None` in `now` or `before` means that nothing exists there.
#[derive(Clone, Debug)]
pub struct RestoreStep {
    /// Path relative to the workspace.
    pub path: String,
    /// State the run left.
    pub now: Option<FileState>,
    /// Previous content and mode. If the mode is that of a symlink, the content is its target.
    pub before: Option<(Vec<u8>, u32)>,
}

impl RestoreStep {
    /// Target of the previous symlink, if it was one.
    fn link_before(&self) -> Option<&[u8]> {
        let (content, mode) = self.before.as_ref()?;
        (file_status::file_type(*mode) == FileType::Symlink).then_some(content)
    }

    /// The change for `replace`; `None` if only symlinks are involved.
    fn change(&self, path: WorkspacePath) -> Option<FileWrite> {
        let before = match &self.now {
            Some(FileState::File { content, .. }) => Some(*content),
            Some(FileState::Link(_)) | None => None,
        };
        let (after, mode) = if self.link_before().is_some() {
            (None, None)
        } else {
            self.before.clone().map(|(content, mode)| (content, mode & 0o7777)).unzip()
        };
        (before.is_some() || after.is_some()).then_some(FileWrite { path, before, after, mode })
    }
}

impl Workspace {
    /// Current state of a path, without following a symlink; `None` if nothing exists there.
    pub fn file_state(&self, path: &str, most: u64) -> Result<Option<FileState>, String> {
        let path = self.locate(path).map_err(|problem| problem.to_string())?;
        match self.link_text(&path) {
            Some(target) => Ok(Some(FileState::Link(target))),
            None => self.state_at_end(&path, most),
        }
    }

    /// Like [`Self::file_state`], but follows symlinks.
    pub fn file_state_behind_link(&self, path: &str, most: u64) -> Result<Option<FileState>, String> {
        let path = self.locate(path).map_err(|problem| problem.to_string())?;
        self.state_at_end(&path, most)
    }

    fn state_at_end(&self, path: &WorkspacePath, most: u64) -> Result<Option<FileState>, String> {
        let slot = self.slot(path).map_err(|problem| problem.to_string())?;
        let found = slot.read(path, most).map_err(|problem| problem.to_string())?;
        Ok(found.map(|(content, status)| {
            let mtime = file_status::modified_ns(&status);
            let large = large_name(status.st_size as u64, mtime, status.st_ino);
            FileState::File {
                other: [ContentHash::git_blob_of(&content), large],
                content: ContentHash::of(&content),
            }
        }))
    }

    /// The path with all symlinks resolved.
    #[must_use]
    pub fn real_name(&self, path: &str) -> Option<String> {
        let path = self.locate(path).ok()?;
        let end = super::confined_open::walk(self.directory(), path.as_path()).ok()?;
        let names: Option<Vec<&str>> = end.components().map(|name| name.to_str()).collect();
        Some(names?.join("/"))
    }

    /// Restores files and symlinks, all or none.
    pub fn restore(&self, files: &[RestoreStep], token: &str, most: u64) -> Result<(), String> {
        let place = |file: &RestoreStep| self.locate(&file.path).map_err(|problem| problem.to_string());
        let mut changes = Vec::new();
        for file in files {
            changes.extend(file.change(place(file)?));
        }
        let mut taken: Vec<(WorkspacePath, &[u8])> = Vec::new();
        let result = (|| {
            for file in files {
                if let Some(FileState::Link(target)) = &file.now {
                    let path = place(file)?;
                    self.take_link(&path, target)?;
                    taken.push((path, target.as_bytes()));
                }
            }
            self.change(&changes, token, most).map_err(|error| error.to_string())
        })();
        if let Err(problem) = result {
            // A symlink that cannot be restored shows up in this error, or in that of the next attempt.
            taken.iter().for_each(|(path, target)| drop(self.make_link(path, target)));
            return Err(problem);
        }
        let mut problems = Vec::new();
        for file in files {
            if let Some(target) = file.link_before() {
                problems.extend(self.make_link(&place(file)?, target).err());
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(format!("the files are put back, but links could not be made again: {}", problems.join("; ")))
    }

    /// Removes a symlink if it has the expected target.
    fn take_link(&self, path: &WorkspacePath, target: &str) -> Result<(), String> {
        if let Some(reason) = protection(path.as_path().iter()) {
            return Err(format!("`{path}` cannot be changed: {reason}"));
        }
        if self.link_text(path).as_deref() != Some(target) {
            return Err(format!("`{path}` was changed by something else meanwhile"));
        }
        let parent = self.resolution.parent_no_symlinks(self.directory.as_fd(), path.as_path());
        let taken =
            parent.and_then(|parent| Ok(rustix::fs::unlinkat(parent, path.file_name(), AtFlags::empty())?));
        taken.map_err(|error| format!("`{path}`: {error}"))
    }

    fn make_link(&self, path: &WorkspacePath, target: &[u8]) -> Result<(), String> {
        let mut slot = self.slot(path).map_err(|problem| problem.to_string())?;
        let made = slot.end.make_directories(self.directory()).and_then(|()| {
            Ok(rustix::fs::symlinkat(target, slot.end.directory(self.directory()), path.file_name())?)
        });
        made.map_err(|error| format!("`{path}`: {error}"))
    }
}

#[cfg(test)]
mod tests;
