//! Cache of digest pages, stored next to the journal. A page is valid while its inputs are unchanged: the
//! scanned directories, and the content of the ignore files that apply to them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fusee_tools::ContentHash;
use fusee_tools::workspace::bounded_read;
use fusee_tools::workspace::walk::WalkFingerprint;
use serde::{Deserialize, Serialize};

/// Maximum number of projects in the cache; the oldest page is evicted first.
const MAX_PROJECTS: usize = 4;

/// Maximum size of the cache file; larger files are neither read nor written.
const MAX_BYTES: usize = 4 << 20;

/// A directory changed less than this before the scan may change again within the same mtime tick, so its
/// page is not cached. No relevant file system has a coarser mtime.
const SETTLED_NS: i128 = 1_000_000_000;

/// Format version; a cache of another version is discarded.
const VERSION: u32 = 1;

#[derive(Default, Serialize, Deserialize)]
struct CachedDigest {
    version: u32,
    pages: Vec<CachedPage>,
}

#[derive(Serialize, Deserialize)]
struct CachedPage {
    root: PathBuf,
    made_from: ContentHash,
    text: String,
    fingerprint: WalkFingerprint,
}

/// Returns the page of a project, from the cache if it is still valid. Cache errors are ignored.
pub(super) fn page(file: &Path, root: &Path) -> String {
    let mut kept = read(file).unwrap_or_default();
    if let Some(page) = kept.pages.iter().find(|page| page.root == root)
        && page.fingerprint.stamp(root).is_some_and(|now| now.hash == page.made_from)
    {
        return page.text.clone();
    }
    let writing = CacheFile::begin(file);
    let (text, fingerprint) = super::page(root);
    if let (Some(writing), Some(stamp)) = (writing, fingerprint.stamp(root))
        && stamp.newest_ns + SETTLED_NS <= writing.begun_ns
    {
        kept.version = VERSION;
        kept.pages.retain(|page| page.root != root);
        kept.pages.truncate(MAX_PROJECTS - 1);
        let page =
            CachedPage { root: root.to_owned(), made_from: stamp.hash, text: text.clone(), fingerprint };
        kept.pages.insert(0, page);
        // A page that cannot be written is rebuilt next time.
        let _ = serde_json::to_vec(&kept).map(|bytes| writing.end(file, &bytes));
    }
    text
}

fn read(file: &Path) -> Option<CachedDigest> {
    let bytes = bounded_read::read(file, MAX_BYTES as u64).ok()?;
    let kept: CachedDigest = serde_json::from_slice(&bytes).ok()?;
    (kept.version == VERSION).then_some(kept)
}

/// Temporary file that will replace the cache. It is created first to read the time from the file system's
/// clock.
struct CacheFile {
    path: PathBuf,
    file: fs::File,
    begun_ns: i128,
}

impl CacheFile {
    fn begin(beside: &Path) -> Option<Self> {
        let path = beside.with_extension(format!("{}.new", std::process::id()));
        // A file of this name was left by a process that was killed, or is not ours.
        let _ = fs::remove_file(&path);
        let file = fs::File::create_new(&path).ok()?;
        let made = file.metadata().ok()?;
        let begun_ns = i128::from(made.mtime()) * 1_000_000_000 + i128::from(made.mtime_nsec());
        Some(Self { path, file, begun_ns })
    }

    /// Replaces the cache atomically.
    fn end(&self, file: &Path, bytes: &[u8]) {
        if bytes.len() <= MAX_BYTES && (&self.file).write_all(bytes).is_ok() {
            let _ = fs::rename(&self.path, file);
        }
    }
}

impl Drop for CacheFile {
    fn drop(&mut self) {
        // Already renamed, or not wanted.
        let _ = fs::remove_file(&self.path);
    }
}
