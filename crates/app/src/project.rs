//! The project a command works in: its directory, its root, and where its journal is.
//!
//! The root is the nearest ancestor with `.fusee` or `.git`, and the journal is in its `.fusee`. Elsewhere the
//! journal is in the user's state folder, one file a directory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee_engine::journal::{Journal, JournalError, Options};

use crate::clock::SystemClock;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::ownership::Ownership;

#[cfg(test)]
mod tests;

/// What `.fusee` keeps out of version control: all that we write while working, this file included, so that a
/// run leaves nothing for `git status` to show. What people write there is theirs to commit.
const IGNORED: &str = "\
# Written by fusee while it works. Templates, prompts and agents in this folder are yours to commit.
/.gitignore
/journal.db*
/memory.*
/output/
/locks/
/logs/
";

/// Characters of a directory's name in the name of its folder under the state folder.
const READABLE: usize = 40;

/// A directory and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Where tools work.
    pub(crate) directory: PathBuf,
    /// The nearest ancestor with `.fusee` or `.git`.
    pub(crate) root: Option<PathBuf>,
    /// The journal's file, there or not.
    pub(crate) journal: PathBuf,
    /// Which journals are the user's own.
    ownership: Ownership,
}

impl Project {
    /// The project of the directory that was given, else of the current one.
    pub(crate) fn find(given: Option<&Path>, environment: &Environment) -> Result<Self, Failure> {
        let asked =
            given.map_or_else(|| environment.directory().clone(), |path| environment.directory().join(path));
        let directory = fs::canonicalize(&asked).map_err(|error| {
            Failure::usage(format!("the directory {} cannot be used: {error}", asked.display()))
        })?;
        if !directory.is_dir() {
            return Err(Failure::usage(format!("{} is not a directory", directory.display())));
        }
        let is_root = |path: &&Path| path.join(".fusee").is_dir() || path.join(".git").exists();
        let root = directory.ancestors().find(is_root).map(Path::to_owned);
        let journal = match &root {
            Some(root) => root.join(".fusee/journal.db"),
            None => {
                let states = environment.state_folder().ok_or_else(|| {
                    Failure::usage("there is no place for the journal: no project here, and HOME is not set")
                        .help("set HOME or XDG_STATE_HOME, or make this a project with `fusee init`")
                })?;
                states.join("projects").join(folder_name(&directory)).join("journal.db")
            }
        };
        Ok(Self { directory, root, journal, ownership: Ownership::kept_in(environment.state_folder()) })
    }

    /// Where the project's own files are: its root, or the directory itself.
    pub(crate) fn home(&self) -> &Path {
        self.root.as_deref().unwrap_or(&self.directory)
    }

    /// The name of its folder in the user's state folder.
    pub(crate) fn state_name(&self) -> String {
        folder_name(self.home())
    }

    /// Where what is known of the files below a directory is kept: beside the journal. A part of the project has an index of
    /// its own, since its paths are others.
    pub(crate) fn memory_file(&self, below: &Path) -> PathBuf {
        match below == self.home() {
            true => self.journal.with_file_name("memory.idx"),
            false => self.journal.with_file_name(format!("memory-{}.idx", folder_name(below))),
        }
    }

    /// The project's configuration file, there or not.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.home().join("fusee.toml")
    }

    /// Opens the journal to write, making it and its folder if need be.
    pub(crate) fn open_journal(&self, options: Options) -> Result<Journal, Failure> {
        let folder = self.journal.parent().unwrap_or(&self.directory);
        let open = |error: io::Error| {
            let (path, cause) = (self.journal.clone(), error.to_string());
            match error.kind() {
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    JournalError::ReadOnly { path, cause }
                }
                io::ErrorKind::StorageFull => JournalError::Full { path },
                _ => JournalError::Open { path, cause },
            }
        };
        self.check_place()?;
        fs::create_dir_all(folder).map_err(open)?;
        if self.root.is_some() {
            make_ignore_file(folder).map_err(open)?;
        }
        let journal = Journal::open(&self.journal, options, Arc::new(SystemClock))?;
        // One without runs says nothing yet, whoever made it; so none of ours stays unknown that was just made when its
        // process ended.
        if !self.ownership.knows(&self.journal) && journal.runs().is_ok_and(|runs| runs.is_empty()) {
            // Where that cannot be written down, the user is asked before he goes on with what it holds.
            let _ = self.ownership.add(&self.journal);
        }
        Ok(journal)
    }

    /// Refuses a journal that a link leads to: a project can hold one, and where it leads commands may write, or we would
    /// where nobody expects it.
    fn check_place(&self) -> Result<(), Failure> {
        let folder = self.journal.parent().filter(|_| self.root.is_some());
        let is_link = |path: &&Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        match folder.into_iter().chain([self.journal.as_path()]).find(is_link) {
            None => Ok(()),
            Some(link) => Err(Failure::usage(format!(
                "{} is a symbolic link: what a run writes down would not be where commands cannot reach it",
                link.display()
            ))
            .help("put a directory in its place; what it leads to can be copied there")),
        }
    }

    /// Refuses to act by a journal that somebody else wrote.
    pub(crate) fn check_owner(&self) -> Result<(), Failure> {
        if !self.journal.exists() || self.ownership.covers(&self.journal) {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "{} was not written here: it came with the project, or was copied. What its runs were allowed, and which server they talk to, is a stranger's word",
            self.journal.display()
        ))
        .help("`fusee runs` and `fusee show` tell what is in it; if it is yours, say `fusee trust` and try again"))
    }

    /// Which journals are the user's own.
    pub(crate) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Opens the journal to read; `None` where nothing was ever run.
    pub(crate) fn read_journal(&self) -> Result<Option<Journal>, Failure> {
        self.check_place()?;
        if !self.journal.exists() {
            return Ok(None);
        }
        Ok(Some(Journal::open_to_read(&self.journal, Arc::new(SystemClock))?))
    }

    /// The same for a command that needs a run to be there.
    pub(crate) fn journal_with_runs(&self) -> Result<Journal, Failure> {
        self.read_journal()?.ok_or_else(|| {
            Failure::usage(format!(
                "nothing was run here yet: there is no journal {}",
                self.journal.display()
            ))
            .help("start with `fusee run REQUEST`, or name another directory with -C")
        })
    }
}

/// Makes the ignore file of a `.fusee` folder unless there is one; says whether it did.
pub(crate) fn make_ignore_file(folder: &Path) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(IGNORED.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A name that people recognise and that no two directories share.
fn folder_name(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let readable: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .take(READABLE)
        .collect();
    let hash = blake3::hash(directory.as_os_str().as_encoded_bytes()).to_hex();
    format!("{}-{}", if readable.is_empty() { "root" } else { &readable }, &hash[..8])
}
