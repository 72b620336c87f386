//! Taking back what a command made where it may not: at guarded paths that did not exist before.
//!
//! It happens as soon as the system tells of it, and once more when the command and all it started are gone.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, WatchFlags};

use crate::plain;
use crate::sandbox::policy::Made;

/// Longest settings of a repository that are looked at; a new one's are a tenth of a kilobyte.
const MOST_SETTINGS: u64 = 64 * 1024;

/// Names that are tried for what is set aside.
const MOST_ASIDE: u32 = 100;

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

impl Undone {
    /// Something, if either is.
    pub(in crate::sandbox) fn or(self, other: Self) -> Self {
        if self == Self::Something { self } else { other }
    }
}

/// Guarded paths that did not exist when the command began.
pub(in crate::sandbox) struct Watch<'w> {
    paths: Vec<(&'w Path, Made)>,
    /// Work trees whose index may link to repositories.
    trees: Vec<&'w Path>,
    news: Option<OwnedFd>,
}

impl<'w> Watch<'w> {
    pub(in crate::sandbox) fn over(paths: Vec<(&'w Path, Made)>) -> Self {
        let (linking, paths): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|(_, made)| *made == Made::Linking);
        let trees = linking.into_iter().map(|(path, _)| path).collect();
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        // Without it (a system's limit was reached) what was made is found at the end.
        let news = if paths.is_empty() { None } else { rustix::fs::inotify::init(flags).ok() };
        let watch = Self { paths, trees, news };
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
        self.paths.iter().map(|(path, made)| undo_at(path, *made)).fold(Undone::Nothing, Undone::or)
    }

    /// The same when the command has ended. What its work tree links to is looked at then: it takes reading git's index,
    /// which a command may write again and again.
    pub(in crate::sandbox) fn undo_at_end(&self) -> Undone {
        let tame = |tree: &&Path| super::tame(tree, &super::is_pinned);
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
            // Only settings are also looked at when they change: a command may write to files next to the others all
            // the time.
            let flags = if *made == Made::Tamed { made_there | WatchFlags::MODIFY } else { made_there };
            path.parent().into_iter().for_each(|parent| watch(parent, flags));
            if *made == Made::WithoutHooks {
                watch(path, made_there);
            }
        }
        for (directory, flags) in directories {
            let _ = rustix::fs::inotify::add_watch(news, directory, flags);
        }
    }
}

/// Takes back what was made at a guarded path.
pub(in crate::sandbox) fn undo_at(path: &Path, made: Made) -> Undone {
    let Ok(status) = path.symlink_metadata() else { return Undone::Nothing };
    let fine = match made {
        // Nothing that is made there: `nested` looks at what it links to.
        Made::Linking => return Undone::Nothing,
        Made::SetAside => false,
        Made::UnlessDirectory => status.is_dir(),
        Made::WithoutHooks if status.is_dir() => return without_hooks(path),
        Made::Tamed if status.is_file() => is_tame(path),
        Made::WithoutHooks | Made::Tamed => false,
    };
    if fine {
        return Undone::Nothing;
    }
    set_aside(path);
    if made == Made::Tamed {
        // Without settings the directory would be no repository. It was one, if a plain one.
        let _ = fs::write(path, PLAIN_SETTINGS);
    }
    Undone::Something
}

/// Gives something a name that means nothing to anybody. It is not deleted: it may be a person's, who made it while
/// the command ran.
fn set_aside(path: &Path) {
    for number in 1..=MOST_ASIDE {
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
    // A command that made that many made this one too.
    let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
}

/// Sets aside what git would run, and leaves the samples it puts there itself.
fn without_hooks(directory: &Path) -> Undone {
    let mut undone = Undone::Nothing;
    let Ok(entries) = fs::read_dir(directory) else {
        set_aside(directory);
        return Undone::Something;
    };
    for entry in entries.flatten() {
        // Git runs only what has exactly a hook's name, without a dot.
        if entry.path().extension().is_none() {
            set_aside(&entry.path());
            undone = Undone::Something;
        }
    }
    undone
}

fn is_tame(path: &Path) -> bool {
    plain::read(path, MOST_SETTINGS).is_ok_and(|text| says_only_tame_things(&text))
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
