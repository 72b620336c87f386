//! Saves long output to a file that the model can page through: `.fusee/output/…` in the workspace.
//!
//! Only if the workspace already has a `.fusee` directory: creating one would turn it into a project. The
//! file is created when the output is longer than what is shown, and stops growing at its limit; the
//! directory keeps the newest files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

/// Maximum size of one file in bytes; the rest is not saved.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of files in the directory; the oldest are removed first.
const MAX_FILES: usize = 64;
/// Maximum number of file names tried for one call; after that, nothing is saved.
const MAX_NAMES: usize = 100;

/// Destination for long output.
#[derive(Debug)]
pub(super) struct Spool {
    folder: OwnedFd,
    stem: String,
    /// Output received before it was long enough for a file.
    early: Vec<u8>,
    /// A file is created once the output is longer than this many bytes.
    from: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting,
    Writing {
        file: BufWriter<File>,
        name: String,
        bytes: u64,
    },
    /// The file could not be created or written.
    Given,
}

/// A file with the complete output, or the beginning of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedOutput {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) whole: bool,
}

impl Spool {
    /// Creates a spool for a call, if the workspace has a `.fusee` directory.
    pub(super) fn create(workspace: &OwnedFd, call_id: &str, from: usize) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::openat(workspace, ".fusee", flags, Mode::empty()).ok()?;
        // Usually exists already.
        let _ = rustix::fs::mkdirat(&own, "output", Mode::from_raw_mode(0o700));
        let folder = rustix::fs::openat(&own, "output", flags, Mode::empty()).ok()?;
        let stem = blake3::hash(call_id.as_bytes()).to_hex()[..8].to_owned();
        Some(Self { folder, stem, early: Vec::new(), from, state: State::Waiting })
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if matches!(self.state, State::Waiting) {
            self.early.extend_from_slice(bytes);
            if self.early.len() > self.from {
                let early = std::mem::take(&mut self.early);
                self.state = self.begin().unwrap_or(State::Given);
                self.write(&early);
            }
            return;
        }
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let State::Writing { file, bytes: so_far, .. } = &mut self.state else { return };
        let room = usize::try_from(MAX_BYTES.saturating_sub(*so_far)).unwrap_or(usize::MAX).min(bytes.len());
        *so_far += bytes.len() as u64;
        if file.write_all(&bytes[..room]).is_err() {
            self.state = State::Given;
        }
    }

    fn begin(&self) -> Option<State> {
        make_room(&self.folder);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for number in 1..=MAX_NAMES {
            let name = if number == 1 {
                format!("{}.txt", self.stem)
            } else {
                format!("{}-{number}.txt", self.stem)
            };
            match rustix::fs::openat(&self.folder, &name, flags, Mode::from_raw_mode(0o600)) {
                Ok(file) => {
                    return Some(State::Writing { file: BufWriter::new(File::from(file)), name, bytes: 0 });
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// The saved file, if there is one.
    pub(super) fn finish(&mut self) -> Option<SavedOutput> {
        let State::Writing { file, name, bytes } = &mut self.state else { return None };
        file.flush().ok()?;
        let (path, bytes) = (format!(".fusee/output/{name}"), *bytes);
        Some(SavedOutput { path, bytes: bytes.min(MAX_BYTES), whole: bytes <= MAX_BYTES })
    }
}

impl SavedOutput {
    /// Describes the file for the model.
    pub(super) fn describe(&self) -> String {
        let what = if self.whole { "the whole output is" } else { "the beginning of the output is" };
        format!("{what} in {} ({} bytes); read_file and search_text can page it", self.path, self.bytes)
    }
}

/// Removes the oldest files if the directory is full.
fn make_room(folder: &OwnedFd) {
    let Ok(entries) = Dir::read_from(folder.as_fd()) else { return };
    let mut files: Vec<(i64, std::ffi::CString)> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_bytes().ends_with(b".txt"))
        .filter_map(|entry| {
            let status = rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some((status.st_mtime, entry.file_name().to_owned()))
        })
        .collect();
    files.sort();
    let over = (files.len() + 1).saturating_sub(MAX_FILES);
    for (_, name) in files.drain(..over) {
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
    }
}
