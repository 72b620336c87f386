//! Walking a work tree: side by side, ignore files honoured, and only what changed is read.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use ignore::{WalkBuilder, WalkState};

use super::entry::{Entry, Stat};
use super::tokens::hash_bytes;

/// More files than this are not kept, and that is said.
pub const MOST_FILES: usize = 500_000;
/// Bytes read of one file: enough for its symbols.
const HEAD: u64 = 256 * 1024;
/// Threads of a walk.
const THREADS: usize = 8;

/// What a walk found.
pub(super) struct Walked {
    /// In order of path.
    pub(super) entries: Vec<Entry>,
    pub(super) read: usize,
    /// Files with another time and the same content.
    pub(super) touched: usize,
    pub(super) new_paths: usize,
    pub(super) cut: bool,
}

#[derive(Default)]
struct Counts {
    files: AtomicUsize,
    read: AtomicUsize,
    touched: AtomicUsize,
    new_paths: AtomicUsize,
    cut: AtomicBool,
}

/// Walks `root`; what is known and unchanged is taken over.
pub(super) fn walk(root: &Path, known: &HashMap<&str, &Entry>) -> Result<Walked, String> {
    if !root.is_dir() {
        return Err(format!("{} is not a directory", root.display()));
    }
    let counts = Counts::default();
    let all: Mutex<Vec<Entry>> = Mutex::new(Vec::with_capacity(known.len()));
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().min(THREADS));
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .threads(threads)
        .filter_entry(|entry| entry.depth() == 0 || !is_state(entry.file_name()));
    builder.build_parallel().run(|| {
        let mut mine = Collected { all: &all, entries: Vec::new() };
        let counts = &counts;
        Box::new(move |found| {
            let Ok(found) = found else { return WalkState::Continue };
            if !found.file_type().is_some_and(|kind| kind.is_file()) {
                return WalkState::Continue;
            }
            if counts.files.fetch_add(1, Ordering::Relaxed) >= MOST_FILES {
                counts.cut.store(true, Ordering::Relaxed);
                return WalkState::Quit;
            }
            if let Some(entry) = look(root, found.path(), found.metadata().ok().as_ref(), known, counts) {
                mine.entries.push(entry);
            }
            WalkState::Continue
        })
    });
    let mut entries = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(Walked {
        entries,
        read: counts.read.into_inner(),
        touched: counts.touched.into_inner(),
        new_paths: counts.new_paths.into_inner(),
        cut: counts.cut.into_inner(),
    })
}

/// What one thread found, handed over when it ends.
struct Collected<'a> {
    all: &'a Mutex<Vec<Entry>>,
    entries: Vec<Entry>,
}

impl Drop for Collected<'_> {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.entries);
    }
}

fn look(
    root: &Path,
    path: &Path,
    metadata: Option<&Metadata>,
    known: &HashMap<&str, &Entry>,
    counts: &Counts,
) -> Option<Entry> {
    // A name that is not UTF-8 cannot be told to a model.
    let relative = path.strip_prefix(root).ok()?.to_str()?.to_owned();
    let metadata = metadata?;
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mtime = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    let stat = Stat { size: metadata.len(), mtime };
    let old = known.get(relative.as_str()).copied();
    if let Some(old) = old.filter(|old| old.size == stat.size && old.mtime == stat.mtime) {
        return Some(old.clone());
    }
    let mut head = Vec::with_capacity(stat.size.min(HEAD) as usize);
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    if let Some(old) = old.filter(|old| old.size == stat.size && old.hash == hash_bytes(&head)) {
        counts.touched.fetch_add(1, Ordering::Relaxed);
        return Some(Entry { mtime: stat.mtime, ..old.clone() });
    }
    counts.read.fetch_add(1, Ordering::Relaxed);
    counts.new_paths.fetch_add(usize::from(old.is_none()), Ordering::Relaxed);
    Some(Entry::new(relative, &stat, &head))
}

fn is_state(name: &std::ffi::OsStr) -> bool {
    [".git", ".fusee", ".jj", ".hg", ".svn"].iter().any(|state| name == *state)
}
