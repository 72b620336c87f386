//! Which directories of a workspace changed since the last look, told by inotify. `repository_watch` otherwise
//! has to look at every directory of the workspace after every command.
//!
//! Only changes that matter to a search for repositories count: directories that come and go, and files whose
//! names make a directory a repository.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Maximum number of directories watched; each takes about a kilobyte of the kernel's memory.
const MAX_WATCHED: usize = 16_384;

/// The part of the user's watches that a sandbox may use: the user's other programs need some, too.
const SHARE: usize = 4;

/// Names that decide whether git takes a directory for a repository.
pub(super) const REPOSITORY_MARKERS: [&str; 5] = ["HEAD", "objects", "refs", "commondir", ".git"];

/// Changed directories, each with the directories that are new in it.
pub(super) type ChangedDirectories = BTreeMap<PathBuf, BTreeSet<OsString>>;

/// Watches directories for changes.
#[derive(Debug)]
pub(super) struct DirectoryChanges {
    queue: OwnedFd,
    paths: HashMap<i32, PathBuf>,
    limit: usize,
}

impl DirectoryChanges {
    /// `None` if the system has no more inotify instances for this user.
    pub(super) fn new() -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let allowed = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
        let limit = (allowed.trim().parse::<usize>().ok()? / SHARE).min(MAX_WATCHED);
        Some(Self { queue, paths: HashMap::new(), limit })
    }

    /// Watches a directory. Returns whether that worked; if not, changes in it would go unnoticed.
    pub(super) fn watch(&mut self, directory: &OwnedFd, path: &Path) -> bool {
        if self.paths.len() >= self.limit {
            return false;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        // By descriptor: another command may have replaced a part of the path by a link.
        let place = format!("/proc/self/fd/{}", directory.as_raw_fd());
        match inotify::add_watch(&self.queue, place, flags) {
            Ok(number) => {
                // A directory that was moved keeps its number and gets its new path.
                self.paths.insert(number, path.to_owned());
                true
            }
            Err(_) => false,
        }
    }

    /// What changed since the last call; `None` if there was more than the kernel's queue holds.
    pub(super) fn take(&mut self) -> Option<ChangedDirectories> {
        let mut changed = ChangedDirectories::new();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut is_complete = true;
        let mut events = Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                is_complete = false;
            } else if what.contains(ReadFlags::IGNORED) {
                self.paths.remove(&event.wd());
            } else if let (Some(path), Some(name)) = (self.paths.get(&event.wd()), event.file_name()) {
                let name = OsStr::from_bytes(name.to_bytes());
                let is_directory = what.contains(ReadFlags::ISDIR);
                if !is_directory && !REPOSITORY_MARKERS.iter().any(|telling| name == *telling) {
                    continue;
                }
                let new = changed.entry(path.clone()).or_default();
                if is_directory && what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    new.insert(name.to_owned());
                }
            }
        }
        is_complete.then_some(changed)
    }
}
