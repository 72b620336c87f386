//! Atomic file changes: all writes of our own tools go through here.
//!
//! New content is written to a temporary file next to the old one and renamed over it, so that a partial file
//! is never visible. Several files change together: all are checked and written before the first rename, and
//! renamed files are restored if a later one fails. Temporary names are derived from the call's id, so that
//! an interrupted call can be cleaned up.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use super::confined_open::{self, ResolvedPath};
use super::file_status;
use super::{PathProblem, Workspace, WorkspacePath, read_bounded};
use crate::workspace::content::ContentHash;

/// Change of one file.
#[derive(Clone, Debug)]
pub(crate) struct FileWrite {
    pub(crate) path: WorkspacePath,
    /// Hash of the expected current content; `None` means that the file must not exist.
    pub(crate) before: Option<ContentHash>,
    /// New content; `None` removes the file.
    pub(crate) after: Option<Vec<u8>>,
    /// New permissions; if `None`, an existing file keeps its own.
    pub(crate) mode: Option<u32>,
}

/// Reason why nothing was changed, or in the worst case what was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error(transparent)]
    Path(#[from] PathProblem),
    #[error("`{path}` was changed by something else while this call was on its way. Read it again.")]
    Changed { path: WorkspacePath },
    #[error("{cause} While undoing the files that had been changed before it, {} could not be put back.", list(.left))]
    Partial { cause: Box<ReplaceError>, left: Vec<WorkspacePath> },
}

fn list(paths: &[WorkspacePath]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    names.join(", ")
}

/// Current content and permissions of a file that is to be changed.
#[derive(Debug)]
pub(crate) struct CurrentFile {
    pub(crate) content: Vec<u8>,
    pub(crate) mode: u32,
}

impl Workspace {
    /// Reads a file that is to be changed; `None` if it does not exist. Fails for files that tools may not
    /// change.
    pub(crate) fn current(
        &self,
        path: &WorkspacePath,
        most: u64,
    ) -> Result<Option<CurrentFile>, PathProblem> {
        let slot = self.slot(path)?;
        Ok(slot
            .read(path, most)?
            .map(|(content, status)| CurrentFile { content, mode: file_status::mode(&status) & 0o7777 }))
    }

    /// Makes all changes or none. `token` identifies the call in temporary names.
    pub(crate) fn change(&self, changes: &[FileWrite], token: &str, most: u64) -> Result<(), ReplaceError> {
        changes.iter().for_each(|change| self.forget_content(&change.path));
        let mut staged: Vec<StagedWrite<'_>> = Vec::with_capacity(changes.len());
        for change in changes {
            let next = StagedWrite::check(self, change, token, most)?;
            // Two names of the same file: the second change would overwrite the first.
            if let Some(same) =
                staged.iter().find(|one| one.slot.end.components().eq(next.slot.end.components()))
            {
                let reason = format!("it is the same file as `{}`, which is changed too", same.change.path);
                return Err(PathProblem::System { path: change.path.clone(), reason }.into());
            }
            staged.push(next);
        }
        for at in 0..staged.len() {
            if let Err(problem) = staged[at].write(self) {
                staged.iter_mut().for_each(StagedWrite::discard);
                return Err(problem.into());
            }
        }
        // Removals come last, so that an earlier failure loses nothing.
        staged.sort_by_key(|one| one.change.after.is_none());
        for at in 0..staged.len() {
            if let Err(cause) = staged[at].commit() {
                let left: Vec<WorkspacePath> = staged[..at]
                    .iter_mut()
                    .rev()
                    .filter_map(|one| one.undo().err().map(|()| one.change.path.clone()))
                    .collect();
                staged.iter_mut().for_each(StagedWrite::discard);
                return Err(if left.is_empty() {
                    cause
                } else {
                    ReplaceError::Partial { cause: Box::new(cause), left }
                });
            }
        }
        Ok(())
    }

    /// Removes the temporary file that an interrupted call may have left next to this file.
    pub(crate) fn remove_temporary(&self, path: &WorkspacePath, token: &str) {
        if let Ok(slot) = self.slot(path) {
            let _ = rustix::fs::unlinkat(&slot.directory, temporary_name(token, path), AtFlags::empty());
        }
    }

    pub(super) fn slot(&self, path: &WorkspacePath) -> Result<FileSlot, PathProblem> {
        let io_problem = |error: io::Error| PathProblem::from_io(path, &error);
        let end = confined_open::walk(self.directory(), path.as_path()).map_err(io_problem)?;
        if let Some(reason) = protection(end.components().map(OsString::as_os_str)) {
            return Err(PathProblem::Protected { path: path.clone(), reason });
        }
        let Some(name) = end.name.clone() else { return Err(PathProblem::Directory { path: path.clone() }) };
        let directory = end.directory(self.directory()).try_clone_to_owned().map_err(io_problem)?;
        Ok(FileSlot { end, directory, name })
    }
}

/// Reason why tools may not write here. Ignores letter case, as some file systems do.
pub(super) fn protection<'a>(components: impl Iterator<Item = &'a OsStr>) -> Option<&'static str> {
    let mut last = None;
    for component in components {
        if component.eq_ignore_ascii_case(".fusee") {
            return Some("it belongs to Fusee itself");
        }
        if component.eq_ignore_ascii_case(".git") {
            return Some("it belongs to git; use git commands in the shell");
        }
        last = Some(component);
    }
    last?.eq_ignore_ascii_case("fusee.toml").then_some("it says what tools may do; ask the user to change it")
}

/// Location of a file that exists or is to be created.
pub(super) struct FileSlot {
    pub(super) end: ResolvedPath,
    /// The deepest existing directory; the file's own unless `end.missing` is non-empty.
    directory: OwnedFd,
    name: OsString,
}

impl FileSlot {
    pub(super) fn read(
        &self,
        path: &WorkspacePath,
        most: u64,
    ) -> Result<Option<(Vec<u8>, Stat)>, PathProblem> {
        if !self.end.missing.is_empty() {
            return Ok(None);
        }
        let io_problem = |error: io::Error| PathProblem::from_io(path, &error);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(io_problem(error.into())),
        };
        let status = rustix::fs::fstat(&file).map_err(|error| io_problem(error.into()))?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(PathProblem::Directory { path: path.clone() }),
            _ => return Err(PathProblem::Special { path: path.clone(), kind: "a pipe, socket or device" }),
        }
        let size = status.st_size as u64;
        match read_bounded(File::from(file), size, most).map_err(io_problem)? {
            Some(content) => Ok(Some((content, status))),
            None => Err(PathProblem::TooLarge { path: path.clone(), size, most }),
        }
    }
}

/// A change in progress.
struct StagedWrite<'a> {
    change: &'a FileWrite,
    slot: FileSlot,
    temporary: OsString,
    /// Previous content, for rollback.
    old: Option<(Vec<u8>, Stat)>,
    /// Directories created for it, removed again on failure.
    made: Vec<(OwnedFd, OsString)>,
    state: StageState,
}

#[derive(PartialEq)]
enum StageState {
    Checked,
    Written,
    Committed,
}

impl<'a> StagedWrite<'a> {
    fn check(
        workspace: &Workspace,
        change: &'a FileWrite,
        token: &str,
        most: u64,
    ) -> Result<Self, ReplaceError> {
        let slot = workspace.slot(&change.path)?;
        let old = slot.read(&change.path, most)?;
        if old.as_ref().map(|(content, _)| ContentHash::of(content)) != change.before {
            return Err(ReplaceError::Changed { path: change.path.clone() });
        }
        let temporary = temporary_name(token, &change.path).into();
        Ok(Self { change, slot, temporary, old, made: Vec::new(), state: StageState::Checked })
    }

    fn write(&mut self, workspace: &Workspace) -> Result<(), PathProblem> {
        let Some(content) = &self.change.after else { return Ok(()) };
        self.make_directories(workspace)
            .and_then(|()| {
                let like = self.old.as_ref().map(|(_, status)| status);
                self.write_temporary(content, like, self.change.mode)
            })
            .map_err(|error| PathProblem::from_io(&self.change.path, &error))?;
        self.state = StageState::Written;
        Ok(())
    }

    fn make_directories(&mut self, workspace: &Workspace) -> io::Result<()> {
        let missing = self.slot.end.missing.clone();
        let mut parent = self.slot.directory.try_clone()?;
        self.slot.end.make_directories(workspace.directory())?;
        self.slot.directory = self.slot.end.directory(workspace.directory()).try_clone_to_owned()?;
        for name in missing {
            let next = rustix::fs::openat(&parent, &name, confined_open::DIRECTORY, Mode::empty())?;
            self.made.push((parent, name));
            parent = next;
        }
        Ok(())
    }

    fn write_temporary(&self, content: &[u8], like: Option<&Stat>, mode: Option<u32>) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create =
            || rustix::fs::openat(&self.slot.directory, &self.temporary, flags, Mode::from_raw_mode(0o666));
        let descriptor = match create() {
            // Left behind by an interrupted attempt of the same call.
            Err(Errno::EXIST) => {
                rustix::fs::unlinkat(&self.slot.directory, &self.temporary, AtFlags::empty())?;
                create()?
            }
            result => result?,
        };
        let written = (|| {
            let mut file = File::from(descriptor);
            file.write_all(content)?;
            if let Some(status) = like {
                keep_owner(&file, status)?;
            }
            if let Some(mode) = mode.or(like.map(|status| file_status::mode(status) & 0o7777)) {
                rustix::fs::fchmod(&file, file_status::permissions(mode))?;
            }
            Ok(())
        })();
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.slot.directory, &self.temporary, AtFlags::empty());
        }
        written
    }

    fn commit(&mut self) -> Result<(), ReplaceError> {
        let (directory, name) = (&self.slot.directory, &self.slot.name);
        let done = match (&self.change.after, &self.old) {
            (Some(_), Some(_)) => rustix::fs::renameat(directory, &self.temporary, directory, name),
            (Some(_), None) => self.rename_to_new(),
            (None, Some(_)) => rustix::fs::unlinkat(directory, name, AtFlags::empty()),
            (None, None) => Ok(()),
        };
        match done {
            Ok(()) => {
                self.state = StageState::Committed;
                Ok(())
            }
            // A file was created concurrently.
            Err(Errno::EXIST) => Err(ReplaceError::Changed { path: self.change.path.clone() }),
            Err(error) => Err(PathProblem::from_io(&self.change.path, &error.into()).into()),
        }
    }

    fn rename_to_new(&self) -> rustix::io::Result<()> {
        let (directory, name) = (&self.slot.directory, &self.slot.name);
        match rustix::fs::renameat_with(directory, &self.temporary, directory, name, RenameFlags::NOREPLACE) {
            // The file system lacks NOREPLACE; a hard link also fails if the target exists.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(directory, &self.temporary, directory, name, AtFlags::empty())?;
                rustix::fs::unlinkat(directory, &self.temporary, AtFlags::empty())
            }
            result => result,
        }
    }

    /// Restores the previous content.
    fn undo(&mut self) -> Result<(), ()> {
        if self.state != StageState::Committed {
            return Ok(());
        }
        let (directory, name) = (&self.slot.directory, &self.slot.name);
        match &self.old {
            None => rustix::fs::unlinkat(directory, name, AtFlags::empty()).map_err(drop)?,
            Some((content, status)) => {
                self.write_temporary(content, Some(status), None).map_err(drop)?;
                rustix::fs::renameat(directory, &self.temporary, directory, name).map_err(drop)?;
            }
        }
        self.state = StageState::Checked;
        Ok(())
    }

    /// Removes the temporary file and created directories of an uncommitted change.
    fn discard(&mut self) {
        if self.state == StageState::Committed {
            return;
        }
        if self.state == StageState::Written {
            let _ = rustix::fs::unlinkat(&self.slot.directory, &self.temporary, AtFlags::empty());
        }
        for (parent, name) in self.made.drain(..).rev() {
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Keeps the owner of a file that belongs to another user, if permitted.
fn keep_owner(file: &File, status: &Stat) -> io::Result<()> {
    let own = rustix::fs::fstat(file.as_fd())?;
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid) {
        let owner = (Some(Uid::from_raw(status.st_uid)), Some(Gid::from_raw(status.st_gid)));
        match rustix::fs::fchown(file.as_fd(), owner.0, owner.1) {
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn temporary_name(token: &str, path: &WorkspacePath) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(token.as_bytes()).update(&[0]).update(path.as_str().as_bytes());
    format!(".fusee-{}.tmp", &hasher.finalize().to_hex()[..16])
}
