//! Mounts by descriptor: a piece of a tree is taken, restricted and put somewhere, and no path is walked twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

use super::kernel::{self, Use};

/// How far a restriction reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The mount and what is mounted below it.
    Below,
    /// Only the mount.
    Alone,
}

/// How symbolic links on a path are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// They lead where they say, inside of the root.
    Followed,
    /// They are an error, except for the last part, which is then the link itself. For trees that commands can change.
    Refused,
}

/// A place below `root`, which stands for `/`. It is not opened, only held.
pub(super) fn held(root: BorrowedFd<'_>, path: &Path, links: Links) -> io::Result<OwnedFd> {
    let (flags, resolve) = match links {
        Links::Followed => (OFlags::empty(), ResolveFlags::IN_ROOT),
        Links::Refused => (OFlags::NOFOLLOW, ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS),
    };
    Ok(rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty(), resolve)?)
}

pub(super) fn kind(place: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode))
}

/// A copy of what is at `place`, with everything mounted below, that can be used only like this.
pub(super) fn copy(place: BorrowedFd<'_>, to: Use) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = rustix::mount::open_tree(place, c"", flags)?;
    kernel::restrict(copy.as_fd(), to, Reach::Below)?;
    Ok(copy)
}

/// A new file system of this kind, with these settings.
pub(super) fn new(kind: &str, settings: &[(&str, &str)], to: Use) -> io::Result<OwnedFd> {
    let system = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in settings {
        rustix::mount::fsconfig_set_string(system.as_fd(), *name, *value)?;
    }
    rustix::mount::fsconfig_create(system.as_fd())?;
    let attributes = MountAttrFlags::from_bits_retain(to.bits());
    Ok(rustix::mount::fsmount(system.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Puts a mount onto a place.
pub(super) fn put(mount: BorrowedFd<'_>, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, c"", place, c"", flags)?)
}
