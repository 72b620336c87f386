//! Paths inside the workspace, and the problems they can have.

use std::fmt;
use std::io;
use std::path::{Component, Path};

use rustix::io::Errno;

/// A path inside the workspace: relative, `/` separators, no `.` and no `..`. The root is empty.
///
/// It is only a name; the file it refers to is determined when it is opened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    pub(super) fn parse(given: &str, roots: &[&Path]) -> Result<Self, PathProblem> {
        let outside = || PathProblem::Outside { given: given.to_owned() };
        if given.contains('\0') {
            return Err(outside());
        }
        let path = Path::new(given.trim_end_matches('\n'));
        let relative = if path.is_absolute() {
            roots.iter().find_map(|root| path.strip_prefix(root).ok()).ok_or_else(outside)?
        } else {
            path
        };
        let mut components: Vec<&str> = Vec::new();
        for component in relative.components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) => components.push(name.to_str().ok_or_else(outside)?),
                Component::ParentDir => {
                    components.pop().ok_or_else(outside)?;
                }
                Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(Self(components.join("/")))
    }

    /// A relative path reported by the file system; `None` if it is not UTF-8.
    pub(crate) fn from_walk(relative: &Path) -> Option<Self> {
        relative.to_str().map(|text| Self(text.to_owned()))
    }

    /// Relative to the workspace; empty for its root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Relative to the workspace; `.` for its root.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        if self.0.is_empty() { Path::new(".") } else { Path::new(&self.0) }
    }

    pub(crate) fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default())
    }

    pub(crate) fn join(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}/{name}", self.0)) }
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

/// Reason why a path cannot be used, worded for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// The path text leads out of the workspace.
    #[error(
        "`{given}` is outside the workspace. Use a path relative to the workspace root, such as `src/main.rs`; `.` is the root itself."
    )]
    Outside {
        /// Path as written by the model.
        given: String,
    },
    /// A symlink leads out of the workspace.
    #[error("`{path}` leads out of the workspace through a symbolic link; only what is inside can be used.")]
    LinkOutside {
        /// Path relative to the workspace.
        path: WorkspacePath,
    },
    /// The path does not exist.
    #[error("`{path}` does not exist.")]
    Missing {
        /// Path relative to the workspace.
        path: WorkspacePath,
    },
    /// A parent component is a file.
    #[error("`{path}` cannot exist: a part of this path is a file, not a directory.")]
    NotADirectory {
        /// Path relative to the workspace.
        path: WorkspacePath,
    },
    /// The path is a directory where a file is needed.
    #[error("`{path}` is a directory. Use list_dir to see what is in it.")]
    Directory {
        /// Path relative to the workspace.
        path: WorkspacePath,
    },
    /// The path is neither a file nor a directory.
    #[error("`{path}` is {kind}, not a file.")]
    Special {
        /// Path relative to the workspace.
        path: WorkspacePath,
        /// File type in words.
        kind: &'static str,
    },
    /// The file is too large to be held in memory.
    #[error("`{path}` has {size} bytes; files over {most} bytes cannot be edited or written by this tool.")]
    TooLarge {
        /// Path relative to the workspace.
        path: WorkspacePath,
        /// Size in bytes.
        size: u64,
        /// Limit in bytes.
        most: u64,
    },
    /// Tools may not change the path.
    #[error("`{path}` cannot be changed by tools: {reason}.")]
    Protected {
        /// Path relative to the workspace.
        path: WorkspacePath,
        /// Reason for the protection.
        reason: &'static str,
    },
    /// The operating system returned an error.
    #[error("`{path}`: {reason}.")]
    System {
        /// Path relative to the workspace.
        path: WorkspacePath,
        /// Error message.
        reason: String,
    },
}

impl PathProblem {
    pub(super) fn from_io(path: &WorkspacePath, error: &io::Error) -> Self {
        let path = path.clone();
        match Errno::from_io_error(error) {
            Some(Errno::NOENT) => Self::Missing { path },
            Some(Errno::NOTDIR) => Self::NotADirectory { path },
            Some(Errno::ISDIR) => Self::Directory { path },
            Some(Errno::XDEV) => Self::LinkOutside { path },
            // A pipe or socket without a peer, or a device that does not exist.
            Some(Errno::NXIO | Errno::NODEV) => Self::Special { path, kind: "a socket or device" },
            Some(Errno::LOOP) => {
                Self::System { path, reason: "too many symbolic links on the way".to_owned() }
            }
            Some(Errno::ACCESS | Errno::PERM) => {
                Self::System { path, reason: "permission denied".to_owned() }
            }
            Some(Errno::NOSPC) => Self::System { path, reason: "no space left on the disk".to_owned() },
            Some(Errno::ROFS) => Self::System { path, reason: "the file system is read-only".to_owned() },
            Some(Errno::NAMETOOLONG) => Self::System { path, reason: "the name is too long".to_owned() },
            _ => Self::System { path, reason: error.to_string() },
        }
    }
}
