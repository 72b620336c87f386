//! Repositories anywhere in the workspace: whatever git would accept as one, found by content.
//!
//! Git runs what the settings and hooks of a repository say as soon as the user enters its directory, whether
//! the work tree links to it or not. So the workspace is searched when a command has ended. What the command
//! created may contain the settings of a new repository and no hooks; what existed before is restored. The
//! same holds for files in the workspace that the settings of its own repository execute or include
//! (`git_references`).
//!
//! The first search looks at every directory. After that, `directory_changes` tells which ones changed; where it
//! cannot, a search looks at every directory again, and lists those that changed since the last one.
#![deny(clippy::let_underscore_must_use, clippy::unused_result_ok)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use super::directory_changes::{ChangedDirectories, DirectoryChanges};
use super::entry::Entry;
use super::report::ProtectionReport;
use super::settings_backup::SettingsBackup;
use super::{git_references, revert_at, submodules};
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
const SKIPPED_DIRS: [&str; 5] = ["objects", "refs", "logs", "lfs", "info"];

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
    tree: Option<Tree>,
    /// Tells what changed since then; `None` if it cannot be told.
    changes: Option<DirectoryChanges>,
    /// The git directories and pointers to them, and their settings.
    known: BTreeMap<PathBuf, SettingsBackup>,
    /// Files that the settings of the workspace's repository refer to.
    referenced: SettingsBackup,
}

/// The directories of a workspace, each before what is in it.
type Tree = BTreeMap<PathBuf, Directory>;

/// A directory when it was last listed.
#[derive(Clone, Debug, Default)]
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
        if state.running == 0 {
            // What changed since the last command was changed by the user.
            if state.tree.is_none() || state.changes.is_some() {
                self.search(&mut state);
            }
            let found: BTreeSet<PathBuf> = state.tree.iter().flat_map(found).collect();
            state.known = found.into_iter().map(|path| (path.clone(), backup(&path))).collect();
            state.referenced = git_references::backup(&self.root);
        }
        state.running += 1;
    }

    fn check(&self) -> ProtectionReport {
        let mut report = ProtectionReport::default();
        let mut state = self.state.lock();
        self.search(&mut state);
        let found: Vec<PathBuf> = state.tree.iter().flat_map(found).collect();
        for path in found {
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
        report
    }

    /// Reverts what a new repository must not contain.
    fn sanitize(&self, path: &Path, report: &mut ProtectionReport) {
        let is_pointer = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if !is_pointer {
            for (inner, on_create) in of_a_repository(path) {
                let is_commondir = inner.file_name() == Some(OsStr::new("commondir"));
                if !(is_commondir && self.is_work_tree_of_ours(path)) {
                    revert_at(&inner, on_create, report);
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

    /// Brings the known tree up to date.
    fn search(&self, state: &mut State) {
        let changed = state.changes.as_mut().and_then(DirectoryChanges::take);
        let (before, changed) = match (state.tree.take(), changed) {
            (Some(mut tree), Some(changed)) => {
                let mut search = Search { before: &Tree::new(), changes: state.changes.take() };
                search.update(&mut tree, &self.root, changed);
                state.changes = search.changes;
                state.tree = Some(tree);
                return;
            }
            (Some(tree), None) => (tree, state.changes.take()),
            (None, _) => (Tree::new(), DirectoryChanges::new()),
        };
        let mut search = Search { before: &before, changes: changed };
        let mut tree = Tree::new();
        if let Ok(root) = rustix::fs::openat(CWD, &self.root, DIRECTORY, Mode::empty()) {
            search.visit(&root, &self.root, 0, &mut tree);
        }
        state.changes = search.changes;
        state.tree = Some(tree);
    }
}

/// Opens a directory without permission to list it.
const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

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
fn found(tree: &Tree) -> impl Iterator<Item = PathBuf> + '_ {
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
        paths.iter().map(|(path, on_create)| (path.as_path(), *on_create)).collect();
    SettingsBackup::create(&paths).unwrap_or_default()
}

/// A search in progress.
struct Search<'s> {
    /// Directories that have not changed since are not listed again.
    before: &'s Tree,
    /// Where the directories are watched that are found; `None` once one could not be.
    changes: Option<DirectoryChanges>,
}

impl Search<'_> {
    /// Looks at the directories that changed.
    fn update(&mut self, tree: &mut Tree, root: &Path, changed: ChangedDirectories) {
        for (path, new) in changed {
            // One that is gone was removed with the directory it was in.
            let Some(known) = tree.get(&path).map(|known| known.inner.clone()) else { continue };
            let Ok(opened) = rustix::fs::openat(CWD, &path, DIRECTORY, Mode::empty()) else {
                remove_below(tree, &path);
                continue;
            };
            let depth = path.strip_prefix(root).map_or(0, |below| below.components().count());
            let listed = listed(&opened, &path, depth);
            let inner = listed.inner.clone();
            tree.insert(path.clone(), listed);
            let is_same = |name: &OsString| inner.contains(name) && !new.contains(name);
            known.iter().filter(|name| !is_same(name)).for_each(|name| remove_below(tree, &path.join(name)));
            for name in inner.iter().filter(|name| new.contains(*name) || !known.contains(name)) {
                if let Ok(inner) = rustix::fs::openat(&opened, name, DIRECTORY, Mode::empty()) {
                    self.visit(&inner, &path.join(name), depth + 1, tree);
                }
            }
        }
    }

    /// Adds a directory and everything in it to the tree.
    fn visit(&mut self, directory: &OwnedFd, path: &Path, depth: usize, tree: &mut Tree) {
        if depth > MAX_DEPTH || tree.len() >= MAX_DIRECTORIES {
            return;
        }
        // Before it is listed, so that nothing can come in between.
        if !self.changes.as_mut().is_none_or(|changes| changes.watch(directory, path)) {
            self.changes = None;
        }
        let Ok(status) = rustix::fs::fstat(directory) else { return };
        let changed_ns = i128::from(status.st_ctime) * 1_000_000_000 + i128::from(status.st_ctime_nsec);
        let listed = match self.before.get(path) {
            Some(known) if known.changed_ns == Some(changed_ns) => known.clone(),
            _ => {
                let fresh = (now_ns() - changed_ns).abs() < FRESH_NS;
                Directory { changed_ns: (!fresh).then_some(changed_ns), ..listed(directory, path, depth) }
            }
        };
        let inner = listed.inner.clone();
        tree.insert(path.to_owned(), listed);
        for name in inner {
            if let Ok(opened) = rustix::fs::openat(directory, &name, DIRECTORY, Mode::empty()) {
                self.visit(&opened, &path.join(&name), depth + 1, tree);
            }
        }
    }
}

/// Removes a directory and everything in it from the tree.
fn remove_below(tree: &mut Tree, path: &Path) {
    let below = tree.range(path.to_owned()..).map(|(path, _)| path.clone());
    let gone: Vec<PathBuf> = below.take_while(|inner| inner.starts_with(path)).collect();
    gone.iter().for_each(|path| drop(tree.remove(path)));
}

fn listed(directory: &OwnedFd, path: &Path, depth: usize) -> Directory {
    let listed = list(directory.as_fd(), depth == 0).or_else(|_| {
        // Made unreadable, but git needs no permission to list it.
        Entry::at(path)?.map_or(Ok(Vec::new()), |entry| entry.names())?;
        list(directory.as_fd(), depth == 0)
    });
    listed.unwrap_or_default()
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
        listed.inner.retain(|name| !SKIPPED_DIRS.iter().any(|passed| name == *passed));
    }
    Ok(listed)
}

#[expect(clippy::disallowed_methods, reason = "only to judge how recent a change is; never stored in a run")]
fn now_ns() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}
