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

/// Ends the line of a journal that the user trusts although someone else created it.
const TRUSTED: &str = " trusted";

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
        name(journal)
            .is_some_and(|name| self.lines().iter().any(|line| *line == name || is_trusted(line, &name)))
    }

    /// Records a journal that was just created by the user's own run.
    pub(crate) fn add(&self, journal: &Path) -> io::Result<()> {
        self.append(journal, "")
    }

    /// Records a journal of someone else that the user trusts.
    pub(crate) fn trust(&self, journal: &Path) -> io::Result<()> {
        self.append(journal, TRUSTED)
    }

    /// Appends one line in a single write, since other processes may do the same.
    fn append(&self, journal: &Path, mark: &str) -> io::Result<()> {
        let (Some(list), Some(name)) = (&self.list, name(journal)) else { return Ok(()) };
        fs::create_dir_all(list.parent().unwrap_or(Path::new("/")))?;
        if fs::metadata(list).is_ok_and(|found| found.len() > MAX_BYTES / 2) {
            let lines = self.lines();
            self.write(&lines[lines.len() / 2..])?;
        }
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(list)?
            .write_all(format!("{name}{mark}\n").as_bytes())
    }

    /// Revokes the trust in a journal of someone else; returns whether it was trusted. The user's own journals stay
    /// theirs.
    pub(crate) fn revoke(&self, journal: &Path) -> io::Result<bool> {
        let Some(name) = name(journal) else { return Ok(false) };
        let lines = self.lines();
        let others: Vec<String> = lines.iter().filter(|line| !is_trusted(line, &name)).cloned().collect();
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

/// Whether a line of the list says that the user trusts the journal with this name.
fn is_trusted(line: &str, name: &str) -> bool {
    line.strip_suffix(TRUSTED) == Some(name)
}

/// Identity of a file: inode and creation time, or the inode alone if the file system has no creation time.
fn name(journal: &Path) -> Option<String> {
    let found = fs::metadata(journal).ok()?;
    let made = found.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    Some(format!("{} {}", found.ino(), made.map_or(0, |made| made.as_nanos())))
}

#[cfg(test)]
mod tests;
