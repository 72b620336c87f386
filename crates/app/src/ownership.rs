//! Which journals the user's own runs made here, kept in the user's state folder, where no project and no confined command
//! reaches.
//!
//! A run's settings say what it may do, and they are in its journal. One that came with a project was written by a stranger:
//! going on with its runs would give him a model, a key and commands outside of a sandbox. A journal is known by what no
//! copy of it has: the number of its file, and when that was made.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fusee_engine::tools::plain;

/// A longer list is begun anew with its newer half.
const MOST_BYTES: u64 = 1 << 20;

/// The journals that are the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// The list; none if there is no home, and then nothing can be told.
    list: Option<PathBuf>,
}

impl Ownership {
    /// What is kept in this state folder.
    pub(crate) fn kept_in(states: Option<PathBuf>) -> Self {
        Self { list: states.map(|states| states.join("own-runs")) }
    }

    /// Whether a journal may be taken for the user's own. Where no list was ever begun, as in a container whose home is
    /// new each time, nothing can be told.
    pub(crate) fn covers(&self, journal: &Path) -> bool {
        self.list.as_ref().is_none_or(|list| !list.exists()) || self.knows(journal)
    }

    /// Whether a journal was made here by the user's own runs.
    pub(crate) fn knows(&self, journal: &Path) -> bool {
        let Some(list) = &self.list else { return true };
        // Journals of directories that are no projects are in the state folder themselves.
        let states = list.parent().and_then(|states| states.canonicalize().ok());
        if states
            .zip(journal.canonicalize().ok())
            .is_some_and(|(states, journal)| journal.starts_with(states))
        {
            return true;
        }
        name(journal).is_some_and(|name| self.lines().contains(&name))
    }

    /// Takes note of a journal that was just made, or that the user trusts. One line, written at once: others may do the
    /// same.
    pub(crate) fn add(&self, journal: &Path) -> io::Result<()> {
        let (Some(list), Some(name)) = (&self.list, name(journal)) else { return Ok(()) };
        fs::create_dir_all(list.parent().unwrap_or(Path::new("/")))?;
        if fs::metadata(list).is_ok_and(|found| found.len() > MOST_BYTES / 2) {
            let lines = self.lines();
            self.write(&lines[lines.len() / 2..])?;
        }
        OpenOptions::new().create(true).append(true).open(list)?.write_all(format!("{name}\n").as_bytes())
    }

    /// Takes that back. Whether it was known.
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
        let text = self.list.as_ref().and_then(|list| plain::read_text(list, MOST_BYTES).ok());
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn write(&self, lines: &[String]) -> io::Result<()> {
        let Some(list) = &self.list else { return Ok(()) };
        let beside = list.with_extension(std::process::id().to_string());
        fs::write(&beside, lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        fs::rename(&beside, list)
    }
}

/// What no copy of a file has. Where a file system does not know when it was made, its number has to do.
fn name(journal: &Path) -> Option<String> {
    let found = fs::metadata(journal).ok()?;
    let made = found.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    Some(format!("{} {}", found.ino(), made.map_or(0, |made| made.as_nanos())))
}

#[cfg(test)]
mod tests;
