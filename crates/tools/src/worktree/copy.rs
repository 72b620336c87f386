//! The files of a working copy: copied on several threads, by reflink where the file system can.
//!
//! Most of the time goes into creating files, in the kernel; what is here only keeps the number of system calls low.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::workspace_copy;

/// Maximum number of files, and of bytes that are not shared with the original.
const MAX_FILES: usize = 1_000_000;
const MAX_BYTES: u64 = 16 << 30;

/// Maximum number of threads that copy.
const MAX_THREADS: usize = 4;

/// Files up to this size are copied by one read and one write.
const SMALL_BYTES: usize = 256 << 10;

/// A regular file that was copied, and did not change while it was.
pub(super) struct Copied<'p> {
    /// Relative to the root of the copy.
    pub(super) path: &'p Path,
    pub(super) original: Stamp,
    pub(super) copy: Stamp,
    /// Modification time of both, in seconds and nanoseconds.
    pub(super) modified: (i64, i64),
}

/// The fields by which git tells whether a file may have changed: numbers 0 to 5 and 7 to 9 of an entry of its index.
#[derive(Clone, Copy)]
pub(super) struct Stamp([u32; 9]);

impl Stamp {
    #[expect(clippy::cast_possible_truncation, reason = "git's index holds the lower 32 bits")]
    #[expect(clippy::cast_sign_loss, reason = "times before 1970 are stored in the same way")]
    fn new(found: &Stat) -> Self {
        Self([
            found.st_ctime as u32,
            found.st_ctime_nsec as u32,
            found.st_mtime as u32,
            found.st_mtime_nsec as u32,
            found.st_dev as u32,
            found.st_ino as u32,
            found.st_uid,
            found.st_gid,
            found.st_size as u32,
        ])
    }

    /// The values, each with the number of its field in an entry.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, u32)> {
        [0, 1, 2, 3, 4, 5, 7, 8, 9].into_iter().zip(self.0)
    }
}

/// Copies files and symlinks, with the directories they are in. What is neither is left out, as are files that are gone.
pub(super) fn files<'p>(from: &Path, to: &Path, files: &'p [PathBuf]) -> io::Result<Vec<Copied<'p>>> {
    if files.len() > MAX_FILES {
        return Err(io::Error::other(format!("the project has more than {MAX_FILES} files")));
    }
    let mut directories: BTreeSet<&Path> = BTreeSet::new();
    for file in files {
        // The ancestors of a directory that is there already are there too.
        file.ancestors().skip(1).take_while(|folder| directories.insert(folder)).for_each(drop);
    }
    let mut made: HashSet<&Path> = HashSet::new();
    for directory in directories {
        let is_root = directory.as_os_str().is_empty();
        let is_directory = || from.join(directory).symlink_metadata().is_ok_and(|found| found.is_dir());
        let is_below = directory.parent().is_none_or(|parent| made.contains(parent));
        // Tracked by git, and deleted or a link here.
        if !is_below || !(is_root || is_directory()) {
            continue;
        }
        if !is_root {
            std::fs::create_dir_all(to.join(directory))?;
        }
        made.insert(directory);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = files.len().div_ceil(threads).max(1);
    let shared = Shared {
        directories: made,
        bytes: AtomicU64::new(MAX_BYTES),
        reflinks: AtomicU8::new(Reflinks::Untried as u8),
    };
    std::thread::scope(|scope| {
        let parts =
            files.chunks(share).map(|part| scope.spawn(|| Copier::new(from, to, &shared).copy_all(part)));
        let parts: Vec<_> = parts.collect();
        let mut copied = Vec::with_capacity(files.len());
        for part in parts {
            let panicked = |_| Err(io::Error::other("a thread that copies files panicked"));
            copied.append(&mut part.join().unwrap_or_else(panicked)?);
        }
        Ok(copied)
    })
}

/// Whether blocks can be shared between the original and the copy.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Reflinks {
    Untried,
    Work,
    Missing,
}

/// What all threads share.
struct Shared<'a> {
    /// The directories of the copy.
    directories: HashSet<&'a Path>,
    /// Bytes that may still be copied.
    bytes: AtomicU64,
    /// One of [`Reflinks`].
    reflinks: AtomicU8,
}

/// One thread's work. Paths are looked up below the current directory, which saves the kernel most of each path.
struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    shared: &'a Shared<'a>,
    /// The directory of the last file, there and here.
    current: Option<(&'a Path, OwnedFd, OwnedFd)>,
    buffer: Vec<u8>,
}

impl<'a> Copier<'a> {
    fn new(from: &'a Path, to: &'a Path, shared: &'a Shared<'a>) -> Self {
        Self { from, to, shared, current: None, buffer: vec![0; SMALL_BYTES + 1] }
    }

    fn copy_all<'p: 'a>(mut self, files: &'p [PathBuf]) -> io::Result<Vec<Copied<'p>>> {
        let mut copied = Vec::with_capacity(files.len());
        for path in files {
            copied.extend(self.copy(path)?);
        }
        Ok(copied)
    }

    fn copy<'p: 'a>(&mut self, path: &'p Path) -> io::Result<Option<Copied<'p>>> {
        let Some((parent, name)) = path.parent().zip(path.file_name()) else { return Ok(None) };
        if !self.shared.directories.contains(parent) {
            return Ok(None);
        }
        if self.current.as_ref().is_none_or(|(open, ..)| *open != parent) {
            let open = |root: &Path| {
                let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
                rustix::fs::open(root.join(parent), flags, Mode::empty())
            };
            match open(self.from) {
                Ok(from) => self.current = Some((parent, from, open(self.to)?)),
                // Tracked by git, and deleted here with its directory.
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let Some((_, from, to)) = &self.current else { return Ok(None) };
        let found = match rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            // Tracked by git, and deleted here.
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(target, to, name)?;
                Ok(None)
            }
            FileType::RegularFile => {
                let stamps = copy_file((from, to), name, &found, self.shared, &mut self.buffer)?;
                let modified = (found.st_mtime, i64::try_from(found.st_mtime_nsec).unwrap_or_default());
                Ok(stamps.map(|(original, copy)| Copied { path, original, copy, modified }))
            }
            // A repository in this one, or a pipe, socket or device.
            _ => Ok(None),
        }
    }
}

/// Copies one file with its permissions and modification time. Returns both stamps, unless the original is gone or changed.
fn copy_file(
    (from, to): (&OwnedFd, &OwnedFd),
    name: &OsStr,
    found: &Stat,
    shared: &Shared<'_>,
    buffer: &mut [u8],
) -> io::Result<Option<(Stamp, Stamp)>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let input = match rustix::fs::openat(from, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => File::from(opened?),
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
    let output = File::from(rustix::fs::openat(to, name, flags, mode)?);
    copy_content(&input, &output, found, shared, buffer)?;
    let after = rustix::fs::fstat(&input)?;
    let unset = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let modified =
        Timespec { tv_sec: found.st_mtime, tv_nsec: found.st_mtime_nsec.try_into().unwrap_or_default() };
    rustix::fs::futimens(&output, &Timestamps { last_access: unset, last_modification: modified })?;
    let mut copy = rustix::fs::fstat(&output)?;
    // The umask may have taken bits away.
    if copy.st_mode != found.st_mode {
        rustix::fs::fchmod(&output, mode)?;
        copy = rustix::fs::fstat(&output)?;
    }
    let (before, after) = (Stamp::new(found), Stamp::new(&after));
    let unchanged = before.0 == after.0 && copy.st_size == found.st_size;
    Ok(unchanged.then(|| (before, Stamp::new(&copy))))
}

fn copy_content(
    mut input: &File,
    mut output: &File,
    found: &Stat,
    shared: &Shared<'_>,
    buffer: &mut [u8],
) -> io::Result<()> {
    let reflinks = shared.reflinks.load(Ordering::Relaxed);
    if reflinks != Reflinks::Missing as u8 {
        let are_shared = workspace_copy::share_blocks(input, output);
        if reflinks == Reflinks::Untried as u8 {
            let known = if are_shared { Reflinks::Work } else { Reflinks::Missing };
            shared.reflinks.store(known as u8, Ordering::Relaxed);
        }
        if are_shared {
            return Ok(());
        }
    }
    let size = u64::try_from(found.st_size).unwrap_or_default();
    let counted =
        shared.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
    counted.map_err(|_| io::Error::other(format!("the project has more than {} GB", MAX_BYTES >> 30)))?;
    if usize::try_from(size).is_ok_and(|size| size < buffer.len()) {
        // One byte more than expected tells that the file is no longer as small.
        let read = input.read(buffer)?;
        output.write_all(&buffer[..read])?;
        if read as u64 == size {
            return Ok(());
        }
    }
    io::copy(&mut input, &mut output).map(drop)
}
