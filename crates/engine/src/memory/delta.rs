//! Changes since the main segment of the index was written: a small file next to it, so that an update writes
//! only what changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::codec::{self, Decoder, sum, write_whole};
use super::entry::FileEntry;
use super::segment::Segment;
use super::tokenizer::Tokens;

const MAGIC: &[u8; 8] = b"fuseed02";
/// Larger files are rejected as not being a delta.
const LARGEST: u64 = 1 << 30;

/// Differences from the base segment.
#[derive(Default)]
pub(super) struct IndexDelta {
    /// New and changed files, sorted by path.
    pub(super) entries: Vec<FileEntry>,
    /// Whether each row of the base is superseded or deleted, by row number.
    pub(super) gone: Vec<bool>,
    /// New mtimes of rows whose content did not change.
    pub(super) touched: BTreeMap<u32, i64>,
}

impl IndexDelta {
    /// Creates an empty delta for a base of `rows` rows.
    pub(super) fn none(rows: usize) -> Self {
        Self { entries: Vec::new(), gone: vec![false; rows], touched: BTreeMap::new() }
    }

    /// Number of changes.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.touched.len() + self.gone.iter().filter(|gone| **gone).count()
    }

    pub(super) fn find(&self, path: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path))
    }

    pub(super) fn is_gone(&self, row: usize) -> bool {
        self.gone.get(row).copied().unwrap_or_default()
    }

    /// Opens the delta of this base; `None` if it is missing, damaged, or belongs to another base.
    pub(super) fn open(index_file: &Path, base: &Segment) -> Option<Self> {
        let path = file(index_file);
        if std::fs::metadata(&path).ok()?.len() > LARGEST {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        let (told, check) = bytes.split_last_chunk::<8>()?;
        if sum(told) != u64::from_le_bytes(*check) {
            return None;
        }
        let mut rest = Decoder(told.strip_prefix(MAGIC)?);
        if rest.wide()? != base.id() {
            return None;
        }
        let mut delta = Self::none(base.count());
        for row in rest.list()? {
            *delta.gone.get_mut(row as usize)? = true;
        }
        for _ in 0..rest.number()? {
            delta.touched.insert(rest.number()?, rest.time()?);
        }
        for _ in 0..rest.number()? {
            delta.entries.push(read_entry(&mut rest)?);
        }
        rest.0.is_empty().then_some(delta)
    }

    /// Writes the delta next to its base.
    pub(super) fn write(&self, index_file: &Path, base: &Segment) -> std::io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(base.id().to_le_bytes());
        let gone: Vec<usize> = (0..self.gone.len()).filter(|row| self.gone[*row]).collect();
        codec::number(&mut bytes, gone.len());
        gone.iter().for_each(|row| codec::number(&mut bytes, *row));
        codec::number(&mut bytes, self.touched.len());
        for (row, mtime) in &self.touched {
            bytes.extend(row.to_le_bytes());
            bytes.extend(mtime.to_le_bytes());
        }
        codec::number(&mut bytes, self.entries.len());
        self.entries.iter().for_each(|entry| write_entry(&mut bytes, entry));
        let sum = sum(&bytes);
        bytes.extend(sum.to_le_bytes());
        write_whole(&file(index_file), &bytes)
    }

    /// Deletes the delta file after a merge.
    pub(super) fn remove(index_file: &Path) {
        // A file that cannot be deleted belongs to another base from now on and is ignored.
        let _ = std::fs::remove_file(file(index_file));
    }
}

fn file(index_file: &Path) -> PathBuf {
    index_file.with_extension("delta")
}

fn write_entry(bytes: &mut Vec<u8>, entry: &FileEntry) {
    bytes.extend(entry.size.to_le_bytes());
    bytes.extend(entry.mtime.to_le_bytes());
    bytes.extend(entry.hash.to_le_bytes());
    codec::text(bytes, &entry.path);
    codec::text(bytes, &entry.language);
    entry.detail(bytes);
    for list in [&entry.tokens.path, &entry.tokens.symbols, &entry.tokens.summary] {
        codec::number(bytes, list.len());
        list.iter().for_each(|token| bytes.extend(token.to_le_bytes()));
    }
}

fn read_entry(rest: &mut Decoder<'_>) -> Option<FileEntry> {
    let (size, mtime, hash) = (rest.wide()?, rest.time()?, rest.wide()?);
    let (path, language) = (rest.text()?.to_owned(), rest.text()?.to_owned());
    let detail = FileEntry::from_detail(rest)?;
    let tokens = Tokens { path: rest.list()?, symbols: rest.list()?, summary: rest.list()? };
    Some(FileEntry { path, language, size, mtime, hash, tokens, ..detail })
}
