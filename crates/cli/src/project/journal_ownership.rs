//! Which journals were created by the user's own runs. Stored in the user's state folder, out of reach of
//! projects and sandboxed commands.
//!
//! A run's permissions are stored in its journal. A journal that came with a project was written by someone
//! else: resuming its runs would hand them a model, an API key and unsandboxed commands. A journal is
//! identified by what a copy does not share: its inode number and creation time.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fusee::engine::tools::workspace::bounded_read;

/// Maximum size of the list in bytes; a longer one is cut to its newer half.
const MAX_BYTES: u64 = 1 << 20;

/// The list of journals created by the user's own runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalOwnership {
    /// The list's file; `None` without a home directory, and then no journal is known to be the user's.
    list: Option<PathBuf>,
}

impl JournalOwnership {
    /// The list in this state folder.
    pub(crate) fn stored_in(states: Option<PathBuf>) -> Self {
        Self { list: states.map(|states| states.join("own-runs")) }
    }

    /// Whether a journal was created by the user's own runs, or trusted. Only an entry proves it: a missing
    /// list, as in a fresh home directory, proves nothing.
    pub(crate) fn covers(&self, journal: &Path) -> bool {
        let Some(list) = &self.list else { return false };
        // Journals of directories without a project root are in the state folder itself.
        let states = list.parent().and_then(|states| states.canonicalize().ok());
        if states
            .zip(journal.canonicalize().ok())
            .is_some_and(|(states, journal)| journal.starts_with(states))
        {
            return true;
        }
        name(journal).is_some_and(|name| self.lines().contains(&name))
    }

    /// Records a journal that was just created, or that the user trusts. Appends one line in a single write,
    /// since other processes may do the same.
    pub(crate) fn add(&self, journal: &Path) -> io::Result<()> {
        let (Some(list), Some(name)) = (&self.list, name(journal)) else { return Ok(()) };
        fs::create_dir_all(list.parent().unwrap_or(Path::new("/")))?;
        if fs::metadata(list).is_ok_and(|found| found.len() > MAX_BYTES / 2) {
            let lines = self.lines();
            self.write(&lines[lines.len() / 2..])?;
        }
        OpenOptions::new().create(true).append(true).open(list)?.write_all(format!("{name}\n").as_bytes())
    }

    /// Removes a journal from the list; returns whether it was listed.
    pub(crate) fn remove(&self, journal: &Path) -> io::Result<bool> {
        let Some(name) = name(journal) else { return Ok(false) };
        let lines = self.lines();
        let others: Vec<String> = lines.iter().filter(|line| **line != name).cloned().collect();
        if others.len() == lines.len() {
            return Ok(false);
        }
        self.write(&others).map(|()| true)
    }

    fn lines(&self) -> Vec<String> {
        let text = self.list.as_ref().and_then(|list| bounded_read::read_text(list, MAX_BYTES).ok());
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn write(&self, lines: &[String]) -> io::Result<()> {
        let Some(list) = &self.list else { return Ok(()) };
        let beside = list.with_extension(std::process::id().to_string());
        fs::write(&beside, lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        fs::rename(&beside, list)
    }
}

/// Identity of a file: inode and creation time, or the inode alone if the file system has no creation time.
fn name(journal: &Path) -> Option<String> {
    let found = fs::metadata(journal).ok()?;
    let made = found.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    Some(format!("{} {}", found.ino(), made.map_or(0, |made| made.as_nanos())))
}

#[cfg(test)]
mod tests;
