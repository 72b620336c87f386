//! Index of one work tree: the main segment as last written, and the changes since.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::codec::{DamagedIndex, write_whole};
use super::delta::IndexDelta;
use super::entry::FileEntry;
use super::scan::{self, ScanResult};
use super::segment::Segment;
use super::{IndexUpdate, git_head, merge};

/// Number of changes kept in the delta before it is merged, plus one sixteenth of a large index.
const APART: usize = 64;
const SHARE: usize = 16;

/// The base segment and the changes since it was written.
#[derive(Default)]
pub(super) struct FileIndex {
    pub(super) base: Segment,
    pub(super) delta: IndexDelta,
}

/// Error of an index operation.
pub(super) enum IndexError {
    /// The index is damaged and must be rebuilt.
    Damaged,
    /// Any other failure, as a message.
    Failed(String),
}

impl From<DamagedIndex> for IndexError {
    fn from(_: DamagedIndex) -> Self {
        Self::Damaged
    }
}

impl FileIndex {
    /// Opens an index file. A damaged file or one of another version counts as empty, and everything is read
    /// again.
    pub(super) fn open(file: &Path) -> Self {
        let base = Segment::open(file).unwrap_or_default();
        let delta = IndexDelta::open(file, &base).unwrap_or_else(|| IndexDelta::none(base.count()));
        Self { base, delta }
    }

    /// Number of indexed files.
    pub(super) fn len(&self) -> usize {
        let gone = self.delta.gone.iter().filter(|gone| **gone).count();
        self.base.count() - gone + self.delta.entries.len()
    }

    /// Returns all entries, sorted by path.
    pub(super) fn entries(&mut self) -> Result<Vec<FileEntry>, DamagedIndex> {
        self.base.read_details()?;
        let rows = (0..self.base.count()).filter(|row| !self.delta.is_gone(*row));
        let mut entries =
            rows.map(|row| self.base.entry(row)).collect::<Result<Vec<FileEntry>, DamagedIndex>>()?;
        entries.extend(self.delta.entries.iter().cloned());
        entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(entries)
    }

    /// Returns the entry of one file.
    pub(super) fn entry(&mut self, path: &str) -> Result<Option<FileEntry>, DamagedIndex> {
        if let Ok(at) = self.delta.find(path) {
            return Ok(Some(self.delta.entries[at].clone()));
        }
        let Some(row) = self.base.find(path).filter(|row| !self.delta.is_gone(*row)) else { return Ok(None) };
        self.base.read_details()?;
        self.base.entry(row).map(Some)
    }

    /// Brings the index and its file up to date with the work tree.
    pub(super) fn refresh(&mut self, root: &Path, file: Option<&Path>) -> Result<IndexUpdate, IndexError> {
        let commit = git_head::checked_out(root);
        let known = IndexLookup::of(self);
        let walked = scan::walk(root, &known, commit.as_deref()).map_err(IndexError::Failed)?;
        let (rows, entries) = known.unseen();
        let updated = IndexUpdate {
            files: walked.files,
            read: walked.entries.len(),
            removed: rows.len() + entries.len(),
            cut: walked.cut,
        };
        let changed = updated.read > 0 || updated.removed > 0 || !walked.touched.is_empty();
        self.apply(walked, &rows, &entries);
        if changed {
            self.save(file)?;
        }
        Ok(updated)
    }

    fn apply(&mut self, walked: ScanResult, rows: &[usize], entries: &[usize]) {
        for (place, mtime) in walked.touched {
            match place {
                EntryLocation::Row(row) => {
                    self.delta.touched.insert(row as u32, mtime);
                }
                EntryLocation::Entry(at) => self.delta.entries[at].mtime = mtime,
            }
        }
        for row in rows {
            self.forget(*row);
        }
        // Backwards, so that the remaining positions stay valid.
        for at in entries.iter().rev() {
            self.delta.entries.remove(*at);
        }
        for entry in &walked.entries {
            if let Some(row) = self.base.find(&entry.path) {
                self.forget(row);
            }
        }
        let known = std::mem::take(&mut self.delta.entries);
        let mut all: HashMap<String, FileEntry> = HashMap::with_capacity(known.len() + walked.entries.len());
        all.extend(known.into_iter().chain(walked.entries).map(|entry| (entry.path.clone(), entry)));
        self.delta.entries = all.into_values().collect();
        self.delta.entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    }

    fn forget(&mut self, row: usize) {
        if let Some(gone) = self.delta.gone.get_mut(row) {
            *gone = true;
        }
        self.delta.touched.remove(&(row as u32));
    }

    /// Writes the delta, or merges everything into a new base once there are many changes.
    fn save(&mut self, file: Option<&Path>) -> Result<(), IndexError> {
        let failed = |path: &Path, error: std::io::Error| {
            IndexError::Failed(format!("cannot write {}: {error}", path.display()))
        };
        if self.base.count() > 0 && self.delta.len() <= APART + self.base.count() / SHARE {
            return match file {
                Some(file) => self.delta.write(file, &self.base).map_err(|error| failed(file, error)),
                None => Ok(()),
            };
        }
        let bytes = merge::merged(&mut self.base, &self.delta)?;
        let opened = match file {
            None => None,
            Some(file) => {
                write_whole(file, &bytes).map_err(|error| failed(file, error))?;
                IndexDelta::remove(file);
                Segment::open(file)
            }
        };
        self.base = opened.or_else(|| Segment::from_bytes(bytes)).ok_or(DamagedIndex)?;
        self.delta = IndexDelta::none(self.base.count());
        Ok(())
    }
}

/// Where an entry is stored: a base row or a delta entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryLocation {
    Row(usize),
    Entry(usize),
}

/// State of a file when it was last read.
pub(super) struct IndexedState {
    pub(super) place: EntryLocation,
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) hash: u64,
}

/// The index as seen by a walk: every file is looked up once, and entries never looked up have been deleted.
pub(super) struct IndexLookup<'a> {
    index: &'a FileIndex,
    rows: HashMap<&'a str, u32>,
    seen_rows: Vec<AtomicBool>,
    seen_entries: Vec<AtomicBool>,
}

impl<'a> IndexLookup<'a> {
    pub(super) fn of(index: &'a FileIndex) -> Self {
        let rows = (0..index.base.count()).filter(|row| !index.delta.is_gone(*row));
        let flags = |count: usize| (0..count).map(|_| AtomicBool::new(false)).collect();
        Self {
            index,
            rows: rows.map(|row| (index.base.path(row), row as u32)).collect(),
            seen_rows: flags(index.base.count()),
            seen_entries: flags(index.delta.entries.len()),
        }
    }

    /// Looks up a path and marks it as seen.
    pub(super) fn see(&self, path: &str) -> Option<IndexedState> {
        if let Some(row) = self.rows.get(path).map(|row| *row as usize) {
            self.seen_rows.get(row)?.store(true, Ordering::Relaxed);
            let known = self.index.base.row(row)?;
            let mtime = self.index.delta.touched.get(&(row as u32)).copied().unwrap_or(known.mtime);
            return Some(IndexedState {
                place: EntryLocation::Row(row),
                size: known.size,
                mtime,
                hash: known.hash,
            });
        }
        let at = self.index.delta.find(path).ok()?;
        self.seen_entries.get(at)?.store(true, Ordering::Relaxed);
        let known = &self.index.delta.entries[at];
        Some(IndexedState {
            place: EntryLocation::Entry(at),
            size: known.size,
            mtime: known.mtime,
            hash: known.hash,
        })
    }

    /// Marks a path as not seen.
    pub(super) fn unsee(&self, path: &str) {
        let row = self.rows.get(path).and_then(|row| self.seen_rows.get(*row as usize));
        let entry = || self.index.delta.find(path).ok().and_then(|at| self.seen_entries.get(at));
        if let Some(seen) = row.or_else(entry) {
            seen.store(false, Ordering::Relaxed);
        }
    }

    /// Returns the rows and delta entries that were never seen.
    fn unseen(self) -> (Vec<usize>, Vec<usize>) {
        let unseen = |seen: &[AtomicBool], at: &usize| !seen[*at].load(Ordering::Relaxed);
        let mut rows: Vec<usize> = self.rows.values().map(|row| *row as usize).collect();
        rows.retain(|row| unseen(&self.seen_rows, row));
        let entries = (0..self.seen_entries.len()).filter(|at| unseen(&self.seen_entries, at)).collect();
        (rows, entries)
    }
}
