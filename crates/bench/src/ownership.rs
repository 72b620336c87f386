//! Which process works on a job: a lock on its folder, which the kernel releases when the process ends.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::job_error::JobError;

/// The right to work on a job, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ownership {
    /// `None` where the file system has no locks.
    _folder: Option<File>,
}

/// Takes the right to work on the job in `folder`; fails while another process has it.
pub(crate) fn take(folder: &Path) -> Result<Ownership, JobError> {
    let opened =
        File::open(folder).map_err(|error| JobError::Failed(format!("{}: {error}", folder.display())))?;
    match opened.try_lock() {
        Ok(()) => Ok(Ownership { _folder: Some(opened) }),
        Err(TryLockError::Error(_)) => Ok(Ownership { _folder: None }),
        Err(TryLockError::WouldBlock) => Err(JobError::Usage(format!(
            "another process works on the job in {}; wait until it ends, or stop it",
            folder.display()
        ))),
    }
}

/// Whether a process works on the job in `folder`.
pub fn is_owned(folder: &Path) -> bool {
    // A shared lock, so that two who look at the same time do not see each other.
    File::open(folder).is_ok_and(|folder| matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
