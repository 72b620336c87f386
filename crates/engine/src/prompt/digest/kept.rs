//! Pages of projects, kept from run to run beside the journal. A page is used for as long as what it was made from is
//! the same: the directories that were looked into, and the ignore files that held there, by content.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fusee_tools::walk::Ground;
use fusee_tools::{ContentHash, plain};
use serde::{Deserialize, Serialize};

/// Projects of one journal whose pages are kept; the one that was looked at longest ago goes first.
const MOST: usize = 4;

/// A larger file is not read, and not written.
const MOST_BYTES: usize = 4 << 20;

/// A directory that changed less than this before it was looked at may have changed once more in the same moment of its
/// clock, so its page is not kept. Of the file systems that matter none has longer moments.
const SETTLED_NS: i128 = 1_000_000_000;

/// Pages of another form are forgotten.
const VERSION: u32 = 1;

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    version: u32,
    pages: Vec<Page>,
}

#[derive(Serialize, Deserialize)]
struct Page {
    root: PathBuf,
    made_from: ContentHash,
    text: String,
    ground: Ground,
}

/// The page of a project: the kept one if it is still true. Whatever is wrong with the file, there is a page.
pub(super) fn page(file: &Path, root: &Path) -> String {
    let mut kept = read(file).unwrap_or_default();
    if let Some(page) = kept.pages.iter().find(|page| page.root == root)
        && page.ground.stamp(root).is_some_and(|now| now.hash == page.made_from)
    {
        return page.text.clone();
    }
    let writing = Writing::begin(file);
    let (text, ground) = super::page(root);
    if let (Some(writing), Some(stamp)) = (writing, ground.stamp(root))
        && stamp.newest_ns + SETTLED_NS <= writing.begun_ns
    {
        kept.version = VERSION;
        kept.pages.retain(|page| page.root != root);
        kept.pages.truncate(MOST - 1);
        let page = Page { root: root.to_owned(), made_from: stamp.hash, text: text.clone(), ground };
        kept.pages.insert(0, page);
        // A page that cannot be kept is made again.
        let _ = serde_json::to_vec(&kept).map(|bytes| writing.end(file, &bytes));
    }
    text
}

fn read(file: &Path) -> Option<Kept> {
    let bytes = plain::read(file, MOST_BYTES as u64).ok()?;
    let kept: Kept = serde_json::from_slice(&bytes).ok()?;
    (kept.version == VERSION).then_some(kept)
}

/// A new file beside the one that it will replace. That it is made first tells the time by the file system's own clock.
struct Writing {
    path: PathBuf,
    file: fs::File,
    begun_ns: i128,
}

impl Writing {
    fn begin(beside: &Path) -> Option<Self> {
        let path = beside.with_extension(format!("{}.new", std::process::id()));
        // What stands in its place is nothing of ours, or was left by a process that was killed.
        let _ = fs::remove_file(&path);
        let file = fs::File::create_new(&path).ok()?;
        let made = file.metadata().ok()?;
        let begun_ns = i128::from(made.mtime()) * 1_000_000_000 + i128::from(made.mtime_nsec());
        Some(Self { path, file, begun_ns })
    }

    /// Whoever reads meanwhile sees the old file or the new one.
    fn end(&self, file: &Path, bytes: &[u8]) {
        if bytes.len() <= MOST_BYTES && (&self.file).write_all(bytes).is_ok() {
            let _ = fs::rename(&self.path, file);
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // It has gone where it belongs, or nobody wants it.
        let _ = fs::remove_file(&self.path);
    }
}
