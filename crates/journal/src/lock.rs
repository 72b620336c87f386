//! The lock that keeps a run to one process at a time. It is a kernel lock, so it ends with the process
//! however that ends. A forked child that does not exec must close the descriptor, or it keeps holding its
//! parent's lock. Whoever only asks whether a run is worked on takes a shared lock for a moment, so that two who ask do
//! not mistake each other for a worker.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{JournalError, RunId};

/// Attempts to take a lock that somebody holds, and the pause between them: one who only looks holds it for an instant.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(4);

/// Exclusive lock on a run, released on drop.
pub(crate) struct RunLock {
    file: File,
    path: PathBuf,
}

impl RunLock {
    /// Acquires the lock, or fails with the process id of the holder.
    pub(crate) fn take(journal: &Path, run: &RunId) -> Result<Self, JournalError> {
        let path = path_of(journal, run);
        let fail = |error: io::Error| {
            let error_with_path = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            JournalError::from_io(journal, &error_with_path)
        };
        std::fs::create_dir_all(journal.with_file_name("locks")).map_err(fail)?;
        let mut attempts = ATTEMPTS;
        // The holder removes its lock file. If that happened between our open and our lock, we locked an
        // unlinked file that others cannot see, so retry.
        for _ in 0..100 {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if attempts > 1 => {
                    attempts -= 1;
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    // Best effort: the pid only improves the error message.
                    let _ = file.read_to_string(&mut holder);
                    return Err(JournalError::Locked {
                        run: run.to_string(),
                        pid: holder.trim().parse().ok(),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
            if file.metadata().map_err(fail)?.nlink() > 0 {
                // Best effort: the pid only improves the error message of other processes.
                let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
                return Ok(Self { file, path });
            }
        }
        Err(JournalError::Locked { run: run.to_string(), pid: None })
    }

    /// Whether a process holds the lock. A file that cannot be opened or locked for another reason counts as free: the
    /// one who takes the lock then learns why.
    pub(crate) fn is_held(journal: &Path, run: &RunId) -> bool {
        let Ok(file) = File::open(path_of(journal, run)) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

fn path_of(journal: &Path, run: &RunId) -> PathBuf {
    journal.with_file_name("locks").join(format!("{run}.lock"))
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A lock file left behind is harmless: its lock ends with the descriptor.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}
