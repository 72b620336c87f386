//! Which journals are the user's own. The proof is in the journal, made with a key in the user's state folder
//! that neither projects nor sandboxed commands can read.
//!
//! A run's permissions are stored in its journal. A journal that came with a project was written by someone
//! else: resuming its runs would hand them a model, an API key and unsandboxed commands.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use fusee::engine::journal::{Journal, JournalError, OwnerKey, Ownership};
use fusee::engine::tools::workspace::bounded_read;
use fusee::system::SystemClock;

/// Maximum size in bytes of the list that earlier versions kept.
const MAX_BYTES: u64 = 1 << 20;

/// Permission bits that nobody but the owner may have on the key.
const OTHERS: u32 = 0o077;

/// Decides which journals are the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalOwnership {
    /// The user's state folder; `None` without a home directory, and then no journal is the user's.
    states: Option<PathBuf>,
}

impl JournalOwnership {
    /// With the key in this state folder.
    pub(crate) fn stored_in(states: Option<PathBuf>) -> Self {
        Self { states }
    }

    /// The user's key, created on first use; `None` if it cannot be created or others can read it.
    pub(crate) fn key(&self) -> Option<OwnerKey> {
        let states = self.states.as_ref()?;
        let path = states.join("journal-key");
        match read_key(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_key(states, &path).and_then(|()| read_key(&path)).ok()
            }
            found => found.ok(),
        }
    }

    /// Whether a journal was created by the user's own runs, or trusted. Only a proof counts: in a fresh home
    /// directory, no journal is the user's.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.is_in_state_folder(path)
            || Journal::open_to_read(path, Arc::new(SystemClock))
                .is_ok_and(|journal| self.proof(&journal).is_some() || self.adopt(path))
    }

    /// Like [`Self::covers`], for a journal that is open.
    pub(crate) fn covers_open(&self, journal: &Journal) -> bool {
        self.is_in_state_folder(journal.path()) || self.proof(journal).is_some() || self.adopt(journal.path())
    }

    /// Signs a journal.
    pub(crate) fn add(&self, path: &Path, ownership: Ownership) -> Result<(), JournalError> {
        match self.key() {
            Some(key) => Journal::sign(path, &key, ownership),
            None => Err(JournalError::Open {
                path: path.to_owned(),
                cause: "your key, journal-key in the state folder, cannot be used".to_owned(),
            }),
        }
    }

    /// Takes back the trust in a journal that came from elsewhere; returns whether it was trusted. The user's own
    /// journals stay theirs.
    pub(crate) fn revoke(&self, path: &Path) -> Result<bool, JournalError> {
        let is_trusted = Journal::open_to_read(path, Arc::new(SystemClock))
            .is_ok_and(|journal| self.proof(&journal) == Some(Ownership::Trusted));
        if is_trusted { Journal::remove_signature(path).map(|()| true) } else { Ok(false) }
    }

    fn proof(&self, journal: &Journal) -> Option<Ownership> {
        self.key().and_then(|key| journal.ownership(&key))
    }

    /// Journals of directories without a project root are in the state folder itself.
    fn is_in_state_folder(&self, journal: &Path) -> bool {
        let states = self.states.as_ref().and_then(|states| states.canonicalize().ok());
        states.zip(journal.canonicalize().ok()).is_some_and(|(states, journal)| journal.starts_with(states))
    }

    /// Signs a journal that an earlier version listed as the user's own; returns whether it did. A journal
    /// is listed by what a copy does not share: its inode number and creation time.
    fn adopt(&self, journal: &Path) -> bool {
        let Some(list) = self.states.as_ref().map(|states| states.join("own-runs")) else { return false };
        let listed = bounded_read::read_text(&list, MAX_BYTES).unwrap_or_default();
        let name = file_identity(journal);
        let is_listed = name.is_some_and(|name| listed.lines().any(|line| line == name));
        // A read-only journal cannot be signed, and stays owned by the list.
        is_listed
            && self.add(journal, Ownership::Created).map_or_else(|error| is_read_only(&error), |()| true)
    }
}

fn is_read_only(error: &JournalError) -> bool {
    matches!(error, JournalError::ReadOnly { .. })
}

/// Reads the key. It must be a regular file of this user that nobody else can read.
fn read_key(path: &Path) -> io::Result<OwnerKey> {
    let is_regular = fs::symlink_metadata(path)?.is_file();
    if !is_regular {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut file = fs::File::open(path)?;
    let found = file.metadata()?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & OTHERS != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut key = [0; OwnerKey::LENGTH];
    file.read_exact(&mut key)?;
    Ok(OwnerKey::new(key))
}

/// Creates the key under a temporary name and links it into place, so that of two processes one wins and a
/// kill leaves no partial key.
fn create_key(states: &Path, path: &Path) -> io::Result<()> {
    let mut key = [0; OwnerKey::LENGTH];
    fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    fs::create_dir_all(states)?;
    let beside = path.with_extension(std::process::id().to_string());
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(&key)?;
    file.sync_all()?;
    let linked = match fs::hard_link(&beside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // A file system without hard links.
        Err(_) => return fs::rename(&beside, path),
        Ok(()) => Ok(()),
    };
    fs::remove_file(&beside).and(linked)
}

/// Identity of a file: inode and creation time, or the inode alone if the file system has no creation time.
fn file_identity(journal: &Path) -> Option<String> {
    let found = fs::metadata(journal).ok()?;
    let made = found.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    Some(format!("{} {}", found.ino(), made.map_or(0, |made| made.as_nanos())))
}

#[cfg(test)]
mod tests;
