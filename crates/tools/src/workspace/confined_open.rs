//! Opens paths that cannot leave a directory, even if symlinks are swapped concurrently.
//!
//! Where the kernel has openat2, it confines reads. The manual walk does the same with one descriptor per
//! component: every name is opened without following symlinks, and a symlink's target is walked in turn, from
//! the directory that contains it. Writes always use the manual walk, because they need to know the real
//! location.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// Maximum number of symlinks followed, as in the kernel.
const MAX_LINKS: usize = 40;
/// Retries when a component changes its type concurrently.
const MAX_RACES: usize = 64;

/// Opens a directory to refer to it. Only Linux can do that without permission to read it.
#[cfg(target_os = "linux")]
const REFERENCE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const REFERENCE: OFlags = OFlags::RDONLY;

/// Opens a directory that is not a symlink, to refer to it.
pub(crate) const DIRECTORY: OFlags =
    REFERENCE.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How a path is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// openat2 with RESOLVE_BENEATH.
    #[cfg(target_os = "linux")]
    Kernel,
    /// Manually, one component at a time.
    ByHand,
}

impl Resolution {
    /// Detects what is available: old kernels lack openat2, and some containers forbid it.
    #[cfg(target_os = "linux")]
    pub(super) fn probe(root: BorrowedFd<'_>) -> Self {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match rustix::fs::openat2(root, ".", flags, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(_) => Self::Kernel,
            Err(_) => Self::ByHand,
        }
    }

    /// Only Linux has openat2.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn probe(_root: BorrowedFd<'_>) -> Self {
        Self::ByHand
    }

    /// Opens `path` below `root`, following symlinks as long as they stay below it.
    pub(super) fn open(self, root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kernel => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                open_by_kernel(root, path, flags, resolve)
            }
            Self::ByHand => open_by_hand(root, path, flags),
        }
    }

    /// Opens the parent directory of `path` below `root`; fails if a symlink is on the way.
    pub(super) fn parent_no_symlinks(self, root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let Some(parent) = parent else { return root.try_clone_to_owned() };
        match self {
            #[cfg(target_os = "linux")]
            Self::Kernel => {
                open_by_kernel(root, parent, DIRECTORY, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
            }
            Self::ByHand => {
                let mut directory = root.try_clone_to_owned()?;
                for component in parent.components() {
                    let Component::Normal(name) = component else { return Err(Errno::XDEV.into()) };
                    directory = rustix::fs::openat(&directory, name, DIRECTORY, Mode::empty())?;
                }
                Ok(directory)
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn open_by_kernel(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> io::Result<OwnedFd> {
    for _ in 0..MAX_RACES {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            // A concurrent rename kept the kernel from verifying the path.
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
    Err(Errno::AGAIN.into())
}

fn open_by_hand(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    for _ in 0..MAX_RACES {
        let end = walk(root, path)?;
        let Some(name) = &end.name else {
            return Ok(rustix::fs::openat(
                end.directory(root),
                ".",
                flags | OFlags::NOFOLLOW,
                Mode::empty(),
            )?);
        };
        if !end.missing.is_empty() {
            return Err(Errno::NOENT.into());
        }
        match rustix::fs::openat(end.directory(root), name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            // It became a symlink after the walk had checked it.
            Err(Errno::LOOP) => {}
            result => return Ok(result?),
        }
    }
    Err(Errno::LOOP.into())
}

/// Real location of a path: no component of it is a symlink.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// Directories from the root down to the deepest one that exists.
    directories: Vec<(OsString, OwnedFd)>,
    /// Directories that would have to be created below it.
    pub(super) missing: Vec<OsString>,
    /// Last component; `None` means the deepest directory itself.
    pub(super) name: Option<OsString>,
}

impl ResolvedPath {
    /// The deepest directory that exists.
    pub(super) fn directory<'a>(&'a self, root: BorrowedFd<'a>) -> BorrowedFd<'a> {
        self.directories.last().map_or(root, |(_, directory)| directory.as_fd())
    }

    /// Components of the real path.
    pub(super) fn components(&self) -> impl Iterator<Item = &OsString> {
        self.directories.iter().map(|(name, _)| name).chain(&self.missing).chain(&self.name)
    }

    /// Paths of the missing directories, outer ones first; names that are not UTF-8 are left out.
    pub(super) fn missing_paths(&self) -> Vec<String> {
        let mut path = PathBuf::from_iter(self.directories.iter().map(|(name, _)| name));
        let add = |name: &OsString| {
            path.push(name);
            path.to_str().map(str::to_owned)
        };
        self.missing.iter().filter_map(add).collect()
    }

    /// Creates the missing directories. One that was created concurrently is used, unless it is a symlink.
    pub(super) fn make_directories(&mut self, root: BorrowedFd<'_>) -> io::Result<()> {
        for name in std::mem::take(&mut self.missing) {
            let parent = self.directory(root);
            match rustix::fs::mkdirat(parent, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let directory = rustix::fs::openat(parent, &name, DIRECTORY, Mode::empty())?;
            self.directories.push((name, directory));
        }
        Ok(())
    }
}

/// Follows `path` below `root` and resolves every symlink, including the last component.
pub(super) fn walk(root: BorrowedFd<'_>, path: &Path) -> io::Result<ResolvedPath> {
    let mut end = ResolvedPath { directories: Vec::new(), missing: Vec::new(), name: None };
    let mut ahead: VecDeque<PathStep> = steps(path)?;
    let (mut links, mut races) = (0, 0);
    while let Some(step) = ahead.pop_front() {
        let name = match step {
            PathStep::Up if end.missing.pop().is_some() => continue,
            PathStep::Up => {
                end.directories.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            PathStep::Down(name) => name,
        };
        if !end.missing.is_empty() {
            if ahead.is_empty() {
                end.name = Some(name);
            } else {
                end.missing.push(name);
            }
            continue;
        }
        match rustix::fs::readlinkat(end.directory(root), &name, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = OsString::from_vec(target.into_bytes());
                for step in steps(Path::new(&target))?.into_iter().rev() {
                    ahead.push_front(step);
                }
                continue;
            }
            Err(Errno::INVAL) => {}
            Err(Errno::NOENT) => {
                if ahead.is_empty() {
                    end.name = Some(name);
                } else {
                    end.missing.push(name);
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        if ahead.is_empty() {
            end.name = Some(name);
            continue;
        }
        match rustix::fs::openat(end.directory(root), &name, DIRECTORY, Mode::empty()) {
            Ok(directory) => end.directories.push((name, directory)),
            // Gone, or replaced by a symlink meanwhile: try again. A regular file is an error.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) if races < MAX_RACES => {
                races += 1;
                if is_plain_file(end.directory(root), &name) {
                    return Err(Errno::NOTDIR.into());
                }
                ahead.push_front(PathStep::Down(name));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(end)
}

enum PathStep {
    Down(OsString),
    Up,
}

/// Components of a path; an absolute path is an error because it leaves the workspace.
fn steps(path: &Path) -> io::Result<VecDeque<PathStep>> {
    let mut steps = VecDeque::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => steps.push_back(PathStep::Down(name.to_owned())),
            Component::ParentDir => steps.push_back(PathStep::Up),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV.into()),
        }
    }
    Ok(steps)
}

fn is_plain_file(directory: BorrowedFd<'_>, name: &OsString) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|status| {
        rustix::fs::FileType::from_raw_mode(status.st_mode) == rustix::fs::FileType::RegularFile
    })
}
