//! The kernel's own fence around files, for processes without privileges: what is not granted is refused.
//! `fence` says what is granted; here are the three calls.
#![expect(unsafe_code, reason = "Landlock has no form in the C library; each use says why it is sound")]

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::FileType;

/// The first version that also keeps files from being cut short, which is no smaller harm than writing to them.
pub(super) const LEAST_VERSION: u32 = 3;
/// The first one that decides over requests to devices.
const DEVICE_VERSION: u32 = 5;
/// The first one that keeps signals inside.
pub(super) const SIGNAL_VERSION: u32 = 6;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIRECTORY: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const DEVICE_REQUESTS: u64 = 1 << 15;
/// Every right of version 3: those above, and to make, remove, link and move.
const ALL_OF_LEAST: u64 = (1 << 15) - 1;
/// What means something for a file; the others are about directories.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_REQUESTS;

/// Abstract sockets and signals end at the fence.
const SCOPES: u64 = 0b11;

/// Whether abstract sockets and signals end at the fence as well. Each command is behind one of its own, so they also end
/// between the commands of a run; where namespaces keep them inside there is no need for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Files,
    FilesAndSignals,
}

/// What is granted below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grant {
    /// The names in it, not what they stand for.
    List,
    /// To read and to run.
    Read,
    /// To use a device.
    Device,
    /// To find devices in a directory and use them.
    Devices,
    /// Everything, devices excepted.
    Write,
}

impl Grant {
    fn rights(self) -> u64 {
        match self {
            Self::List => READ_DIRECTORY,
            Self::Read => EXECUTE | READ_FILE | READ_DIRECTORY,
            Self::Device => READ_FILE | WRITE_FILE | DEVICE_REQUESTS,
            Self::Devices => READ_DIRECTORY | READ_FILE | WRITE_FILE | DEVICE_REQUESTS,
            Self::Write => ALL_OF_LEAST,
        }
    }
}

/// As the kernel reads it. A kernel that knows less of it accepts what is zero.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Beneath {
    rights: u64,
    place: i32,
}

/// The version of Landlock that this kernel has, if it is turned on.
pub(super) fn version() -> io::Result<u32> {
    const ASK_VERSION: u32 = 1;
    // SAFETY: a null pointer of no length is how the version is asked for.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Handled>(), 0usize, ASK_VERSION)
    };
    u32::try_from(checked(answer)?).map_err(|_| io::ErrorKind::Unsupported.into())
}

/// A set of grants that a process can be restricted to. It grants nothing at first.
#[derive(Debug)]
pub(super) struct Ruleset {
    descriptor: OwnedFd,
    handled: u64,
}

impl Ruleset {
    /// A set for a kernel of this version.
    pub(super) fn new(version: u32, scope: Scope) -> io::Result<Self> {
        let files = if version >= DEVICE_VERSION { ALL_OF_LEAST | DEVICE_REQUESTS } else { ALL_OF_LEAST };
        let scoped = scope == Scope::FilesAndSignals && version >= SIGNAL_VERSION;
        let scopes = if scoped { SCOPES } else { 0 };
        let handled = Handled { files, network: 0, scopes };
        // SAFETY: the kernel reads as many bytes as are said; the returned descriptor is new and owned by nobody else.
        let descriptor = unsafe {
            let answer = libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const handled,
                size_of::<Handled>(),
                0u32,
            );
            OwnedFd::from_raw_fd(number(checked(answer)?)?)
        };
        Ok(Self { descriptor, handled: files })
    }

    /// Grants something below what is held.
    pub(super) fn allow(&self, place: BorrowedFd<'_>, grant: Grant) -> io::Result<()> {
        const PATH_BENEATH: u32 = 1;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
        let fitting = if kind == FileType::Directory { u64::MAX } else { OF_FILES };
        let rights = grant.rights() & self.handled & fitting;
        if rights == 0 {
            return Ok(());
        }
        let rule = Beneath { rights, place: place.as_raw_fd() };
        // SAFETY: the rule is as the kernel reads it and outlives the call, as do both descriptors.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.descriptor.as_raw_fd(),
                PATH_BENEATH,
                &raw const rule,
                0u32,
            )
        };
        checked(answer).map(drop)
    }
}

impl From<Ruleset> for OwnedFd {
    fn from(ruleset: Ruleset) -> Self {
        ruleset.descriptor
    }
}

impl AsFd for Ruleset {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// From here on this process, and all it becomes and starts, has only what the set grants. It must have given up gaining
/// privileges before.
pub(super) fn restrict(set: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor and a number.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, set.as_raw_fd(), 0u32) }).map(drop)
}

fn checked(answer: c_long) -> io::Result<c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn number(answer: c_long) -> io::Result<i32> {
    i32::try_from(answer).map_err(|_| io::ErrorKind::InvalidData.into())
}
