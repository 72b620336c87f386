//! The whole of a long output in a file that the model can page: `.fusee/output/…` in the workspace.
//!
//! Only where the workspace has a `.fusee` already: making one would make it a project. A file begins when the output
//! is longer than what is shown, and stops growing at its bound; the folder keeps the newest.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

/// Bytes of one file; what comes after is not saved.
const MOST_BYTES: u64 = 16 << 20;
/// Files in the folder; the oldest go first.
const MOST_FILES: usize = 64;
/// Names tried for one call before it goes without.
const MOST_NAMES: usize = 100;

/// Where output goes once it is long.
#[derive(Debug)]
pub(super) struct Spool {
    folder: OwnedFd,
    stem: String,
    /// What came before there was a reason for a file.
    early: Vec<u8>,
    /// From how much on there is one.
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
    /// It could not be made or written.
    Given,
}

/// A file with the whole output, or the beginning of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) whole: bool,
}

impl Spool {
    /// A spool for a call, if the workspace has a place for it.
    pub(super) fn beneath(workspace: &OwnedFd, call_id: &str, from: usize) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::openat(workspace, ".fusee", flags, Mode::empty()).ok()?;
        // There already, most of the time.
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
        let room = usize::try_from(MOST_BYTES.saturating_sub(*so_far)).unwrap_or(usize::MAX).min(bytes.len());
        *so_far += bytes.len() as u64;
        if file.write_all(&bytes[..room]).is_err() {
            self.state = State::Given;
        }
    }

    fn begin(&self) -> Option<State> {
        make_room(&self.folder);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for number in 1..=MOST_NAMES {
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

    /// What was saved, if anything.
    pub(super) fn finish(&mut self) -> Option<Saved> {
        let State::Writing { file, name, bytes } = &mut self.state else { return None };
        file.flush().ok()?;
        let (path, bytes) = (format!(".fusee/output/{name}"), *bytes);
        Some(Saved { path, bytes: bytes.min(MOST_BYTES), whole: bytes <= MOST_BYTES })
    }
}

impl Saved {
    /// In words for the model.
    pub(super) fn words(&self) -> String {
        let what = if self.whole { "the whole output is" } else { "the beginning of the output is" };
        format!("{what} in {} ({} bytes); read_file and search_text can page it", self.path, self.bytes)
    }
}

/// Removes the oldest files of a full folder.
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
    let over = (files.len() + 1).saturating_sub(MOST_FILES);
    for (_, name) in files.drain(..over) {
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
    }
}
