//! The project a command works in: its directory, its root, and its journal.
//!
//! The root is the nearest ancestor with `.fusee` or `.git`, and the journal is in its `.fusee`. Without a
//! root the journal is in the user's state folder, one file per directory. A journal from before the root existed
//! stays in use until `fusee runs move` moves it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee::engine::journal::{Journal, JournalError, JournalOptions, Ownership};
use fusee::system::SystemClock;

use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::project::journal_ownership::JournalOwnership;
use crate::project::project_list::ProjectList;

pub(crate) mod file_mentions;
pub(crate) mod find_run;
pub(crate) mod fork_worktrees;
pub(crate) mod journal_ownership;
pub(crate) mod markdown_commands;
pub(crate) mod mcp_servers;
pub(crate) mod project_list;
pub(crate) mod saved_rules;
pub(crate) mod source_files;
pub(crate) mod template_source;
pub(crate) mod workflow_registry;

#[cfg(test)]
mod tests;

/// Ignore file of `.fusee`: everything fusee writes while working, including the file itself, so that a run
/// leaves nothing for `git status` to show. Files written by users are theirs to commit.
const IGNORED: &str = "\
# Files written by fusee. Templates, prompts and agents in this folder are yours to commit.
/.gitignore
/journal.db*
/memory.*
/output/
/aside/
/undone/
/locks/
/logs/
";

/// Mode of the journal's files.
const PRIVATE: u32 = 0o600;

/// Maximum number of characters of a directory's name in its folder name under the state folder.
const READABLE: usize = 40;

/// A directory and the project it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// The directory tools work in.
    pub(crate) directory: PathBuf,
    /// Path at which models and commands see the directory, where the sandbox can do that [default: its own].
    pub(crate) shown_at: Option<PathBuf>,
    /// The nearest ancestor with `.fusee` or `.git`.
    pub(crate) root: Option<PathBuf>,
    /// Path of the journal, which may not exist.
    pub(crate) journal: PathBuf,
    /// Path within the project that the journal would be moved to, while it is in the state folder.
    destination: Option<PathBuf>,
    ownership: JournalOwnership,
    /// The user's state folder.
    states: Option<PathBuf>,
    /// Where a journal is saved that is removed while a run writes to it.
    rescue: Option<PathBuf>,
}

impl Project {
    /// Finds the project of the given directory, or of the current one.
    pub(crate) fn find(given: Option<&Path>, environment: &Environment) -> Result<Self, CliError> {
        let asked =
            given.map_or_else(|| environment.directory().clone(), |path| environment.directory().join(path));
        let directory = fs::canonicalize(&asked)
            .map_err(|error| CliError::usage(format!("cannot use directory {}: {error}", asked.display())))?;
        if !directory.is_dir() {
            return Err(CliError::usage(format!("{} is not a directory", directory.display())));
        }
        let is_root = |path: &&Path| path.join(".fusee").is_dir() || path.join(".git").exists();
        let root = directory.ancestors().find(is_root).map(Path::to_owned);
        let states = environment.state_folder();
        let stored = |directory: &Path| {
            states
                .as_ref()
                .map(|states| states.join("projects").join(folder_name(directory)).join("journal.db"))
        };
        let (journal, destination) = match &root {
            Some(root) => {
                let own = root.join(".fusee/journal.db");
                let former = || {
                    let places = [root.as_path(), &directory].into_iter().filter_map(stored);
                    places.into_iter().find(|journal| journal.is_file())
                };
                match (!own.exists()).then(former).flatten() {
                    Some(former) => (former, Some(own)),
                    None => (own, None),
                }
            }
            None => {
                let journal = stored(&directory).ok_or_else(|| {
                    CliError::usage("no location for the journal: not in a project, and HOME is not set")
                        .help("set HOME or XDG_STATE_HOME, or create a project with `fusee init`")
                })?;
                (journal, None)
            }
        };
        let name = format!("journal-{}.db", std::process::id());
        let rescue =
            states.as_ref().map(|states| states.join("rescued").join(folder_name(&directory)).join(name));
        let ownership = JournalOwnership::stored_in(states.clone());
        Ok(Self { directory, shown_at: None, root, journal, destination, ownership, states, rescue })
    }

    /// The same project, with its runs working in another directory, which they see at `shown_at`.
    pub(crate) fn working_in(self, directory: &Path, shown_at: Option<PathBuf>) -> Result<Self, CliError> {
        let directory = fs::canonicalize(directory).map_err(|error| {
            CliError::usage(format!("cannot use directory {}: {error}", directory.display()))
        })?;
        Ok(Self { directory, shown_at, ..self })
    }

    /// The folder of the project's own files: its root, or the directory itself.
    pub(crate) fn home(&self) -> &Path {
        self.root.as_deref().unwrap_or(&self.directory)
    }

    /// The name of its folder in the user's state folder.
    pub(crate) fn state_name(&self) -> String {
        folder_name(self.home())
    }

    /// The file index of a directory, beside the journal. A subdirectory has its own index because its
    /// relative paths differ.
    pub(crate) fn memory_file(&self, below: &Path) -> PathBuf {
        match below == self.home() {
            true => self.journal.with_file_name("memory.idx"),
            false => self.journal.with_file_name(format!("memory-{}.idx", folder_name(below))),
        }
    }

    /// Path of the project's configuration file, which may not exist.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.home().join("fusee.toml")
    }

    /// Opens the journal for writing, creating it and its folder if necessary.
    pub(crate) fn open_journal(&self, options: JournalOptions) -> Result<Journal, CliError> {
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
        if self.root.is_some() && self.destination.is_none() {
            make_ignore_file(folder).map_err(open)?;
        }
        self.keep_private().map_err(open)?;
        let options = JournalOptions { rescue: self.rescue.clone(), owner: self.ownership.key(), ..options };
        let is_new = !self.journal.exists();
        let journal = Journal::open(&self.journal, options, Arc::new(SystemClock))?;
        if is_new {
            // Without this, the project is only missing in the web pages of other projects.
            let _ = self.list().add(self.home());
        }
        // A new journal is signed already. One without runs grants nothing, whoever created it, and one with
        // triggers is refused.
        if !self.ownership.covers_open(&journal) && journal.runs().is_ok_and(|runs| runs.is_empty()) {
            // If this cannot be saved, the user has to run `fusee trust` before resuming.
            let _ = self.ownership.add(&self.journal, Ownership::Created);
        }
        Ok(journal)
    }

    /// Makes a journal of an earlier version readable for its owner alone: it holds requests, answers and file
    /// contents.
    fn keep_private(&self) -> io::Result<()> {
        for path in self.journal_files() {
            let Ok(found) = path.symlink_metadata() else { continue };
            let is_ours = found.is_file() && found.uid() == rustix::process::getuid().as_raw();
            if is_ours && found.mode() & 0o077 != 0 {
                fs::set_permissions(&path, fs::Permissions::from_mode(PRIVATE))?;
            }
        }
        Ok(())
    }

    /// The journal and the files that SQLite keeps beside it.
    fn journal_files(&self) -> [PathBuf; 4] {
        ["", "-wal", "-shm", "-marks"].map(|end| {
            let mut name = self.journal.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        })
    }

    /// Where the runs are that are older than the project's `.fusee` or `.git`, and the command that moves them.
    pub(crate) fn former_notice(&self) -> Option<String> {
        self.destination.as_ref()?;
        Some(format!(
            "the runs are in {}, from before this directory had a .fusee or .git; `fusee runs move` moves them here",
            self.journal.display()
        ))
    }

    /// Moves the journal from the state folder into the project; returns its new path, or `None` if it is there.
    pub(crate) fn adopt_journal(&self) -> Result<Option<PathBuf>, CliError> {
        let Some(destination) = &self.destination else { return Ok(None) };
        let moved = self.move_journal(destination);
        moved
            .map_err(|error| CliError::failed(format!("cannot move {}: {error}", self.journal.display())))?;
        self.ownership.add(destination, Ownership::Created)?;
        Ok(Some(destination.clone()))
    }

    fn move_journal(&self, destination: &Path) -> io::Result<()> {
        let folder = destination.parent().unwrap_or(&self.directory);
        fs::create_dir_all(folder)?;
        make_ignore_file(folder)?;
        let moved = Self { journal: destination.to_owned(), ..self.clone() };
        // The database last: without it, nothing has moved.
        for (old, new) in self.journal_files().iter().zip(moved.journal_files()).rev() {
            if !old.exists() {
                continue;
            }
            if fs::rename(old, &new).is_err() {
                fs::copy(old, &new)?;
                fs::remove_file(old)?;
            }
        }
        Ok(())
    }

    /// Rejects a journal behind a symbolic link. A project can contain one, and its target may be writable by
    /// commands or be somewhere the user does not expect us to write.
    fn check_place(&self) -> Result<(), CliError> {
        let folder = self.journal.parent().filter(|_| self.root.is_some());
        let is_link = |path: &&Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        match folder.into_iter().chain([self.journal.as_path()]).find(is_link) {
            None => Ok(()),
            Some(link) => Err(CliError::usage(format!(
                "{} is a symbolic link, so commands might be able to change the journal",
                link.display()
            ))
            .help("replace it with a directory; you can copy its target there")),
        }
    }

    /// Rejects a journal that was not created by this user's runs.
    pub(crate) fn check_owner(&self) -> Result<(), CliError> {
        if !self.journal.exists() || self.ownership.covers(&self.journal) {
            return Ok(());
        }
        Err(CliError::usage(format!(
            "{} was not created by your own runs: it came with the project or was copied, so its permissions and servers cannot be trusted",
            self.journal.display()
        ))
        .help("inspect it with `fusee runs` and `fusee show`; if it is yours, run `fusee trust` and try again"))
    }

    /// The list of projects in which the user has run something.
    pub(crate) fn list(&self) -> ProjectList {
        ProjectList::stored_in(self.states.as_deref())
    }

    /// Whether the journal exists and is the user's own.
    pub(crate) fn has_own_runs(&self) -> bool {
        self.journal.exists() && self.ownership.covers(&self.journal)
    }

    /// Decides which journals are the user's own.
    pub(crate) fn ownership(&self) -> &JournalOwnership {
        &self.ownership
    }

    /// Opens the journal for reading; `None` if nothing has been run.
    pub(crate) fn read_journal(&self) -> Result<Option<Journal>, CliError> {
        self.check_place()?;
        if !self.journal.exists() {
            return Ok(None);
        }
        Ok(Some(Journal::open_to_read(&self.journal, Arc::new(SystemClock))?))
    }

    /// Opens the journal for reading; an error if nothing has been run.
    pub(crate) fn journal_with_runs(&self) -> Result<Journal, CliError> {
        self.read_journal()?.ok_or_else(|| {
            CliError::usage(format!("no runs here yet: {} does not exist", self.journal.display()))
                .help("start one with `fusee run REQUEST`, or select another directory with -C")
        })
    }
}

/// Creates the ignore file of a `.fusee` folder if missing; returns whether it did.
pub(crate) fn make_ignore_file(folder: &Path) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(IGNORED.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A readable folder name that is unique per directory.
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
