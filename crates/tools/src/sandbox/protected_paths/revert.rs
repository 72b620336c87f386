//! Reverts what a command created at protected paths that did not exist before.
//!
//! This happens as soon as inotify reports a change, and again when the command and everything it started are
//! gone. Every failure is reported, because it means that something a command wrote may run outside the
//! sandbox.
#![deny(clippy::let_underscore_must_use, clippy::unused_result_ok)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FileType;
use rustix::fs::inotify::{CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::entry::Entry;
use super::git_settings::{PLAIN_SETTINGS, has_only_safe_settings};
use super::report::ProtectionReport;
use crate::sandbox::policy::CreatedPathAction;

/// Maximum size in bytes of repository settings that are parsed; a new repository has about 100 bytes.
const MAX_SETTINGS: u64 = 64 * 1024;

/// Permissions of settings that replace a command's.
const PLAIN_MODE: u32 = 0o644;

/// Watches protected paths that did not exist when the command began.
pub(in crate::sandbox) struct Watch<'w> {
    paths: Vec<(&'w Path, CreatedPathAction)>,
    /// Work trees whose index may link to repositories.
    trees: Vec<&'w Path>,
    news: Option<OwnedFd>,
}

impl<'w> Watch<'w> {
    pub(in crate::sandbox) fn over(paths: Vec<(&'w Path, CreatedPathAction)>) -> Self {
        let (linking, paths): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|(_, on_create)| *on_create == CreatedPathAction::Linking);
        let trees = linking.into_iter().map(|(path, _)| path).collect();
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        // Without inotify (its limit was reached), what was created is found at the end.
        let news = if paths.is_empty() { None } else { rustix::fs::inotify::init(flags).ok() };
        let watch = Self { paths, trees, news };
        watch.listen();
        watch
    }

    /// A descriptor that becomes readable when something may have been created.
    pub(in crate::sandbox) fn readable_fd(&self) -> Option<&OwnedFd> {
        self.news.as_ref()
    }

    /// Reverts what was created so far.
    pub(in crate::sandbox) fn undo(&self, report: &mut ProtectionReport) {
        if let Some(news) = &self.news {
            let mut buffer = [0u8; 4096];
            while rustix::io::read(news, &mut buffer).is_ok_and(|length| length > 0) {}
            // A directory that was created meanwhile may contain protected paths.
            self.listen();
        }
        for (path, on_create) in &self.paths {
            revert_at(path, *on_create, report);
        }
    }

    /// Like [`Self::undo`], when the command has ended. Only now are the repositories checked that its work
    /// trees link to: this reads git's index, which a command may write many times.
    pub(in crate::sandbox) fn revert_at_end(&self, kept: &dyn Fn(&Path) -> bool) -> ProtectionReport {
        let trees = self.trees.iter().map(|tree| (*tree, CreatedPathAction::Linking));
        check(self.paths.iter().copied().chain(trees), kept)
    }

    fn listen(&self) {
        let Some(news) = &self.news else { return };
        let made_there = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let mut directories: BTreeMap<&Path, WatchFlags> = BTreeMap::new();
        for (path, on_create) in &self.paths {
            let mut watch = |directory: &'w Path, flags: WatchFlags| {
                *directories.entry(directory).or_insert(WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW) |=
                    flags;
            };
            // Only settings are also checked when they are modified: a command may write to files next to the
            // others all the time.
            let flags = if *on_create == CreatedPathAction::Sanitized {
                made_there | WatchFlags::MODIFY
            } else {
                made_there
            };
            path.parent().into_iter().for_each(|parent| watch(parent, flags));
            if *on_create == CreatedPathAction::WithoutHooks {
                watch(path, made_there);
            }
        }
        for (directory, flags) in directories {
            // A directory that does not exist yet is watched once it does; any other failure only means that
            // changes in it are found at the end.
            #[expect(clippy::let_underscore_must_use, reason = "the check at the end does not depend on it")]
            let _ = rustix::fs::inotify::add_watch(news, directory, flags);
        }
    }
}

/// Reverts what was created at any of these paths, when no process of the command is left. Repositories whose
/// `.git` is `kept` cannot have been changed.
pub(in crate::sandbox) fn check<'p>(
    paths: impl Iterator<Item = (&'p Path, CreatedPathAction)>,
    kept: &dyn Fn(&Path) -> bool,
) -> ProtectionReport {
    let mut report = ProtectionReport::default();
    let mut trees = Vec::new();
    for (path, on_create) in paths {
        if on_create == CreatedPathAction::Linking {
            trees.push(path);
        } else {
            revert_at(path, on_create, &mut report);
        }
    }
    trees.into_iter().for_each(|tree| super::sanitize_nested(tree, kept, &mut report));
    report
}

/// Reverts what was created at a protected path.
pub(in crate::sandbox) fn revert_at(
    path: &Path,
    on_create: CreatedPathAction,
    report: &mut ProtectionReport,
) {
    match Entry::at(path) {
        Ok(Some(entry)) => revert_entry(&entry, path, on_create, report),
        Ok(None) => {}
        Err(error) => report.note_failure(path, &error),
    }
}

fn revert_entry(entry: &Entry, path: &Path, on_create: CreatedPathAction, report: &mut ProtectionReport) {
    if on_create == CreatedPathAction::WithoutHooks && matches!(entry.kind(), Ok(Some(FileType::Directory))) {
        return without_hooks(entry, path, report);
    }
    match is_fine(entry, on_create) {
        Ok(true) => return,
        Ok(false) => {}
        Err(error) => return report.note_failure(path, &error),
    }
    let reverted = entry.set_aside().and_then(|()| {
        if on_create == CreatedPathAction::Sanitized {
            // Without settings the directory would not be a repository. Keep it a plain one.
            entry.create(PLAIN_SETTINGS.as_bytes(), PLAIN_MODE)?;
        }
        if is_fine(entry, on_create)? { Ok(()) } else { Err(Errno::AGAIN.into()) }
    });
    match reverted {
        Ok(()) => report.note_reverted(path),
        Err(error) => report.note_failure(path, &error),
    }
}

/// Whether what is at a protected path may stay.
fn is_fine(entry: &Entry, on_create: CreatedPathAction) -> io::Result<bool> {
    let Some(kind) = entry.kind()? else { return Ok(true) };
    Ok(match on_create {
        // Nothing is created at this path itself; `nested_repos` checks what it links to.
        CreatedPathAction::Linking => true,
        CreatedPathAction::UnlessDirectory => kind == FileType::Directory,
        CreatedPathAction::Sanitized if kind == FileType::RegularFile => match entry.read(MAX_SETTINGS) {
            Ok((_, text)) => has_only_safe_settings(&text),
            Err(error) if error.raw_os_error() == Some(libc::EFBIG) => false,
            Err(error) => return Err(error),
        },
        CreatedPathAction::SetAside | CreatedPathAction::WithoutHooks | CreatedPathAction::Sanitized => false,
    })
}

/// Sets aside the hooks that git would run, and leaves its own samples.
fn without_hooks(directory: &Entry, path: &Path, report: &mut ProtectionReport) {
    let names = match directory.names() {
        Ok(names) => names,
        Err(error) => return report.note_failure(path, &error),
    };
    for (name, _) in names.into_iter().filter(|(name, _)| is_hook(name)) {
        let inner = path.join(&name);
        match directory.child(&name).and_then(|hook| hook.map_or(Ok(()), |hook| hook.set_aside())) {
            Ok(()) => report.note_reverted(&inner),
            Err(error) => report.note_failure(&inner, &error),
        }
    }
}

/// Git only runs files whose name is exactly that of a hook, without an extension.
pub(in crate::sandbox) fn is_hook(name: &OsStr) -> bool {
    Path::new(name).extension().is_none()
}

#[cfg(test)]
mod tests;
