//! Backup of settings that decide what runs outside the sandbox: taken before a command, restored after it.
//! Landlock cannot make a part of the writable workspace read-only, and a mount cannot cover repositories that appear
//! later, so changes are reverted instead.
//!
//! `revert` does the same for paths that did not exist before.
#![deny(clippy::let_underscore_must_use, clippy::unused_result_ok)]

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::entry::Entry;
use super::report::ProtectionReport;
use super::{is_hook, revert_at, sanitize_nested};
use crate::sandbox::policy::CreatedPathAction;

/// Maximum size of a backup, in total and per file. Settings and hooks take a few kilobytes.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of directory entries examined.
const MAX_ENTRIES: usize = 4096;

/// Files that git reads settings from, anywhere in a repository.
const SETTINGS: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];
/// Directories of a repository that hold many files but neither settings nor hooks.
const SKIPPED_DIRS: [&str; 6] = ["objects", "refs", "logs", "lfs", "info", "rebase-merge"];
const HOOKS: &str = "hooks";

/// The protected paths as they were before a command.
#[derive(Debug, Default)]
pub(crate) struct SettingsBackup {
    files: Vec<SettingsFile>,
    /// Hook directories, in which no hook may be added.
    hooks: Vec<PathBuf>,
    /// Paths that did not exist, and directories that must not be replaced by anything else.
    absent: Vec<(PathBuf, CreatedPathAction)>,
    /// Work trees whose index may link to repositories.
    trees: Vec<PathBuf>,
    /// All protected paths.
    guarded: Vec<PathBuf>,
    bytes: u64,
    entries: usize,
}

#[derive(Debug)]
struct SettingsFile {
    path: PathBuf,
    mode: u32,
    content: Vec<u8>,
}

impl SettingsBackup {
    /// Records the protected paths before a command.
    pub(crate) fn create(guarded: &[(&Path, CreatedPathAction)]) -> io::Result<Self> {
        let mut kept =
            Self { guarded: guarded.iter().map(|(path, _)| path.to_path_buf()).collect(), ..Self::default() };
        for &(path, on_create) in guarded {
            if on_create == CreatedPathAction::Linking {
                kept.trees.push(path.to_owned());
                continue;
            }
            let Some(entry) = Entry::at(path)? else {
                kept.absent.push((path.to_owned(), on_create));
                continue;
            };
            match entry.kind()? {
                None => kept.absent.push((path.to_owned(), on_create)),
                Some(FileType::RegularFile) => kept.keep_file(&entry, path)?,
                Some(FileType::Directory) if on_create == CreatedPathAction::UnlessDirectory => {
                    kept.absent.push((path.to_owned(), on_create));
                }
                Some(FileType::Directory) => {
                    let is_hooks = on_create == CreatedPathAction::WithoutHooks;
                    kept.keep_directory(&entry, path, is_hooks)?;
                }
                // A link stays one, and its target is outside the workspace or not protected.
                Some(_) => {}
            }
        }
        Ok(kept)
    }

    fn keep_directory(&mut self, directory: &Entry, path: &Path, is_hooks: bool) -> io::Result<()> {
        if is_hooks {
            self.hooks.push(path.to_owned());
        }
        for (name, kind) in directory.names()? {
            if SKIPPED_DIRS.iter().any(|passed| name == *passed) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(Errno::FBIG.into());
            }
            let inner = path.join(&name);
            let wanted = if is_hooks { is_hook(&name) } else { SETTINGS.iter().any(|known| name == *known) };
            if kind != FileType::Directory && !(kind == FileType::RegularFile && wanted) {
                continue;
            }
            let Some(entry) = directory.child(&name)? else { continue };
            if kind == FileType::Directory {
                self.keep_directory(&entry, &inner, is_hooks || name == HOOKS)?;
            } else {
                self.keep_file(&entry, &inner)?;
            }
        }
        Ok(())
    }

    fn keep_file(&mut self, entry: &Entry, path: &Path) -> io::Result<()> {
        let (mode, content) = entry.read(MAX_BYTES)?;
        self.bytes += content.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err(Errno::FBIG.into());
        }
        self.files.push(SettingsFile { path: path.to_owned(), mode, content });
        Ok(())
    }

    /// Restores what was changed since and sets aside what was created. Must be called when no process of the
    /// command is left.
    pub(crate) fn restore(&self) -> ProtectionReport {
        let mut report = ProtectionReport::default();
        for (path, on_create) in &self.absent {
            revert_at(path, *on_create, &mut report);
        }
        for file in &self.files {
            match file.restore() {
                Ok(false) => {}
                Ok(true) => report.note_reverted(&file.path),
                Err(error) => report.note_failure(&file.path, &error),
            }
        }
        for hooks in &self.hooks {
            self.revert_added_hooks(hooks, &mut report);
        }
        // Last, because the backed-up files are restored by now.
        let is_guarded = |git: &Path| self.guarded.iter().any(|guarded| guarded == git);
        self.trees.iter().for_each(|tree| sanitize_nested(tree, &is_guarded, &mut report));
        report
    }

    fn revert_added_hooks(&self, hooks: &Path, report: &mut ProtectionReport) {
        let directory =
            Entry::at(hooks).and_then(|entry| Ok((entry.as_ref().map_or(Ok(None), Entry::kind)?, entry)));
        let names = match directory {
            Ok((Some(FileType::Directory), Some(entry))) => entry.names(),
            // Replaced by something else: nothing in there is a hook directory's.
            Ok((Some(_), _)) => return revert_at(hooks, CreatedPathAction::SetAside, report),
            Ok(_) => return,
            Err(error) => Err(error),
        };
        let names = match names {
            Ok(names) => names,
            Err(error) => return report.note_failure(hooks, &error),
        };
        for (name, _) in names.iter().filter(|(name, _)| is_hook(name)) {
            let added = hooks.join(name);
            if !self.files.iter().any(|file| file.path == added) {
                revert_at(&added, CreatedPathAction::SetAside, report);
            }
        }
    }
}

impl SettingsFile {
    /// Restores the file if it was changed; returns whether it was.
    fn restore(&self) -> io::Result<bool> {
        // If the directory was removed with its settings, there is no repository to restore them to.
        let Some(entry) = Entry::at(&self.path)? else { return Ok(false) };
        if self.is_unchanged(&entry)? {
            return Ok(false);
        }
        entry.set_aside()?;
        entry.create(&self.content, self.mode)?;
        if self.is_unchanged(&entry)? { Ok(true) } else { Err(Errno::AGAIN.into()) }
    }

    fn is_unchanged(&self, entry: &Entry) -> io::Result<bool> {
        Ok(match entry.status()? {
            Some(status) if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile => {
                // Compared before reading, which makes an unreadable file readable.
                status.st_mode & 0o777 == self.mode
                    && status.st_size.unsigned_abs() == self.content.len() as u64
                    && entry.read(MAX_BYTES)?.1 == self.content
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests;
