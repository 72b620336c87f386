//! A path as a model names it, and everything that can be wrong with one.

use std::fmt;
use std::io;
use std::path::{Component, Path};

use rustix::io::Errno;

/// A path inside the workspace: relative, `/` between components, no `.` and no `..`. The root is empty.
///
/// It is a name, not a promise: what stands there is decided when it is opened.
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

    /// A path that the file system itself gave, relative to the workspace. Names that are not UTF-8 have none.
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

/// Why a path cannot be used, in words for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// It leads out of the workspace, by its text.
    #[error(
        "`{given}` is outside the workspace. Use a path relative to the workspace root, such as `src/main.rs`; `.` is the root itself."
    )]
    Outside {
        /// What the model wrote.
        given: String,
    },
    /// It leads out of the workspace, by a symbolic link.
    #[error("`{path}` leads out of the workspace through a symbolic link; only what is inside can be used.")]
    LinkOutside {
        /// The path.
        path: WorkspacePath,
    },
    /// Nothing is there.
    #[error("`{path}` does not exist.")]
    Missing {
        /// The path.
        path: WorkspacePath,
    },
    /// A part of it is a file.
    #[error("`{path}` cannot exist: a part of this path is a file, not a directory.")]
    NotADirectory {
        /// The path.
        path: WorkspacePath,
    },
    /// It is a directory where a file is needed.
    #[error("`{path}` is a directory. Use list_dir to see what is in it.")]
    Directory {
        /// The path.
        path: WorkspacePath,
    },
    /// It is neither a file nor a directory.
    #[error("`{path}` is {kind}, not a file.")]
    Special {
        /// The path.
        path: WorkspacePath,
        /// What it is.
        kind: &'static str,
    },
    /// It is too large to be held in memory.
    #[error("`{path}` has {size} bytes; files over {most} bytes cannot be edited or written by this tool.")]
    TooLarge {
        /// The path.
        path: WorkspacePath,
        /// Its size.
        size: u64,
        /// The limit.
        most: u64,
    },
    /// Tools may not change it.
    #[error("`{path}` cannot be changed by tools: {reason}.")]
    Protected {
        /// The path.
        path: WorkspacePath,
        /// Why.
        reason: &'static str,
    },
    /// The system refused.
    #[error("`{path}`: {reason}.")]
    System {
        /// The path.
        path: WorkspacePath,
        /// The system's words.
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
            // No reader or writer at the other end, or nothing behind the device.
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
