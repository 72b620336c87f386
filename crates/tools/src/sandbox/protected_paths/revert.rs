//! Reverts what a command created at protected paths that did not exist before.
//!
//! This happens as soon as inotify reports a change, and again when the command and everything it started are
//! gone.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, WatchFlags};

use crate::sandbox::policy::CreatedPathAction;
use crate::workspace::bounded_read;

/// Maximum size in bytes of repository settings that are parsed; a new repository has about 100 bytes.
const MAX_SETTINGS: u64 = 64 * 1024;

/// Maximum number of names tried for what is set aside.
const MAX_ASIDE: u32 = 100;

/// Settings that a repository created by a command may contain: none of them names a program or a file.
const TAME: [(&str, &[&str]); 6] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("remote", &["url", "fetch"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("extensions", &["objectformat", "refstorage"]),
];

/// The settings that `git init` writes.
const PLAIN_SETTINGS: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

/// Whether anything was reverted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sandbox) enum Undone {
    #[default]
    Nothing,
    Something,
}

impl Undone {
    /// `Something` if either is.
    pub(in crate::sandbox) fn or(self, other: Self) -> Self {
        if self == Self::Something { self } else { other }
    }
}

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
            paths.into_iter().partition(|(_, made)| *made == CreatedPathAction::Linking);
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
    pub(in crate::sandbox) fn undo(&self) -> Undone {
        if let Some(news) = &self.news {
            let mut buffer = [0u8; 4096];
            while rustix::io::read(news, &mut buffer).is_ok_and(|length| length > 0) {}
            // A directory that was created meanwhile may contain protected paths.
            self.listen();
        }
        self.paths.iter().map(|(path, made)| revert_at(path, *made)).fold(Undone::Nothing, Undone::or)
    }

    /// Like [`Self::undo`], when the command has ended. Only now are the repositories checked that its work
    /// trees link to: this reads git's index, which a command may write many times.
    pub(in crate::sandbox) fn revert_at_end(&self) -> Undone {
        let tame = |tree: &&Path| super::sanitize_nested(tree, &super::is_pinned);
        self.trees.iter().map(tame).fold(self.undo(), Undone::or)
    }

    fn listen(&self) {
        let Some(news) = &self.news else { return };
        let made_there = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let mut directories: BTreeMap<&Path, WatchFlags> = BTreeMap::new();
        for (path, made) in &self.paths {
            let mut watch = |directory: &'w Path, flags: WatchFlags| {
                *directories.entry(directory).or_insert(WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW) |=
                    flags;
            };
            // Only settings are also checked when they are modified: a command may write to files next to the
            // others all the time.
            let flags = if *made == CreatedPathAction::Sanitized {
                made_there | WatchFlags::MODIFY
            } else {
                made_there
            };
            path.parent().into_iter().for_each(|parent| watch(parent, flags));
            if *made == CreatedPathAction::WithoutHooks {
                watch(path, made_there);
            }
        }
        for (directory, flags) in directories {
            let _ = rustix::fs::inotify::add_watch(news, directory, flags);
        }
    }
}

/// Reverts what was created at a protected path.
pub(in crate::sandbox) fn revert_at(path: &Path, made: CreatedPathAction) -> Undone {
    let Ok(status) = path.symlink_metadata() else { return Undone::Nothing };
    let fine = match made {
        // Nothing is created at this path itself; `nested` checks what it links to.
        CreatedPathAction::Linking => return Undone::Nothing,
        CreatedPathAction::SetAside => false,
        CreatedPathAction::UnlessDirectory => status.is_dir(),
        CreatedPathAction::WithoutHooks if status.is_dir() => return without_hooks(path),
        CreatedPathAction::Sanitized if status.is_file() => is_sanitized(path),
        CreatedPathAction::WithoutHooks | CreatedPathAction::Sanitized => false,
    };
    if fine {
        return Undone::Nothing;
    }
    set_aside(path);
    if made == CreatedPathAction::Sanitized {
        // Without settings the directory would not be a repository. Keep it a plain one.
        let _ = fs::write(path, PLAIN_SETTINGS);
    }
    Undone::Something
}

/// Renames a file to a name without meaning. It is not deleted, because the user may have created it while
/// the command ran.
fn set_aside(path: &Path) {
    for number in 1..=MAX_ASIDE {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".refused");
        if number > 1 {
            aside.push(number.to_string());
        }
        let aside = Path::new(&aside);
        if aside.symlink_metadata().is_err() && fs::rename(path, aside).is_ok() {
            return;
        }
    }
    // Only a command creates that many, so this one is not the user's.
    let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
}

/// Sets aside the hooks that git would run, and leaves its own samples.
fn without_hooks(directory: &Path) -> Undone {
    let mut undone = Undone::Nothing;
    let Ok(entries) = fs::read_dir(directory) else {
        set_aside(directory);
        return Undone::Something;
    };
    for entry in entries.flatten() {
        // Git only runs files whose name is exactly that of a hook, without an extension.
        if entry.path().extension().is_none() {
            set_aside(&entry.path());
            undone = Undone::Something;
        }
    }
    undone
}

fn is_sanitized(path: &Path) -> bool {
    bounded_read::read(path, MAX_SETTINGS).is_ok_and(|text| has_only_safe_settings(&text))
}

fn has_only_safe_settings(text: &[u8]) -> bool {
    let mut section: Option<&[&str]> = None;
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).all(|line| match line.first() {
        None | Some(b'#' | b';') => true,
        Some(b'[') => {
            // Nothing may follow a section header on its line: git would parse it as a setting.
            let Some(header) = line.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) else {
                return false;
            };
            let name =
                header.split(|byte| byte.is_ascii_whitespace() || *byte == b'.').next().unwrap_or_default();
            section = TAME
                .iter()
                .find(|(tame, _)| tame.as_bytes().eq_ignore_ascii_case(name))
                .map(|(_, names)| *names);
            section.is_some() && !header.contains(&b']')
        }
        Some(_) => {
            let name = line.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            let known =
                |names: &[&str]| names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
            section.is_some_and(known) && !line.ends_with(b"\\")
        }
    })
}

#[cfg(test)]
mod tests;
