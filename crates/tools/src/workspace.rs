//! The directory tree a run works in, and what the run has seen of it.

use std::path::{Path, PathBuf};

use crate::content::Seen;

/// A workspace that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace {path}", path = path.display())]
pub struct OpenError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// A directory, and what a run has seen in it.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace at `root`, which must be a directory.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        let root = root.canonicalize().map_err(|source| OpenError { path: root.to_owned(), source })?;
        Ok(Self { root })
    }

    /// Its directory, as an absolute path without symbolic links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes note of content that the run knows. Called for every `seen` and `changed` of a result, and again
    /// for those in the journal when a run is resumed.
    pub fn saw(&self, seen: &Seen) {
        let _ = seen;
    }
}
