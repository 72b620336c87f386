//! The lock that keeps a run to one process at a time. It is a kernel lock, so it ends with the process
//! however that ends. A forked child that does not exec must close the descriptor, or it keeps holding its
//! parent's lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{JournalError, RunId};

/// Exclusive lock on a run, released on drop.
pub(crate) struct RunLock {
    file: File,
    path: PathBuf,
}

impl RunLock {
    /// Acquires the lock, or fails with the process id of the holder.
    pub(crate) fn take(journal: &Path, run: &RunId) -> Result<Self, JournalError> {
        let directory = journal.with_file_name("locks");
        let path = directory.join(format!("{run}.lock"));
        let fail = |error: io::Error| {
            let told = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            JournalError::from_io(journal, &told)
        };
        std::fs::create_dir_all(&directory).map_err(fail)?;
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
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A lock file left behind is harmless: its lock ends with the descriptor.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}
