//! Lists and stats a directory tree. Directories are opened once and their files statted by name; several
//! threads share the work, since it is bound by system calls and not by the CPU.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ignore::WalkState;
use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::workspace::confined_open::DIRECTORY;
use crate::workspace::file_status;
use crate::workspace::walk;

/// Maximum number of threads for listing and statting.
const THREADS: usize = 4;

/// Trees of fewer entries are listed by a single thread.
const FEW_ENTRIES: usize = 256;

/// Directories per additional stat thread.
const WORTH_A_THREAD: usize = 64;

/// A file changed this shortly before a scan can change again without its stamp moving.
const FRESH_NS: i128 = 20_000_000;

/// Tool caches that are skipped even if no ignore file names them.
const CACHES: &[&str] = &[
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".tox",
    ".gradle",
    ".hypothesis",
];

/// File names by directory.
pub(super) type NamesByDirectory = BTreeMap<String, Vec<OsString>>;

/// File metadata that identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    pub(super) size: u64,
    pub(super) mtime_ns: i128,
    pub(super) ctime_ns: i128,
    pub(super) inode: u64,
    pub(super) link: bool,
    /// `st_mode`: file type and permissions; 0 for a file that was recorded but never statted.
    pub(super) mode: u32,
    /// Whether the file had changed less than [`FRESH_NS`] before it was statted.
    pub(super) fresh: bool,
}

impl FileStamp {
    /// A stamp that matches no file.
    pub(super) fn matching_nothing() -> Self {
        Self { size: u64::MAX, mtime_ns: -1, ctime_ns: -1, inode: 0, link: false, mode: 0, fresh: true }
    }

    /// Whether the file may have changed again without its stamp moving.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    fn new(stat: &rustix::fs::Stat, now_ns: i128) -> Self {
        let (mtime_ns, ctime_ns) = (file_status::modified_ns(stat), file_status::changed_ns(stat));
        Self {
            size: stat.st_size as u64,
            mtime_ns,
            ctime_ns,
            inode: stat.st_ino,
            link: FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
            mode: file_status::mode(stat),
            fresh: (now_ns - mtime_ns.max(ctime_ns)).abs() < FRESH_NS,
        }
    }
}

/// Stamps of a directory and of its files.
pub(super) struct DirectoryStamps<F> {
    pub(super) stamp: Option<FileStamp>,
    pub(super) files: Vec<(OsString, F)>,
}

/// Result of reading a file.
pub(super) enum ScannedFile {
    Bytes(Vec<u8>),
    Large,
    Nothing,
}

/// Root directory of the tree.
#[derive(Debug)]
pub(super) struct ScanRoot {
    path: PathBuf,
    directory: OwnedFd,
}

impl ScanRoot {
    pub(super) fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        Some(Self { path: path.to_owned(), directory })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lists all files that are not ignored.
    pub(super) fn list_all(&self, most: usize) -> NamesByDirectory {
        self.list_few().unwrap_or_else(|| self.list_many(most))
    }

    /// Lists a small tree on the calling thread, which is faster than starting threads; `None` if it is not
    /// small.
    fn list_few(&self) -> Option<NamesByDirectory> {
        let mut listed = NamesByDirectory::new();
        for (n, entry) in walk::builder(&self.path, true).filter_entry(is_followed).build().enumerate() {
            if n >= FEW_ENTRIES {
                return None;
            }
            if let Some((directory, name)) = entry.ok().and_then(|entry| self.split_entry(&entry)) {
                listed.entry(directory).or_default().extend(name);
            }
        }
        Some(listed)
    }

    fn list_many(&self, most: usize) -> NamesByDirectory {
        let listed = Mutex::new((NamesByDirectory::new(), 0_usize));
        let walk =
            walk::builder(&self.path, true).threads(THREADS).filter_entry(is_followed).build_parallel();
        walk.run(|| {
            let listed = &listed;
            // Each thread collects its own batch and merges it when full and at the end.
            let mut mine = GatheredNames { listed, names: Vec::new() };
            Box::new(move |entry| {
                let Ok(entry) = entry else { return WalkState::Continue };
                if let Some(found) = self.split_entry(&entry) {
                    mine.names.push(found);
                }
                if mine.names.len() >= 4096 && mine.hand_over() > most {
                    WalkState::Quit
                } else {
                    WalkState::Continue
                }
            })
        });
        listed.into_inner().0
    }

    /// Lists one directory, and recursively those of its subdirectories that are not yet known.
    pub(super) fn list_below(&self, path: &str, known: impl Fn(&str) -> bool) -> NamesByDirectory {
        let mut listed = NamesByDirectory::new();
        let start = self.path.join(path);
        listed.insert(path.to_owned(), Vec::new());
        let mut below = Vec::new();
        for entry in
            walk::builder(&start, true).max_depth(Some(1)).filter_entry(is_followed).build().flatten()
        {
            match self.split_entry(&entry) {
                Some((directory, Some(name))) => listed.entry(directory).or_default().push(name),
                Some((directory, None)) if directory != path && !known(&directory) => below.push(directory),
                _ => {}
            }
        }
        for directory in below {
            for entry in
                walk::builder(&self.path.join(&directory), true).filter_entry(is_followed).build().flatten()
            {
                match self.split_entry(&entry) {
                    Some((directory, Some(name))) => listed.entry(directory).or_default().push(name),
                    Some((directory, None)) => {
                        listed.entry(directory).or_default();
                    }
                    None => {}
                }
            }
        }
        listed
    }

    /// Adds tracked files that are excluded by an ignore file.
    pub(super) fn add_tracked<'a>(
        &self,
        paths: impl Iterator<Item = &'a str>,
        listed: &mut NamesByDirectory,
    ) {
        let mut sorted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in paths {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            sorted.entry(directory).or_default().push(name);
        }
        for (directory, names) in sorted {
            let there = listed.entry(directory.to_owned()).or_default();
            if there.len() == names.len() && there.iter().zip(&names).all(|(one, other)| one == other) {
                continue;
            }
            let known: std::collections::HashSet<OsString> = there.iter().cloned().collect();
            there.extend(names.iter().map(OsString::from).filter(|name| !known.contains(name)));
        }
    }

    /// Directory and file name of a walk entry; the name is `None` for a directory.
    fn split_entry(&self, entry: &ignore::DirEntry) -> Option<(String, Option<OsString>)> {
        let kind = entry.file_type()?;
        let path = entry.path().strip_prefix(&self.path).ok()?;
        if kind.is_dir() {
            return Some((path.to_str()?.to_owned(), None));
        }
        let name = entry.file_name();
        (kind.is_file() || kind.is_symlink()).then_some(())?;
        name.to_str()?;
        Some((path.parent()?.to_str()?.to_owned(), Some(name.to_owned())))
    }

    /// Stamps of the listed files; those that no longer exist are left out.
    pub(super) fn stamps(&self, listed: NamesByDirectory) -> Vec<(String, DirectoryStamps<FileStamp>)> {
        let wanted: Vec<(String, Vec<OsString>)> = listed.into_iter().collect();
        let there = |(path, directory): (String, Option<DirectoryStamps<Option<FileStamp>>>)| {
            let directory = directory?;
            let files =
                directory.files.into_iter().filter_map(|(name, stamp)| Some((name, stamp?))).collect();
            Some((path, DirectoryStamps { stamp: directory.stamp, files }))
        };
        self.stamps_of(&wanted).into_iter().filter_map(there).collect()
    }

    /// Stamps of the given files, in the same order; `None` for those that do not exist.
    pub(super) fn stamps_of(
        &self,
        wanted: &[(String, Vec<OsString>)],
    ) -> Vec<(String, Option<DirectoryStamps<Option<FileStamp>>>)> {
        let threads = (wanted.len() / WORTH_A_THREAD).clamp(1, THREADS);
        let share = wanted.len().div_ceil(threads).max(1);
        let all = |part: &[(String, Vec<OsString>)]| {
            part.iter().map(|(path, names)| (path.clone(), self.stamp(path, names))).collect::<Vec<_>>()
        };
        if threads == 1 {
            return all(wanted);
        }
        std::thread::scope(|scope| {
            let parts: Vec<_> = wanted.chunks(share).map(|part| scope.spawn(move || all(part))).collect();
            parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
        })
    }

    fn stamp(&self, path: &str, names: &[OsString]) -> Option<DirectoryStamps<Option<FileStamp>>> {
        let directory = self.open_directory(path)?;
        let now_ns = now_ns();
        let stat = rustix::fs::fstat(&directory).ok()?;
        let stamp = FileStamp::new(&stat, now_ns);
        let file = |name: &OsString| {
            let stat = rustix::fs::statat(&directory, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW).ok();
            let stat = stat.filter(|stat| {
                matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Symlink)
            });
            (name.clone(), stat.map(|stat| FileStamp::new(&stat, now_ns)))
        };
        let files = names.iter().map(file).collect();
        Some(DirectoryStamps { stamp: (!stamp.fresh).then_some(stamp), files })
    }

    fn open_directory(&self, path: &str) -> Option<OwnedFd> {
        let path = if path.is_empty() { "." } else { path };
        rustix::fs::openat(self.directory.as_fd(), path, DIRECTORY, Mode::empty()).ok()
    }

    /// Reads a file of at most `most` bytes; for a symlink, its target.
    pub(super) fn content(&self, path: &str, stamp: &FileStamp, most: u64) -> ScannedFile {
        if stamp.link {
            return match rustix::fs::readlinkat(&self.directory, path, Vec::new()) {
                Ok(text) => ScannedFile::Bytes(text.into_bytes()),
                Err(_) => ScannedFile::Nothing,
            };
        }
        if stamp.size > most && stamp.size != u64::MAX {
            return ScannedFile::Large;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.directory, path, flags, Mode::empty()) else {
            return ScannedFile::Nothing;
        };
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.size.min(most)).unwrap_or_default() + 1);
        match File::from(file).take(most + 1).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > most => ScannedFile::Large,
            Ok(_) => ScannedFile::Bytes(bytes),
            Err(_) => ScannedFile::Nothing,
        }
    }
}

/// Names collected by one thread.
struct GatheredNames<'a> {
    listed: &'a Mutex<(NamesByDirectory, usize)>,
    names: Vec<(String, Option<OsString>)>,
}

impl GatheredNames<'_> {
    fn hand_over(&mut self) -> usize {
        let mut listed = self.listed.lock();
        for (directory, name) in self.names.drain(..) {
            let names = listed.0.entry(directory).or_default();
            names.extend(name);
            listed.1 += 1;
        }
        listed.1
    }
}

impl Drop for GatheredNames<'_> {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// Whether a walk visits the entry: it skips version control state, our own state, and caches.
fn is_followed(entry: &ignore::DirEntry) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    let name = entry.file_name();
    let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
    !(walk::is_state(name) || is_directory && is_cache(name, entry.path())) && walk::may_enter(entry)
}

fn is_cache(name: &OsStr, path: &Path) -> bool {
    CACHES.iter().any(|cache| name == *cache) || path.join("CACHEDIR.TAG").exists()
}

#[expect(clippy::disallowed_methods, reason = "only to judge how recent a stamp is; never stored in a run")]
fn now_ns() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}
