//! The three Landlock system calls. Landlock denies unprivileged processes access to files that are not
//! granted; `grants` decides what is granted.
#![expect(unsafe_code, reason = "the C library has no Landlock wrappers; each use says why it is sound")]

pub(crate) mod grants;
pub(crate) mod restrict;
pub(crate) mod sandbox;
pub(crate) mod second_layer;

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::FileType;

/// First ABI version that also restricts truncation, which is no less harmful than writing.
pub(super) const MIN_VERSION: u32 = 3;
/// First ABI version that restricts ioctls on devices.
const DEVICE_VERSION: u32 = 5;
/// First ABI version that restricts signals and abstract sockets.
pub(super) const SIGNAL_VERSION: u32 = 6;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIRECTORY: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const DEVICE_REQUESTS: u64 = 1 << 15;
/// Every right of version 3: those above, and to create, remove, link and move files.
const ALL_RIGHTS_V3: u64 = (1 << 15) - 1;
/// Rights that apply to files; the others apply to directories only.
const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_REQUESTS;

/// Restricts abstract sockets and signals to the sandbox.
const SCOPES: u64 = 0b11;

/// Whether abstract sockets and signals are restricted as well. Each command has a Landlock domain of its
/// own, so that also separates the commands of a run; it is not needed where namespaces confine them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LandlockScope {
    Files,
    FilesAndSignals,
}

/// Access granted below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathGrant {
    /// List names, without access to the files.
    List,
    /// Read and execute.
    Read,
    /// Use a device file.
    Device,
    /// List a directory of device files and use them.
    Devices,
    /// Everything except device ioctls.
    Write,
}

impl PathGrant {
    fn rights(self) -> u64 {
        match self {
            Self::List => READ_DIRECTORY,
            Self::Read => EXECUTE | READ_FILE | READ_DIRECTORY,
            Self::Device => READ_FILE | WRITE_FILE | DEVICE_REQUESTS,
            Self::Devices => READ_DIRECTORY | READ_FILE | WRITE_FILE | DEVICE_REQUESTS,
            Self::Write => ALL_RIGHTS_V3,
        }
    }
}

/// `struct landlock_ruleset_attr`. An older kernel accepts the fields it does not know if they are zero.
#[repr(C)]
struct RulesetAttr {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct PathBeneathAttr {
    rights: u64,
    place: i32,
}

/// The Landlock ABI version of this kernel; an error if Landlock is missing or disabled.
pub(super) fn version() -> io::Result<u32> {
    const ASK_VERSION: u32 = 1;
    // SAFETY: a null pointer of length 0 with this flag is the documented way to query the version.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<RulesetAttr>(), 0usize, ASK_VERSION)
    };
    u32::try_from(checked(answer)?).map_err(|_| io::ErrorKind::Unsupported.into())
}

/// A set of grants that a process can be restricted to. Initially it grants nothing.
#[derive(Debug)]
pub(super) struct Ruleset {
    descriptor: OwnedFd,
    handled: u64,
}

impl Ruleset {
    /// Creates a ruleset for this ABI version.
    pub(super) fn new(version: u32, scope: LandlockScope) -> io::Result<Self> {
        let files = if version >= DEVICE_VERSION { ALL_RIGHTS_V3 | DEVICE_REQUESTS } else { ALL_RIGHTS_V3 };
        let scoped = scope == LandlockScope::FilesAndSignals && version >= SIGNAL_VERSION;
        let scopes = if scoped { SCOPES } else { 0 };
        let handled = RulesetAttr { files, network: 0, scopes };
        // SAFETY: the kernel reads as many bytes as the size says; the returned descriptor is new and not
        // owned elsewhere.
        let descriptor = unsafe {
            let answer = libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const handled,
                size_of::<RulesetAttr>(),
                0u32,
            );
            OwnedFd::from_raw_fd(number(checked(answer)?)?)
        };
        Ok(Self { descriptor, handled: files })
    }

    /// Grants access below an open path.
    pub(super) fn allow(&self, place: BorrowedFd<'_>, grant: PathGrant) -> io::Result<()> {
        const PATH_BENEATH: u32 = 1;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
        let fitting = if kind == FileType::Directory { u64::MAX } else { FILE_RIGHTS };
        let rights = grant.rights() & self.handled & fitting;
        if rights == 0 {
            return Ok(());
        }
        let rule = PathBeneathAttr { rights, place: place.as_raw_fd() };
        // SAFETY: the rule has the layout that the kernel reads and outlives the call, as do both
        // descriptors.
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

/// Restricts this process, and everything it executes and starts, to what the ruleset grants. `no_new_privs`
/// must be set before.
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
