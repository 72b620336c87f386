//! Backup of settings that decide what runs outside the sandbox: taken before a command, restored after it.
//! Landlock cannot make a part of the writable workspace read-only, so changes are reverted instead.
//!
//! `guard::undo` does the same for paths that did not exist before.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};

use crate::sandbox::policy::CreatedPathAction;
use crate::sandbox::protected_paths::{Undone, revert_at, sanitize_nested};

/// Maximum size of a backup, in total and per file. Settings and hooks take a few kilobytes.
const MOST_BYTES: u64 = 4 << 20;
/// Maximum number of directory entries examined.
const MAX_ENTRIES: usize = 4096;

/// Files that git reads settings from, anywhere in a repository.
const SETTINGS: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];
/// Directories of a repository that hold many files but neither settings nor hooks.
const PASSED_BY: [&str; 6] = ["objects", "refs", "logs", "lfs", "info", "rebase-merge"];
const HOOKS: &str = "hooks";

/// The protected paths as they were before a command.
#[derive(Debug, Default)]
pub(crate) struct SettingsBackup<'p> {
    files: Vec<SettingsFile>,
    /// Hook directories, in which no hook may be added.
    hooks: Vec<PathBuf>,
    /// Paths that did not exist, and directories that must not be replaced by anything else.
    absent: Vec<(&'p Path, CreatedPathAction)>,
    /// Work trees whose index may link to repositories.
    trees: Vec<&'p Path>,
    /// All protected paths.
    guarded: Vec<&'p Path>,
    bytes: u64,
    entries: usize,
}

#[derive(Debug)]
struct SettingsFile {
    path: PathBuf,
    mode: u32,
    content: Vec<u8>,
}

impl<'p> SettingsBackup<'p> {
    /// Records the protected paths before a command.
    pub(crate) fn of(guarded: &[(&'p Path, CreatedPathAction)]) -> io::Result<Self> {
        let mut kept = Self { guarded: guarded.iter().map(|(path, _)| *path).collect(), ..Self::default() };
        for &(path, made) in guarded {
            match path.symlink_metadata() {
                _ if made == CreatedPathAction::Linking => kept.trees.push(path),
                Ok(status) if status.is_file() => kept.keep_file(path)?,
                Ok(status) if status.is_dir() && made == CreatedPathAction::UnlessDirectory => {
                    kept.absent.push((path, made))
                }
                Ok(status) if status.is_dir() => kept.keep_directory(path)?,
                // A link stays one, and its target is outside the workspace or not protected.
                Ok(_) => {}
                Err(_) => kept.absent.push((path, made)),
            }
        }
        Ok(kept)
    }

    fn keep_directory(&mut self, directory: &Path) -> io::Result<()> {
        let is_hooks = directory.file_name() == Some(OsStr::new(HOOKS));
        if is_hooks {
            self.hooks.push(directory.to_owned());
        }
        let Ok(opened) = open(directory, OFlags::DIRECTORY) else { return Ok(()) };
        for entry in Dir::read_from(&opened)?.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." || PASSED_BY.iter().any(|passed| name == *passed) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(too_much());
            }
            let path = directory.join(name);
            let wanted = if is_hooks { is_hook(&path) } else { SETTINGS.iter().any(|known| name == *known) };
            match entry.file_type() {
                FileType::Directory => self.keep_directory(&path)?,
                FileType::RegularFile if wanted => self.keep_file(&path)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn keep_file(&mut self, path: &Path) -> io::Result<()> {
        let (mode, content) = read(path)?;
        self.bytes += content.len() as u64;
        if self.bytes > MOST_BYTES {
            return Err(too_much());
        }
        self.files.push(SettingsFile { path: path.to_owned(), mode, content });
        Ok(())
    }

    /// Restores what was changed since and sets aside what was created. Must be called when no process of the
    /// command is left, by a process that can reach no more than the command could.
    pub(crate) fn restore(&self) -> Undone {
        let mut undone = Undone::Nothing;
        for &(path, made) in &self.absent {
            if revert_at(path, made) == Undone::Something {
                undone = Undone::Something;
            }
        }
        for file in &self.files {
            if !read(&file.path).is_ok_and(|(mode, content)| mode == file.mode && content == file.content) {
                undone = Undone::Something;
                // If the directory was removed with its settings, there is no repository to restore them to.
                let _ = file.write();
            }
        }
        for hooks in &self.hooks {
            let entries = fs::read_dir(hooks).into_iter().flatten().flatten().map(|entry| entry.path());
            for added in entries.filter(|path| is_hook(path) && !self.has(path)) {
                if revert_at(&added, CreatedPathAction::SetAside) == Undone::Something {
                    undone = Undone::Something;
                }
            }
        }
        // Last, because the backed-up files are restored by now.
        let is_guarded = |git: &Path| self.guarded.contains(&git);
        self.trees.iter().map(|tree| sanitize_nested(tree, &is_guarded)).fold(undone, Undone::or)
    }

    fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.path == path)
    }
}

impl SettingsFile {
    fn write(&self) -> io::Result<()> {
        if !self.path.parent().is_some_and(|parent| parent.is_dir()) {
            return Ok(());
        }
        let _ = fs::remove_file(&self.path).or_else(|_| fs::remove_dir_all(&self.path));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(self.mode).open(&self.path)?;
        io::Write::write_all(&mut file, &self.content)?;
        file.set_permissions(fs::Permissions::from_mode(self.mode))
    }
}

/// Git only runs files whose name is exactly that of a hook, without an extension.
fn is_hook(path: &Path) -> bool {
    path.extension().is_none()
}

/// Opens without following symbolic links: another command of the run may replace a component at any time.
fn open(path: &Path, flags: OFlags) -> io::Result<std::os::fd::OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

fn read(path: &Path) -> io::Result<(u32, Vec<u8>)> {
    let file = fs::File::from(open(path, OFlags::empty())?);
    let status = file.metadata()?;
    if !status.is_file() || status.len() > MOST_BYTES {
        return Err(too_much());
    }
    let mut content = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    Ok((status.permissions().mode() & 0o777, content))
}

fn too_much() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}

#[cfg(test)]
mod tests;
