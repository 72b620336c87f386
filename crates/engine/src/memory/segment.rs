//! The main segment of the index on disk. Only the needed parts are read: rows and paths for an update, a few
//! posting lists for a query, and the details of the files to be shown.
//!
//! Layout: header; one row per file, sorted by path; paths; dictionary of words with the end of each posting
//! list; posting lists; details of each file. `merge.rs` writes it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::codec::{DamagedIndex, Decoder, sum};
use super::entry::{FileEntry, language};

const MAGIC: &[u8; 8] = b"fuseem02";
const HEADER: usize = 96;
/// Bytes per row: size, mtime, hash, end of its path, number of words.
pub(super) const ROW: usize = 32;
/// Bytes per dictionary word: hash, end of its posting list, checksum of the list.
pub(super) const WORD: usize = 12;
/// Bytes per posting: row, and the packed word counts of the fields.
pub(super) const POSTING: usize = 8;
/// A count is stored in ten bits and saturates here.
const MOST_COUNT: u32 = 1023;
/// Larger files are rejected as not being an index.
const LARGEST: u64 = u32::MAX as u64;

/// Lengths and checksums of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Number of files.
    pub(super) count: u32,
    /// Number of words in the dictionary.
    pub(super) words: u32,
    /// Total number of words in all files.
    pub(super) tokens: u64,
    pub(super) paths: u64,
    pub(super) postings: u64,
    pub(super) details: u64,
    /// Checksum of rows and paths.
    pub(super) rows_sum: u64,
    pub(super) words_sum: u64,
    pub(super) details_sum: u64,
}

impl SegmentHeader {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.words.to_le_bytes());
        let wide = [
            self.tokens,
            self.paths,
            self.postings,
            self.details,
            self.rows_sum,
            self.words_sum,
            self.details_sum,
        ];
        wide.iter().for_each(|wide| bytes.extend(wide.to_le_bytes()));
        bytes.resize(HEADER - 8, 0);
        let sum = sum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (told, check) = bytes.split_last_chunk::<8>()?;
        if sum(told) != u64::from_le_bytes(*check) {
            return None;
        }
        let mut rest = Decoder(told.strip_prefix(MAGIC)?);
        Some(Self {
            count: rest.number()?,
            words: rest.number()?,
            tokens: rest.wide()?,
            paths: rest.wide()?,
            postings: rest.wide()?,
            details: rest.wide()?,
            rows_sum: rest.wide()?,
            words_sum: rest.wide()?,
            details_sum: rest.wide()?,
        })
    }

    fn paths_at(&self) -> u64 {
        HEADER as u64 + u64::from(self.count) * ROW as u64
    }

    fn words_at(&self) -> u64 {
        self.paths_at() + self.paths
    }

    fn postings_at(&self) -> u64 {
        self.words_at() + u64::from(self.words) * WORD as u64
    }

    fn details_at(&self) -> u64 {
        self.postings_at() + self.postings
    }

    fn end(&self) -> Option<u64> {
        let parts = self.paths.checked_add(self.postings)?.checked_add(self.details)?;
        let fixed = u64::from(self.count) * ROW as u64 + u64::from(self.words) * WORD as u64;
        parts.checked_add(fixed + HEADER as u64)
    }
}

/// Backing storage of a segment.
enum SegmentStore {
    Bytes(Vec<u8>),
    File(File),
}

impl SegmentStore {
    fn read(&self, at: u64, length: u64) -> Result<Vec<u8>, DamagedIndex> {
        let length = usize::try_from(length).map_err(|_| DamagedIndex)?;
        match self {
            // The empty default segment has no bytes behind it, so reading nothing must succeed.
            _ if length == 0 => Ok(Vec::new()),
            Self::Bytes(bytes) => {
                let from = usize::try_from(at).map_err(|_| DamagedIndex)?;
                bytes.get(from..from.saturating_add(length)).map(<[u8]>::to_vec).ok_or(DamagedIndex)
            }
            Self::File(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(at)).map_err(|_| DamagedIndex)?;
                let mut bytes = vec![0; length];
                file.read_exact(&mut bytes).map_err(|_| DamagedIndex)?;
                Ok(bytes)
            }
        }
    }
}

/// Occurrences of a word in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) row: u32,
    /// Counts in the path, the symbols and the summary.
    pub(super) counts: [u32; 3],
}

impl Posting {
    pub(super) fn bytes(self) -> [u8; POSTING] {
        let [path, symbols, summary] = self.counts.map(|count| count.min(MOST_COUNT));
        let packed = path | symbols << 10 | summary << 20;
        let mut bytes = [0; POSTING];
        bytes[..4].copy_from_slice(&self.row.to_le_bytes());
        bytes[4..].copy_from_slice(&packed.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; POSTING]) -> Self {
        let [a, b, c, d, e, f, g, h] = *bytes;
        let packed = u32::from_le_bytes([e, f, g, h]);
        let counts = [packed, packed >> 10, packed >> 20].map(|count| count & MOST_COUNT);
        Self { row: u32::from_le_bytes([a, b, c, d]), counts }
    }
}

/// Postings of one word, sorted by row.
pub(super) struct PostingList(Vec<u8>);

impl PostingList {
    pub(super) fn iter(&self) -> impl Iterator<Item = Posting> + '_ {
        self.0.as_chunks::<POSTING>().0.iter().map(Posting::read)
    }

    /// Returns the word counts of a row's fields.
    pub(super) fn counts(&self, row: u32) -> [u32; 3] {
        let postings = self.0.as_chunks::<POSTING>().0;
        let found = postings.binary_search_by_key(&row, |posting| Posting::read(posting).row);
        found.map_or([0; 3], |at| Posting::read(&postings[at]).counts)
    }
}

/// State of a file on disk when it was indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentRow {
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) hash: u64,
    path_end: u32,
    /// Number of words in all fields.
    pub(super) length: u32,
}

impl SegmentRow {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = Decoder(bytes);
        Some(Self {
            size: rest.wide()?,
            mtime: rest.time()?,
            hash: rest.wide()?,
            path_end: rest.number()?,
            length: rest.number()?,
        })
    }
}

/// An open segment.
pub(super) struct Segment {
    store: SegmentStore,
    pub(super) header: SegmentHeader,
    rows: Vec<u8>,
    paths: String,
    /// Read on the first query.
    dictionary: Option<Vec<u8>>,
    /// Read when entries are shown or merged.
    details: Option<Vec<u8>>,
}

impl Default for Segment {
    fn default() -> Self {
        Self {
            store: SegmentStore::Bytes(Vec::new()),
            header: SegmentHeader::default(),
            rows: Vec::new(),
            paths: String::new(),
            dictionary: None,
            details: None,
        }
    }
}

impl Segment {
    /// Opens a segment file; `None` if it is missing or damaged.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        Self::of(SegmentStore::File(file), length)
    }

    /// Opens a segment from memory.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let length = bytes.len() as u64;
        Self::of(SegmentStore::Bytes(bytes), length)
    }

    fn of(store: SegmentStore, length: u64) -> Option<Self> {
        if length > LARGEST || length < HEADER as u64 {
            return None;
        }
        let header = SegmentHeader::read(&store.read(0, HEADER as u64).ok()?)?;
        if header.end()? != length {
            return None;
        }
        let mut rows = store.read(HEADER as u64, header.words_at() - HEADER as u64).ok()?;
        if sum(&rows) != header.rows_sum {
            return None;
        }
        let paths = String::from_utf8(rows.split_off(header.count as usize * ROW)).ok()?;
        Some(Self { store, header, rows, paths, dictionary: None, details: None })
    }

    /// Identifies this segment, so that a delta can be matched to it.
    pub(super) fn id(&self) -> u64 {
        self.header.rows_sum ^ self.header.details_sum.rotate_left(1)
    }

    pub(super) fn count(&self) -> usize {
        self.header.count as usize
    }

    pub(super) fn row(&self, row: usize) -> Option<SegmentRow> {
        self.rows.get(row * ROW..(row + 1) * ROW).and_then(SegmentRow::read)
    }

    pub(super) fn path(&self, row: usize) -> &str {
        let end = |row: usize| self.row(row).map_or(0, |row| row.path_end as usize);
        let start = row.checked_sub(1).map_or(0, end);
        self.paths.get(start..end(row)).unwrap_or_default()
    }

    /// Finds the row of a path by binary search.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.path(middle).cmp(path) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns all posting lists, sorted by word hash.
    pub(super) fn lists(&mut self) -> Result<Vec<(u32, PostingList)>, DamagedIndex> {
        let postings = self.store.read(self.header.postings_at(), self.header.postings)?;
        let mut start = 0;
        let words = self.dictionary()?.as_chunks::<WORD>().0.iter();
        let lists = words.map(|word| {
            let (hash, end, check) = split(word);
            let list = postings.get(start..end as usize * POSTING).ok_or(DamagedIndex)?;
            start = end as usize * POSTING;
            checked(list.to_vec(), check).map(|list| (hash, list))
        });
        lists.collect()
    }

    /// Returns the posting list of one word; empty if the word is unknown.
    pub(super) fn list(&mut self, hash: u32) -> Result<PostingList, DamagedIndex> {
        let words = self.dictionary()?.as_chunks::<WORD>().0;
        let Ok(at) = words.binary_search_by_key(&hash, |word| split(word).0) else {
            return Ok(PostingList(Vec::new()));
        };
        let start = at.checked_sub(1).map_or(0, |before| split(&words[before]).1);
        let (_, end, check) = split(&words[at]);
        let length = u64::from(end.checked_sub(start).ok_or(DamagedIndex)?) * POSTING as u64;
        let from = u64::from(start) * POSTING as u64;
        if from + length > self.header.postings {
            return Err(DamagedIndex);
        }
        checked(self.store.read(self.header.postings_at() + from, length)?, check)
    }

    fn dictionary(&mut self) -> Result<&[u8], DamagedIndex> {
        if self.dictionary.is_none() && self.header.words > 0 {
            let length = u64::from(self.header.words) * WORD as u64;
            let read = self.store.read(self.header.words_at(), length)?;
            if sum(&read) != self.header.words_sum {
                return Err(DamagedIndex);
            }
            self.dictionary = Some(read);
        }
        Ok(self.dictionary.as_deref().unwrap_or_default())
    }

    /// Loads the details needed by [`Segment::detail`] and [`Segment::entry`].
    pub(super) fn read_details(&mut self) -> Result<(), DamagedIndex> {
        if self.details.is_none() && self.header.count > 0 {
            let read = self.store.read(self.header.details_at(), self.header.details)?;
            if sum(&read) != self.header.details_sum {
                return Err(DamagedIndex);
            }
            self.details = Some(read);
        }
        Ok(())
    }

    /// Returns the encoded details of a row.
    pub(super) fn detail(&self, row: usize) -> Option<&[u8]> {
        let details = self.details.as_deref()?;
        let (ends, texts) = details.split_at_checked(self.count() * 4)?;
        let end = |row: usize| ends.as_chunks::<4>().0.get(row).map(|end| u32::from_le_bytes(*end) as usize);
        let start = row.checked_sub(1).map_or(Some(0), end)?;
        texts.get(start..end(row)?)
    }

    /// Decodes a row into an entry, without its tokens.
    pub(super) fn entry(&self, row: usize) -> Result<FileEntry, DamagedIndex> {
        let (stat, detail) = self.row(row).zip(self.detail(row)).ok_or(DamagedIndex)?;
        let mut entry = FileEntry::from_detail(&mut Decoder(detail)).ok_or(DamagedIndex)?;
        entry.path = self.path(row).to_owned();
        entry.language = language(&entry.path).to_owned();
        (entry.size, entry.mtime, entry.hash) = (stat.size, stat.mtime, stat.hash);
        Ok(entry)
    }
}

fn split(word: &[u8; WORD]) -> (u32, u32, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *word;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]), u32::from_le_bytes([i, j, k, l]))
}

fn checked(list: Vec<u8>, check: u32) -> Result<PostingList, DamagedIndex> {
    if sum(&list) as u32 == check { Ok(PostingList(list)) } else { Err(DamagedIndex) }
}
