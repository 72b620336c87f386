//! A working copy of a project for a run of its own: a git worktree, or a plain copy where there is no git.
//!
//! Git's objects are shared. Of the files, those that git does not ignore are copied as they are now (`copy`), and git's
//! index is taken over (`index`). `workspace_copy` makes the short-lived copies in which single commands run.

mod copy;
mod index;

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::walk;

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
            let copies = copy::files(source, root, &files)?;
            top.map_or(Ok(()), |top| take_index(top, root, &copies))
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

/// The index of the original, so that what is staged there is staged here, with the stamps of the copies, so that neither
/// git nor a run has to read every file again to know that it is unchanged.
fn take_index(top: &Path, root: &Path, copies: &[copy::Copied<'_>]) -> io::Result<()> {
    let place = |directory: &Path| -> io::Result<PathBuf> {
        let path = git(directory, &["rev-parse", "--git-path", "index"])?;
        let path = path.strip_suffix(b"\n").unwrap_or(&path);
        Ok(directory.join(std::ffi::OsStr::from_bytes(path)))
    };
    let (original, target) = (place(top)?, place(root)?);
    match index::restamped(&original, copies) {
        Ok(index::Restamped::Bytes(bytes)) => std::fs::write(target, bytes),
        Ok(index::Restamped::Split) => git(root, &["read-tree", "HEAD"]).map(drop),
        Ok(index::Restamped::Unsupported) => std::fs::copy(original, target).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
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

#[cfg(test)]
mod tests;
