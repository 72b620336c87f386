//! Copies of a workspace, in which changes can be tried without touching the workspace itself.
//!
//! With an overlay nothing is copied: the copy is an empty layer that receives changes, and the namespace sandbox
//! mounts it over the workspace. Otherwise the files are copied, by reflink where the file system can; their number
//! and the bytes that have to be duplicated are bounded. `tool/shell/candidate.rs` runs commands in a copy.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::sandbox::{Substitute, SubstituteSource};
use crate::workspace::Workspace;

/// Parents of copies, in order of preference: the first is on disk on most systems.
const PLACES: [&str; 2] = ["/var/tmp", "/tmp"];

/// Beginning of the names of copies; the process id and a number follow.
const PREFIX: &str = "fusee-copy-";

/// Maximum number of files, and of bytes that are not shared with the original.
const MAX_FILES: usize = 60_000;
const MAX_BYTES: u64 = 256 << 20;

/// Names that are not copied: state of version control and of Fusee itself.
const LEFT_OUT: [&str; 5] = [".git", ".fusee", ".hg", ".jj", ".svn"];

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// How a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// An empty layer over the workspace; needs the namespace sandbox.
    Overlay,
    /// A tree of its own.
    Files,
}

/// A copy of a workspace; removed when dropped.
#[derive(Debug)]
pub struct WorkspaceCopy {
    /// Directory of everything that belongs to the copy.
    base: PathBuf,
    workspace: PathBuf,
    kind: CopyKind,
    /// Owner of the workspace, if this process can give files away.
    owner: Option<(u32, u32)>,
}

impl WorkspaceCopy {
    /// Makes a copy of the workspace at `workspace`, which is an absolute path without symlinks.
    pub fn create(workspace: &Path, kind: CopyKind) -> io::Result<Self> {
        let original = workspace.metadata()?;
        let owner = rustix::process::geteuid().is_root().then_some((original.uid(), original.gid()));
        let copy = Self { base: new_directory()?, workspace: workspace.to_owned(), kind, owner };
        std::fs::create_dir(copy.root())?;
        copy.take_over(&copy.root(), &original)?;
        match kind {
            CopyKind::Overlay => {
                std::fs::create_dir(copy.base.join("work"))?;
                if has_mounts_below(workspace) {
                    return Err(io::Error::other("other file systems are mounted in the workspace"));
                }
            }
            CopyKind::Files => {
                let mut budget = Budget { files: MAX_FILES, bytes: MAX_BYTES };
                copy.copy_tree(workspace, &copy.root(), &mut budget, true)?;
            }
        }
        Ok(copy)
    }

    /// Directory that holds the files of the copy; with an overlay, only those that differ.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.base.join("tree")
    }

    /// How the sandbox shows the copy at the path of the workspace.
    #[must_use]
    pub fn substitute(&self) -> Substitute {
        let source = match self.kind {
            CopyKind::Overlay => {
                SubstituteSource::Overlay { upper: self.root(), work: self.base.join("work") }
            }
            CopyKind::Files => SubstituteSource::Copy(self.root()),
        };
        Substitute { path: self.workspace.clone(), source }
    }

    /// Writes a file of the copy. The path is relative to the workspace, and never leads out of the copy.
    pub fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let inside = Workspace::open(&self.root()).map_err(io::Error::other)?;
        let located = inside.locate(path).map_err(|problem| io::Error::other(problem.to_string()))?;
        inside.restore_file(path, Some(content)).map_err(io::Error::other)?;
        let mut below = PathBuf::new();
        for part in located.as_path().components() {
            below.push(part);
            if let Ok(original) = self.workspace.join(&below).symlink_metadata()
                && !original.is_symlink()
            {
                self.take_over(&self.root().join(&below), &original)?;
            } else if let Some((user, group)) = self.owner {
                std::os::unix::fs::lchown(self.root().join(&below), Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    /// Whether this file of the copy holds other content than `content`.
    #[must_use]
    pub fn differs(&self, path: &str, content: &[u8]) -> bool {
        let file = self.root().join(path);
        match file.symlink_metadata() {
            Ok(found) if found.is_file() => std::fs::read(&file).is_ok_and(|now| now != content),
            // With an overlay, a file that is not in the layer is the original.
            Err(_) => self.kind == CopyKind::Files,
            Ok(_) => true,
        }
    }

    /// Gives a path of the copy the permissions and the owner of the original.
    fn take_over(&self, path: &Path, original: &Metadata) -> io::Result<()> {
        std::fs::set_permissions(path, original.permissions())?;
        if self.owner.is_some() {
            std::os::unix::fs::lchown(path, Some(original.uid()), Some(original.gid()))?;
        }
        Ok(())
    }

    fn copy_tree(&self, from: &Path, to: &Path, budget: &mut Budget, outermost: bool) -> io::Result<()> {
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if outermost && LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            budget.count_file()?;
            let (source, target) = (entry.path(), to.join(&name));
            let original = entry.metadata()?;
            if original.is_dir() {
                std::fs::create_dir(&target)?;
                self.copy_tree(&source, &target, budget, false)?;
                self.take_over(&target, &original)?;
            } else if original.is_symlink() {
                std::os::unix::fs::symlink(std::fs::read_link(&source)?, &target)?;
            } else if original.is_file() {
                copy_file(&source, &target, &original, budget)?;
                self.take_over(&target, &original)?;
            }
            // Pipes, sockets and devices are no part of a project.
        }
        Ok(())
    }
}

impl Drop for WorkspaceCopy {
    fn drop(&mut self) {
        remove(&self.base);
    }
}

/// What may still be copied.
struct Budget {
    files: usize,
    bytes: u64,
}

impl Budget {
    fn count_file(&mut self) -> io::Result<()> {
        let most = || io::Error::other(format!("the workspace has more than {MAX_FILES} files"));
        self.files = self.files.checked_sub(1).ok_or_else(most)?;
        Ok(())
    }

    fn count_bytes(&mut self, bytes: u64) -> io::Result<()> {
        let most = || io::Error::other(format!("the workspace has more than {} MB", MAX_BYTES >> 20));
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(most)?;
        Ok(())
    }
}

/// Copies a file, sharing its blocks with the original if the file system can. The time of the last change is
/// kept, since build tools go by it.
fn copy_file(from: &Path, to: &Path, original: &Metadata, budget: &mut Budget) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create_new(to)?;
    if !share_blocks(&source, &target) {
        budget.count_bytes(original.len())?;
        io::copy(&mut source, &mut target)?;
    }
    target.set_modified(original.modified()?)
}

/// Makes an empty file share the blocks of another. Returns whether the file system did.
#[cfg(target_os = "linux")]
pub(crate) fn share_blocks(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

/// Other systems have no call for open files.
#[cfg(not(target_os = "linux"))]
pub(crate) fn share_blocks(_source: &File, _target: &File) -> bool {
    false
}

/// Creates an empty directory that only this user can enter. Copies of processes that are gone are removed.
fn new_directory() -> io::Result<PathBuf> {
    let process = std::process::id();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for place in PLACES.map(Path::new) {
        remove_abandoned(place);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = place.join(format!("{PREFIX}{process}-{number}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Removes the copies of processes that were killed.
fn remove_abandoned(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<i32>().ok());
        if process.and_then(Pid::from_raw).is_some_and(is_gone) {
            remove(&entry.path());
        }
    }
}

fn is_gone(process: Pid) -> bool {
    rustix::process::test_kill_process(process) == Err(Errno::SRCH)
}

/// Removes a directory. The kernel's own directory of an overlay cannot be listed, but is empty.
fn remove(directory: &Path) {
    let kernels = directory.join("work/work");
    if kernels.is_dir() {
        let _ = std::fs::set_permissions(&kernels, std::fs::Permissions::from_mode(0o700));
    }
    // A directory that stays is removed when the next copy is made.
    let _ = std::fs::remove_dir_all(directory);
}

/// Whether other file systems are mounted below a directory; an overlay would not show them.
fn has_mounts_below(directory: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|point| {
        let point = Path::new(point);
        point != directory && point.starts_with(directory)
    })
}

#[cfg(test)]
mod tests;
