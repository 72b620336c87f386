//! Taking back what a command made where it may not: at guarded paths that did not exist before.
//!
//! It happens as soon as the system tells of it, and once more when the command and all it started are gone.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, WatchFlags};

use crate::sandbox::policy::Made;

/// Longest settings of a repository that are looked at; a new one's are a tenth of a kilobyte.
const MOST_SETTINGS: u64 = 64 * 1024;

/// What may stand in the settings of a repository that a command made: nothing that names a program or a file.
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

/// What `git init` writes.
const PLAIN_SETTINGS: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

/// Whether something was taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sandbox) enum Undone {
    #[default]
    Nothing,
    Something,
}

/// Guarded paths that did not exist when the command began.
pub(in crate::sandbox) struct Watch<'w> {
    paths: Vec<(&'w Path, Made)>,
    news: Option<OwnedFd>,
}

impl<'w> Watch<'w> {
    pub(in crate::sandbox) fn over(paths: Vec<(&'w Path, Made)>) -> Self {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        // Without it (a system's limit was reached) what was made is found at the end.
        let news = if paths.is_empty() { None } else { rustix::fs::inotify::init(flags).ok() };
        let watch = Self { paths, news };
        watch.listen();
        watch
    }

    /// Readable when something may have been made.
    pub(in crate::sandbox) fn news(&self) -> Option<&OwnedFd> {
        self.news.as_ref()
    }

    /// Takes back what was made.
    pub(in crate::sandbox) fn undo(&self) -> Undone {
        if let Some(news) = &self.news {
            let mut buffer = [0u8; 4096];
            while rustix::io::read(news, &mut buffer).is_ok_and(|length| length > 0) {}
            // A directory that was made since may hold guarded paths.
            self.listen();
        }
        let mut undone = Undone::Nothing;
        for (path, made) in &self.paths {
            if undo(path, *made) == Undone::Something {
                undone = Undone::Something;
            }
        }
        undone
    }

    fn listen(&self) {
        let Some(news) = &self.news else { return };
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        for (path, made) in &self.paths {
            let inside = match made {
                Made::WithoutHooks => Some(*path),
                Made::Removed | Made::Tamed | Made::UnlessDirectory => None,
            };
            for directory in path.parent().into_iter().chain(inside) {
                let _ = rustix::fs::inotify::add_watch(news, directory, flags);
            }
        }
    }
}

fn undo(path: &Path, made: Made) -> Undone {
    let Ok(status) = path.symlink_metadata() else { return Undone::Nothing };
    let fine = match made {
        Made::Removed => false,
        Made::UnlessDirectory => status.is_dir(),
        Made::WithoutHooks if status.is_dir() => return remove_hooks(path),
        Made::Tamed if status.is_file() => is_tame(path, status.len()),
        Made::WithoutHooks | Made::Tamed => false,
    };
    if fine {
        return Undone::Nothing;
    }
    remove(path, status.is_dir());
    if made == Made::Tamed {
        // Without settings the directory would be no repository. It was one, if a plain one.
        let _ = fs::write(path, PLAIN_SETTINGS);
    }
    Undone::Something
}

fn remove(path: &Path, is_directory: bool) {
    let result = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    // A directory that was made unreadable can still be moved out of the way.
    if result.is_err() && path.symlink_metadata().is_ok() {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".refused");
        let _ = fs::rename(path, aside);
    }
}

/// Removes what git would run, and leaves the samples it puts there itself.
fn remove_hooks(directory: &Path) -> Undone {
    let mut undone = Undone::Nothing;
    let Ok(entries) = fs::read_dir(directory) else {
        remove(directory, true);
        return Undone::Something;
    };
    for entry in entries.flatten() {
        if entry.path().extension() != Some(OsStr::new("sample")) {
            remove(&entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
            undone = Undone::Something;
        }
    }
    undone
}

fn is_tame(path: &Path, length: u64) -> bool {
    let read = || -> io::Result<Vec<u8>> { fs::read(path) };
    length <= MOST_SETTINGS && read().is_ok_and(|text| says_only_tame_things(&text))
}

fn says_only_tame_things(text: &[u8]) -> bool {
    let mut section: Option<&[&str]> = None;
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).all(|line| match line.first() {
        None | Some(b'#' | b';') => true,
        Some(b'[') => {
            // Nothing may stand behind a section's name: git would take it for a setting.
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
