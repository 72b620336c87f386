//! Repositories anywhere in the workspace: whatever git would accept as one, found by content.
//!
//! Git runs what the settings and hooks of a repository say as soon as the user enters its directory, whether
//! the work tree links to it or not. So the workspace is searched when a command has ended. What the command
//! created may contain the settings of a new repository and no hooks; what existed before is restored. The
//! same holds for files in the workspace that the settings of its own repository execute or include
//! (`git_references`).
//!
//! A search looks at every directory, and lists those that changed since the last one.
#![deny(clippy::let_underscore_must_use, clippy::unused_result_ok)]

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use super::entry::Entry;
use super::report::ProtectionReport;
use super::{git_references, revert_at, submodules};
use crate::sandbox::landlock::settings_backup::SettingsBackup;
use crate::sandbox::policy::{CreatedPathAction, of_a_repository};

/// Maximum number of directories searched. Beyond it, what a command creates is not found.
const MAX_DIRECTORIES: usize = 100_000;

/// Maximum depth of directories searched.
const MAX_DEPTH: usize = 64;

/// Up to this many directories, searching inline is faster than waking another thread.
const FEW: usize = 64;

/// A directory that changed this shortly before it was listed may change again without its time moving.
const FRESH_NS: i128 = 20_000_000;

/// Directories of a repository that hold many files and no other repository.
const PASSED_BY: [&str; 5] = ["objects", "refs", "logs", "lfs", "info"];

/// Watches for repositories in a workspace.
#[derive(Debug)]
pub(crate) struct RepositoryWatch {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of commands that are running.
    running: usize,
    /// What was found by the last search; `None` before the first.
    tree: Option<HashMap<PathBuf, Directory>>,
    /// The git directories and pointers to them, and their settings.
    known: BTreeMap<PathBuf, SettingsBackup>,
    /// Files that the settings of the workspace's repository refer to.
    referenced: SettingsBackup,
}

/// A directory when it was last listed.
#[derive(Debug, Default)]
struct Directory {
    /// `None` if it may change without this moving.
    changed_ns: Option<i128>,
    inner: Vec<OsString>,
    /// Whether git would take it for the directory of a repository.
    is_repository: bool,
    /// Whether it contains a `.git` that is not a directory.
    has_pointer: bool,
}

impl RepositoryWatch {
    pub(crate) fn over(root: PathBuf) -> Self {
        Self { root, state: Mutex::new(State::default()) }
    }

    /// Records the state before a command.
    pub(crate) async fn begin(self: &Arc<Self>) -> WatchedCommand {
        self.blocking(Self::record).await;
        WatchedCommand(Arc::clone(self))
    }

    async fn blocking<T: Default + Send + 'static>(self: &Arc<Self>, work: fn(&Self) -> T) -> T {
        let few = self.state.lock().tree.as_ref().is_some_and(|tree| tree.len() <= FEW);
        if few {
            return work(self);
        }
        let watch = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&watch)).await.unwrap_or_default()
    }

    fn record(&self) {
        let mut state = self.state.lock();
        if state.tree.is_none() {
            let tree = self.search(&HashMap::new());
            state.known = found(&tree).map(|path| (path.clone(), backup(&path))).collect();
            state.tree = Some(tree);
        } else if state.running == 0 {
            // What changed since the last command was changed by the user.
            state.known.iter_mut().for_each(|(path, kept)| *kept = backup(path));
        }
        if state.running == 0 {
            state.referenced = git_references::backup(&self.root);
        }
        state.running += 1;
    }

    fn check(&self) -> ProtectionReport {
        let mut report = ProtectionReport::default();
        let mut state = self.state.lock();
        let tree = self.search(&state.tree.take().unwrap_or_default());
        for path in found(&tree) {
            match state.known.get(&path) {
                Some(kept) => report.add(kept.restore()),
                None => {
                    self.sanitize(&path, &mut report);
                    state.known.insert(path.clone(), backup(&path));
                }
            }
        }
        report.add(state.referenced.restore());
        state.known.retain(|path, _| path.symlink_metadata().is_ok());
        state.tree = Some(tree);
        report
    }

    /// Reverts what a new repository must not contain.
    fn sanitize(&self, path: &Path, report: &mut ProtectionReport) {
        let is_pointer = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if !is_pointer {
            for (inner, made) in of_a_repository(path) {
                let is_commondir = inner.file_name() == Some(OsStr::new("commondir"));
                if !(is_commondir && self.is_work_tree_of_ours(path)) {
                    revert_at(&inner, made, report);
                }
            }
            return;
        }
        // A file that leads to a repository, or a link. Repositories in the workspace are found themselves.
        let own = submodules::git_folder(&self.root).and_then(|folder| folder.canonicalize().ok());
        let target = submodules::pointed_at(path).and_then(|target| target.canonicalize().ok());
        let is_ours = match (&own, &target) {
            (Some(own), Some(target)) => {
                ["modules", "worktrees"].iter().any(|name| target.starts_with(own.join(name)))
            }
            _ => false,
        };
        if !is_ours {
            revert_at(path, CreatedPathAction::SetAside, report);
        }
    }

    /// Whether a git directory is that of another work tree of the workspace's repository.
    fn is_work_tree_of_ours(&self, path: &Path) -> bool {
        let own = self.root.join(".git/worktrees");
        let common = std::fs::read_to_string(path.join("commondir"));
        path.parent() == Some(&*own) && common.is_ok_and(|text| text.trim() == "../..")
    }

    /// Searches the workspace; directories that have not changed since `before` are not listed again.
    fn search(&self, before: &HashMap<PathBuf, Directory>) -> HashMap<PathBuf, Directory> {
        let mut tree = HashMap::with_capacity(before.len());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(root) = rustix::fs::openat(CWD, &self.root, flags, Mode::empty()) {
            visit(&root, &self.root, 0, before, &mut tree);
        }
        tree
    }
}

/// A command between the recording of the state and its check.
pub(crate) struct WatchedCommand(Arc<RepositoryWatch>);

impl WatchedCommand {
    /// Checks the workspace after the command.
    pub(crate) async fn end(self) -> ProtectionReport {
        self.0.blocking(RepositoryWatch::check).await
    }
}

impl Drop for WatchedCommand {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.running = state.running.saturating_sub(1);
    }
}

/// The git directories and pointers in a tree. The workspace's own repository is protected separately.
fn found(tree: &HashMap<PathBuf, Directory>) -> impl Iterator<Item = PathBuf> + '_ {
    tree.iter().flat_map(|(path, directory)| {
        let repository = directory.is_repository.then(|| path.clone());
        let pointer = directory.has_pointer.then(|| path.join(".git"));
        repository.into_iter().chain(pointer)
    })
}

/// The settings of a git directory, or a pointer to one. What is too large is not restored, but set aside if
/// it changes its kind.
fn backup(path: &Path) -> SettingsBackup {
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let paths = if is_directory {
        of_a_repository(path).to_vec()
    } else {
        vec![(path.to_owned(), CreatedPathAction::SetAside)]
    };
    let paths: Vec<(&Path, CreatedPathAction)> =
        paths.iter().map(|(path, made)| (path.as_path(), *made)).collect();
    SettingsBackup::of(&paths).unwrap_or_default()
}

fn visit(
    directory: &OwnedFd,
    path: &Path,
    depth: usize,
    before: &HashMap<PathBuf, Directory>,
    tree: &mut HashMap<PathBuf, Directory>,
) {
    if depth > MAX_DEPTH || tree.len() >= MAX_DIRECTORIES {
        return;
    }
    let Ok(status) = rustix::fs::fstat(directory) else { return };
    let changed_ns = i128::from(status.st_ctime) * 1_000_000_000 + i128::from(status.st_ctime_nsec);
    let listed = match before.get(path) {
        Some(known) if known.changed_ns == Some(changed_ns) => Directory {
            changed_ns: known.changed_ns,
            inner: known.inner.clone(),
            is_repository: known.is_repository,
            has_pointer: known.has_pointer,
        },
        _ => {
            let listed = list(directory.as_fd(), depth == 0).or_else(|_| {
                // Made unreadable, but git needs no permission to list it.
                Entry::at(path)?.map_or(Ok(Vec::new()), |entry| entry.names())?;
                list(directory.as_fd(), depth == 0)
            });
            let listed = listed.unwrap_or_default();
            let fresh = (now_ns() - changed_ns).abs() < FRESH_NS;
            Directory { changed_ns: (!fresh).then_some(changed_ns), ..listed }
        }
    };
    let inner = listed.inner.clone();
    tree.insert(path.to_owned(), listed);
    for name in inner {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(opened) = rustix::fs::openat(directory, &name, flags, Mode::empty()) {
            visit(&opened, &path.join(&name), depth + 1, before, tree);
        }
    }
}

fn list(directory: BorrowedFd<'_>, is_root: bool) -> io::Result<Directory> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut listed = Directory::default();
    let (mut head, mut objects, mut refs, mut common) = (false, false, false, false);
    for entry in Dir::new(rustix::fs::openat(directory, c".", flags, Mode::empty())?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        match name {
            b"HEAD" => head = true,
            b"objects" => objects = true,
            b"refs" => refs = true,
            b"commondir" => common = true,
            _ => {}
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let status = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(status.st_mode)
            }
            kind => kind,
        };
        let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
        if kind == FileType::Directory {
            // The workspace's own repository and our own directory are protected separately.
            if name != "." && name != ".." && !(is_root && (name == ".git" || name == ".fusee")) {
                listed.inner.push(name.to_owned());
            }
        } else if name == ".git" && !is_root {
            listed.has_pointer = true;
        }
    }
    listed.is_repository = head && (common || (objects && refs));
    if listed.is_repository {
        listed.inner.retain(|name| !PASSED_BY.iter().any(|passed| name == *passed));
    }
    Ok(listed)
}

#[expect(clippy::disallowed_methods, reason = "only to judge how recent a change is; never stored in a run")]
fn now_ns() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}
