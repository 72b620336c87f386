//! Scans a work tree in parallel, honouring ignore files and reading only what changed.

use std::fs::Metadata;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use ignore::{WalkBuilder, WalkState};
use parking_lot::Mutex;

use super::FileReader;
use super::entry::{FileEntry, FileStat};
use super::index::KnownFiles;
use super::tokenizer;

/// Maximum number of files in an index; the update reports when there are more.
pub const MAX_FILES: usize = 500_000;
/// Bytes read per file: enough for its symbols.
const HEAD: u64 = 256 * 1024;
/// Maximum number of scanner threads.
const THREADS: usize = 8;

/// Differences found by a scan.
#[derive(Default)]
pub(super) struct ScanResult {
    /// Number of files found.
    pub(super) files: usize,
    /// New and changed files, unordered.
    pub(super) entries: Vec<FileEntry>,
    /// Files with a new mtime but unchanged content.
    pub(super) touched: Vec<(String, i64)>,
    /// Whether files were left out because of [`MAX_FILES`].
    pub(super) cut: bool,
}

/// State of a file relative to the index.
enum FileChangeState {
    Same,
    Touched(String, i64),
    Read(Box<FileEntry>),
}

/// Scans `root`; unchanged files are marked as seen but not read.
pub(super) fn walk(
    root: &Path,
    reader: &dyn FileReader,
    known: &KnownFiles,
    commit: Option<&str>,
) -> Result<ScanResult, String> {
    if !root.is_dir() {
        return Err(format!("{} is not a directory", root.display()));
    }
    let files = AtomicUsize::new(0);
    let all: Mutex<ScanResult> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().min(THREADS));
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .threads(threads)
        .filter_entry(|entry| {
            entry.depth() == 0
                || !is_state(entry.file_name()) && fusee_tools::workspace::walk::may_enter(entry)
        });
    fusee_tools::workspace::walk::bound_ignore_files(&mut builder, root);
    builder.build_parallel().run(|| {
        let mut mine = ThreadFindings { all: &all, walked: ScanResult::default() };
        let files = &files;
        Box::new(move |found| {
            let Ok(found) = found else { return WalkState::Continue };
            if !found.file_type().is_some_and(|kind| kind.is_file()) {
                return WalkState::Continue;
            }
            if files.fetch_add(1, Ordering::Relaxed) >= MAX_FILES {
                mine.walked.cut = true;
                return WalkState::Quit;
            }
            // Names that are not UTF-8 cannot be passed to a model.
            let path = found.path().strip_prefix(root).ok().and_then(Path::to_str);
            let (Some(path), Ok(metadata)) = (path, found.metadata()) else { return WalkState::Continue };
            let Some(examined) = examine(path, &metadata, reader, known, commit) else {
                return WalkState::Continue;
            };
            mine.walked.files += 1;
            match examined {
                FileChangeState::Same => {}
                FileChangeState::Touched(path, mtime) => mine.walked.touched.push((path, mtime)),
                FileChangeState::Read(entry) => mine.walked.entries.push(*entry),
            }
            WalkState::Continue
        })
    });
    Ok(all.into_inner())
}

/// Findings of one thread, merged into the total when it is dropped.
struct ThreadFindings<'a> {
    all: &'a Mutex<ScanResult>,
    walked: ScanResult,
}

impl Drop for ThreadFindings<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        all.files += self.walked.files;
        all.entries.append(&mut self.walked.entries);
        all.touched.append(&mut self.walked.touched);
        all.cut |= self.walked.cut;
    }
}

fn examine(
    relative: &str,
    metadata: &Metadata,
    reader: &dyn FileReader,
    known: &KnownFiles,
    commit: Option<&str>,
) -> Option<FileChangeState> {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mtime = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    let stat = FileStat { size: metadata.len(), mtime };
    // A different size means different content, whatever the head says.
    let indexed = known.get(relative);
    if let Some(indexed) = indexed {
        indexed.seen.store(true, Ordering::Relaxed);
    }
    let old = indexed.filter(|old| old.size == stat.size);
    if old.is_some_and(|old| old.mtime == stat.mtime) {
        return Some(FileChangeState::Same);
    }
    let Some(head) = reader.head(Path::new(relative), HEAD) else {
        // Unreadable: the existing entry is no longer true.
        if let Some(indexed) = indexed {
            indexed.seen.store(false, Ordering::Relaxed);
        }
        return None;
    };
    if old.is_some_and(|old| old.hash == tokenizer::hash(&head)) {
        return Some(FileChangeState::Touched(relative.to_owned(), stat.mtime));
    }
    Some(FileChangeState::Read(Box::new(FileEntry::new(relative.to_owned(), &stat, &head, commit))))
}

fn is_state(name: &std::ffi::OsStr) -> bool {
    [".git", ".fusee", ".jj", ".hg", ".svn"].iter().any(|state| name == *state)
}
