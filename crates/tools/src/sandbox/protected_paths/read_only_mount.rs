//! Covers an existing protected path with a read-only mount of itself, and pins its parent directories. `revert`
//! handles paths that do not exist.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxAttributes, StatxFlags};

use crate::sandbox::namespaces::mount::{self, SymlinkPolicy};
use crate::sandbox::policy::CreatedPathAction;
use crate::sandbox::sys::namespaces::MountUse;

/// Whether the path existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum Presence {
    Protected,
    Absent,
}

/// Protects a path below `root`, which stands for `/`.
pub(in crate::sandbox) fn protect(
    root: BorrowedFd<'_>,
    path: &Path,
    on_create: CreatedPathAction,
) -> io::Result<Presence> {
    if on_create == CreatedPathAction::Linking {
        // The links are not known before the command has ended.
        return Ok(Presence::Absent);
    }
    let place = match mount::held(root, path, SymlinkPolicy::Refused) {
        Ok(place) => place,
        Err(error) if is_absent(&error) => return Ok(Presence::Absent),
        // A symbolic link on the path. The link itself is protected; its target is not part of the workspace.
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return path
                .parent()
                .map_or(Err(error), |parent| protect(root, parent, CreatedPathAction::SetAside));
        }
        Err(error) => return Err(error),
    };
    if is_mount(place.as_fd())? && on_create == CreatedPathAction::UnlessDirectory {
        return Ok(Presence::Protected);
    }
    if let Some(parent) = path.parent() {
        pin(root, parent)?;
    }
    // Opened again, because the pinned parent now covers what was opened before.
    let place = mount::held(root, path, SymlinkPolicy::Refused)?;
    let writable =
        on_create == CreatedPathAction::UnlessDirectory && mount::kind(place.as_fd())? == FileType::Directory;
    let to = if writable { MountUse::WRITE } else { MountUse::READ };
    mount::put(mount::copy(place.as_fd(), to)?.as_fd(), place.as_fd())?;
    Ok(Presence::Protected)
}

/// Covers a directory and its parents, up to the next mount, with bind mounts of themselves. A mount point
/// cannot be moved.
fn pin(root: BorrowedFd<'_>, directory: &Path) -> io::Result<()> {
    let place = mount::held(root, directory, SymlinkPolicy::Refused)?;
    if is_mount(place.as_fd())? {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        pin(root, parent)?;
    }
    let place = mount::held(root, directory, SymlinkPolicy::Refused)?;
    mount::put(mount::copy(place.as_fd(), MountUse::WRITE)?.as_fd(), place.as_fd())
}

/// Whether a path is a mount point, as every protected path is.
pub(in crate::sandbox) fn is_pinned(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .is_ok_and(|place| is_mount(place.as_fd()).unwrap_or_default())
}

fn is_mount(place: BorrowedFd<'_>) -> io::Result<bool> {
    let status = rustix::fs::statx(place, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
    Ok(status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
