//! Mounts by descriptor: a subtree is opened, restricted and attached, and no path is resolved twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

use crate::sandbox::sys::namespaces::{self, MountUse};

/// Scope of a restriction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountReach {
    /// The mount and everything mounted below it.
    Below,
    /// Only the mount itself.
    Alone,
}

/// How symbolic links on a path are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymlinkPolicy {
    /// They are followed, relative to the root.
    Followed,
    /// They are an error, except as the last component, which then refers to the link itself. For trees that
    /// commands can change.
    Refused,
}

/// Opens a path below `root`, which stands for `/`, as an O_PATH descriptor.
pub(crate) fn held(root: BorrowedFd<'_>, path: &Path, links: SymlinkPolicy) -> io::Result<OwnedFd> {
    let (flags, resolve) = match links {
        SymlinkPolicy::Followed => (OFlags::empty(), ResolveFlags::IN_ROOT),
        SymlinkPolicy::Refused => (OFlags::NOFOLLOW, ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS),
    };
    Ok(rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty(), resolve)?)
}

pub(crate) fn kind(place: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode))
}

/// Clones the mount at `place`, with everything mounted below it, restricted to this use.
pub(crate) fn copy(place: BorrowedFd<'_>, to: MountUse) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = rustix::mount::open_tree(place, c"", flags)?;
    namespaces::restrict(copy.as_fd(), to, MountReach::Below)?;
    Ok(copy)
}

/// Creates a new file system of this type with these options.
pub(crate) fn new(kind: &str, settings: &[(&str, &str)], to: MountUse) -> io::Result<OwnedFd> {
    let system = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in settings {
        rustix::mount::fsconfig_set_string(system.as_fd(), *name, *value)?;
    }
    rustix::mount::fsconfig_create(system.as_fd())?;
    let attributes = MountAttrFlags::from_bits_retain(to.bits());
    Ok(rustix::mount::fsmount(system.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Creates an overlay: `lower` with a layer in `upper` that receives all changes. Paths are resolved from the
/// current directory. Attributes of the layer are those that a user may set.
pub(crate) fn overlay(lower: &Path, upper: &Path, work: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::ffi::OsStrExt;
    let system = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, path) in [("lowerdir", lower), ("upperdir", upper), ("workdir", work)] {
        let mut escaped = Vec::new();
        for byte in path.as_os_str().as_bytes() {
            if [b':', b'\\'].contains(byte) {
                escaped.push(b'\\');
            }
            escaped.push(*byte);
        }
        rustix::mount::fsconfig_set_string(system.as_fd(), name, escaped)?;
    }
    rustix::mount::fsconfig_set_flag(system.as_fd(), "userxattr")?;
    rustix::mount::fsconfig_create(system.as_fd())?;
    let attributes = MountAttrFlags::from_bits_retain(MountUse::WRITE.bits());
    Ok(rustix::mount::fsmount(system.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Attaches a mount at a place.
pub(crate) fn put(mount: BorrowedFd<'_>, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, c"", place, c"", flags)?)
}
