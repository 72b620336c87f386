//! What is at a path of the workspace, without following any symlink.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Mode, OFlags};

use super::{FileState, Workspace, read_bounded};
use crate::workspace::content::ContentHash;
use crate::workspace::file_status;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskState {
    /// Nothing, or something that can only be reached through a symlink.
    Absent,
    /// A regular file.
    File {
        /// All bytes; the size was checked before reading.
        content: Vec<u8>,
        /// `st_mode`: file type and permissions.
        mode: u32,
    },
    /// A regular file that is larger than the limit.
    Large {
        /// Its size in bytes.
        size: u64,
        /// `st_mode`: file type and permissions.
        mode: u32,
    },
    /// A symlink and its target.
    Link(Vec<u8>),
    /// A directory; its entries are not recorded.
    Directory,
    /// A pipe, socket or device.
    Special,
}

impl DiskState {
    /// Hash of the content, or of the target of a symlink; `None` if there is no content or it was not read.
    #[must_use]
    pub fn hash(&self) -> Option<ContentHash> {
        match self {
            Self::File { content, .. } => Some(ContentHash::of(content)),
            Self::Link(target) => Some(ContentHash::of(target)),
            _ => None,
        }
    }

    /// The state in the form that a restore expects; `None` if there is neither a file nor a symlink.
    #[must_use]
    pub fn file_state(&self) -> Option<FileState> {
        match self {
            Self::File { content, .. } => {
                let (name, git) = (ContentHash::of(content), ContentHash::git_blob_of(content));
                Some(FileState::File { content: name, other: [git, git] })
            }
            Self::Link(target) => Some(FileState::Link(String::from_utf8_lossy(target).into_owned())),
            _ => None,
        }
    }
}

impl Workspace {
    /// Reads what is at a path. The error says why that cannot be told.
    pub fn disk_state(&self, path: &str, most: u64) -> Result<DiskState, String> {
        let path = self.locate(path).map_err(|problem| problem.to_string())?;
        let Some(found) = self.stat_no_symlinks(&path) else { return Ok(DiskState::Absent) };
        let (size, mode) = (found.st_size as u64, file_status::mode(&found));
        let failed = |error: std::io::Error| format!("`{path}`: {error}");
        match file_status::file_type(mode) {
            FileType::Directory => Ok(DiskState::Directory),
            FileType::Symlink => {
                let parent = self.resolution.parent_no_symlinks(self.directory.as_fd(), path.as_path());
                let target = parent
                    .and_then(|parent| Ok(rustix::fs::readlinkat(parent, path.file_name(), Vec::new())?));
                target.map(|target| DiskState::Link(target.into_bytes())).map_err(failed)
            }
            FileType::RegularFile if size > most => Ok(DiskState::Large { size, mode }),
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let parent = self.resolution.parent_no_symlinks(self.directory.as_fd(), path.as_path());
                let content = parent.and_then(|parent| {
                    let file = rustix::fs::openat(parent, path.file_name(), flags, Mode::empty())?;
                    read_bounded(File::from(file), size, most)
                });
                match content.map_err(failed)? {
                    Some(content) => Ok(DiskState::File { content, mode }),
                    None => Ok(DiskState::Large { size, mode }),
                }
            }
            _ => Ok(DiskState::Special),
        }
    }
}
