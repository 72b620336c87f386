//! One process works on a run at a time. The lock is the kernel's, so it ends with the process however that ends;
//! a child that is forked and does not exec must close the descriptor, or it holds the lock in its parent's place.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{JournalError, RunId};

/// Held while a process works on a run.
pub(crate) struct RunLock {
    file: File,
    path: PathBuf,
}

impl RunLock {
    /// Takes the lock or says who has it.
    pub(crate) fn take(journal: &Path, run: &RunId) -> Result<Self, JournalError> {
        let directory = journal.with_file_name("locks");
        let path = directory.join(format!("{run}.lock"));
        let fail = |error: io::Error| {
            let told = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            JournalError::from_io(journal, &told)
        };
        std::fs::create_dir_all(&directory).map_err(fail)?;
        // A lock file is removed by its holder; one that was removed between our open and our lock is not the
        // file that others see, so look again.
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
                    // Only for the message: without it the error is as true.
                    let _ = file.read_to_string(&mut holder);
                    return Err(JournalError::Locked {
                        run: run.to_string(),
                        pid: holder.trim().parse().ok(),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
            if file.metadata().map_err(fail)?.nlink() > 0 {
                // Only for the message of others: without it the lock is as good.
                let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
                return Ok(Self { file, path });
            }
        }
        Err(JournalError::Locked { run: run.to_string(), pid: None })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Left behind, the file is harmless: its lock ends with the descriptor.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}
