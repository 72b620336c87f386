//! The projects in which the user has run something, for the web page. Stored in the user's state folder, one directory per
//! line.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fusee::engine::tools::workspace::bounded_read;

/// Maximum size of the list in bytes; nothing is added to a longer one.
const MAX_BYTES: u64 = 256 << 10;

/// Directories in which this user has started runs, newest first.
pub(crate) struct ProjectList {
    /// The list's file; `None` without a home directory.
    file: Option<PathBuf>,
}

impl ProjectList {
    /// The list in this state folder.
    pub(crate) fn stored_in(states: Option<&Path>) -> Self {
        Self { file: states.map(|states| states.join("project-list")) }
    }

    /// Adds a project, unless it is listed. Appends one line in a single write, since other processes may do the same.
    pub(crate) fn add(&self, directory: &Path) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let is_full = fs::metadata(file).is_ok_and(|found| found.len() > MAX_BYTES);
        let line = directory.to_str().filter(|line| !line.contains('\n'));
        let Some(line) = line.filter(|_| !is_full && !self.read().iter().any(|known| known == directory))
        else {
            return Ok(());
        };
        fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        OpenOptions::new().create(true).append(true).open(file)?.write_all(format!("{line}\n").as_bytes())
    }

    /// All listed projects, whether they still exist or not.
    pub(crate) fn read(&self) -> Vec<PathBuf> {
        let text = self.file.as_ref().and_then(|file| bounded_read::read_text(file, MAX_BYTES * 2).ok());
        text.unwrap_or_default().lines().map(PathBuf::from).collect()
    }
}
