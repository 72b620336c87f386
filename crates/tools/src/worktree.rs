//! A working copy of a project for a run of its own: a git worktree, or a plain copy where there is no git.
//!
//! Git's objects are shared. Of the files, those that git does not ignore are copied as they are now, by reflink where the
//! file system can, on several threads. `workspace_copy` makes the short-lived copies in which single commands run.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::workspace::walk;
use crate::workspace_copy;

/// Maximum number of files, and of bytes that are not shared with the original.
const MAX_FILES: usize = 1_000_000;
const MAX_BYTES: u64 = 16 << 30;

/// Threads that copy; most of the time is spent in the kernel.
const THREADS: usize = 4;

/// Variables that would make git work on another repository.
const REPOSITORY_VARIABLES: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_INDEX_FILE"];

/// A working copy of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// Root of the copy.
    pub root: PathBuf,
    /// The directory in it that corresponds to the workspace.
    pub workspace: PathBuf,
    /// Whether it is a git worktree.
    pub is_git: bool,
}

impl Worktree {
    /// Makes a working copy at `root`, which must not exist, of the repository that contains `workspace`, or of
    /// `workspace` alone. Nothing is left behind if it fails.
    pub fn create(workspace: &Path, root: &Path) -> io::Result<Self> {
        if let Some(parent) = root.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let top = workspace.ancestors().find(|folder| folder.join(".git").exists());
        let top = top.filter(|top| add_git_worktree(top, root).is_ok());
        let source = top.unwrap_or(workspace);
        let copied = (|| {
            std::fs::create_dir_all(root)?;
            let files = match top {
                Some(top) => tracked_and_new(top)?,
                None => walked(workspace),
            };
            copy_files(source, root, files)?;
            top.map_or(Ok(()), |top| take_index(top, root))
        })();
        if let Err(error) = copied {
            remove(top, root);
            return Err(error);
        }
        let below = workspace.strip_prefix(source).unwrap_or(Path::new(""));
        let inside = root.join(below);
        std::fs::create_dir_all(&inside)?;
        Ok(Self { root: root.canonicalize()?, workspace: inside.canonicalize()?, is_git: top.is_some() })
    }

    /// Removes the working copy of `workspace` at `root`.
    pub fn remove(workspace: &Path, root: &Path) {
        let top = workspace.ancestors().find(|folder| folder.join(".git").exists());
        remove(top, root);
    }
}

fn remove(top: Option<&Path>, root: &Path) {
    // What stays is removed with the folder, or by hand.
    let _ = std::fs::remove_dir_all(root);
    if let Some(top) = top {
        let _ = git(top, &["worktree", "prune"]);
    }
}

/// Registers a worktree without any files. Hooks of the repository do not run.
fn add_git_worktree(top: &Path, root: &Path) -> io::Result<()> {
    let root = root.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
    git(top, &["worktree", "add", "--quiet", "--no-checkout", "--detach", root, "HEAD"]).map(drop)
}

/// The index of the original, so that what is staged there is staged here.
fn take_index(top: &Path, root: &Path) -> io::Result<()> {
    let place = |directory: &Path| -> io::Result<PathBuf> {
        let path = git(directory, &["rev-parse", "--git-path", "index"])?;
        let path = path.strip_suffix(b"\n").unwrap_or(&path);
        Ok(directory.join(std::ffi::OsStr::from_bytes(path)))
    };
    match std::fs::copy(place(top)?, place(root)?) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The files of a repository that are tracked or not ignored.
fn tracked_and_new(top: &Path) -> io::Result<Vec<PathBuf>> {
    let names = git(top, &["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])?;
    let paths = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let paths = paths.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name)));
    Ok(paths.filter(|path| !path.iter().any(walk::is_state)).collect())
}

/// The files of a directory that are not ignored.
fn walked(directory: &Path) -> Vec<PathBuf> {
    let entries = walk::builder(directory, true).build().flatten();
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
    let paths = files.filter_map(|entry| entry.path().strip_prefix(directory).ok().map(Path::to_owned));
    paths.filter(|path| !path.iter().any(walk::is_state)).collect()
}

#[expect(clippy::disallowed_methods, reason = "not a command of a run: git registers a worktree")]
fn git(directory: &Path, arguments: &[&str]) -> io::Result<Vec<u8>> {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.args(arguments).current_dir(directory);
    for name in REPOSITORY_VARIABLES {
        command.env_remove(name);
    }
    let output = command.stdin(std::process::Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("git {}: {}", arguments.first().unwrap_or(&""), said.trim())))
}

/// Copies files and symlinks, with the directories they are in.
fn copy_files(from: &Path, to: &Path, files: Vec<PathBuf>) -> io::Result<()> {
    if files.len() > MAX_FILES {
        return Err(io::Error::other(format!("the project has more than {MAX_FILES} files")));
    }
    let mut directories: BTreeSet<&Path> = BTreeSet::new();
    for file in &files {
        // The ancestors of a directory that is there already are there too.
        file.ancestors().skip(1).take_while(|folder| directories.insert(folder)).for_each(drop);
    }
    for directory in directories.into_iter().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(to.join(directory))?;
    }
    let left = AtomicU64::new(MAX_BYTES);
    let share = files.len().div_ceil(THREADS).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = files
            .chunks(share)
            .map(|part| scope.spawn(|| part.iter().try_for_each(|file| copy_file(from, to, file, &left))))
            .collect();
        parts.into_iter().try_for_each(|part| {
            part.join().unwrap_or_else(|_| Err(io::Error::other("a thread that copies files panicked")))
        })
    })
}

fn copy_file(from: &Path, to: &Path, path: &Path, left: &AtomicU64) -> io::Result<()> {
    let (source, target) = (from.join(path), to.join(path));
    let found = match source.symlink_metadata() {
        Ok(found) => found,
        // Tracked by git, and deleted here.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if found.is_symlink() {
        return std::os::unix::fs::symlink(std::fs::read_link(&source)?, &target);
    }
    if !found.is_file() {
        // A repository in this one, or a pipe, socket or device.
        return Ok(());
    }
    let mut input = match File::open(&source) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut output = File::create_new(&target)?;
    if !workspace_copy::share_blocks(&input, &output) {
        let counted =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(found.size()));
        counted.map_err(|_| io::Error::other(format!("the project has more than {} GB", MAX_BYTES >> 30)))?;
        io::copy(&mut input, &mut output)?;
    }
    output.set_permissions(std::fs::Permissions::from_mode(found.mode() & 0o7777))?;
    output.set_modified(found.modified()?)
}

#[cfg(test)]
mod tests;
