//! The large part of an index as it lies on disk. Only what a question needs is read of it: the rows and paths for an
//! update, a few posting lists for a query, the details to show them.
//!
//! A header, then: a row a file in order of path; the paths; a dictionary of words with where their lists end; the lists;
//! what is shown of each file. `merge.rs` writes it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::coding::{Damaged, Rest, sum};
use super::entry::{Entry, language};

const MAGIC: &[u8; 8] = b"fuseem02";
const HEADER: usize = 96;
/// Bytes of a row: size, time, hash, the end of its path, its words.
pub(super) const ROW: usize = 32;
/// Bytes of a dictionary's word: its hash, the end of its list, the sum of its list.
pub(super) const WORD: usize = 12;
/// Bytes of a posting: the row, and how often the word is in each field.
pub(super) const POSTING: usize = 8;
/// A count in a field takes ten bits; more than this is this.
const MOST_COUNT: u32 = 1023;
/// A file larger than this is not ours.
const LARGEST: u64 = u32::MAX as u64;

/// How long the parts are, and their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Files.
    pub(super) count: u32,
    /// Words in the dictionary.
    pub(super) words: u32,
    /// Words of all files together.
    pub(super) tokens: u64,
    pub(super) paths: u64,
    pub(super) postings: u64,
    pub(super) details: u64,
    /// Over rows and paths.
    pub(super) rows_sum: u64,
    pub(super) words_sum: u64,
    pub(super) details_sum: u64,
}

impl Header {
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
        let mut rest = Rest(told.strip_prefix(MAGIC)?);
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

/// Where the bytes are.
enum Store {
    Bytes(Vec<u8>),
    File(File),
}

impl Store {
    fn read(&self, at: u64, length: u64) -> Result<Vec<u8>, Damaged> {
        let length = usize::try_from(length).map_err(|_| Damaged)?;
        match self {
            // An index without a file has no parts to read either.
            _ if length == 0 => Ok(Vec::new()),
            Self::Bytes(bytes) => {
                let from = usize::try_from(at).map_err(|_| Damaged)?;
                bytes.get(from..from.saturating_add(length)).map(<[u8]>::to_vec).ok_or(Damaged)
            }
            Self::File(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(at)).map_err(|_| Damaged)?;
                let mut bytes = vec![0; length];
                file.read_exact(&mut bytes).map_err(|_| Damaged)?;
                Ok(bytes)
            }
        }
    }
}

/// A word of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) row: u32,
    /// In the path, the symbols, the summary.
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

/// The postings of one word, in order of row.
pub(super) struct List(Vec<u8>);

impl List {
    pub(super) fn iter(&self) -> impl Iterator<Item = Posting> + '_ {
        self.0.as_chunks::<POSTING>().0.iter().map(Posting::read)
    }

    /// How often the word is in the fields of this row.
    pub(super) fn counts(&self, row: u32) -> [u32; 3] {
        let postings = self.0.as_chunks::<POSTING>().0;
        let found = postings.binary_search_by_key(&row, |posting| Posting::read(posting).row);
        found.map_or([0; 3], |at| Posting::read(&postings[at]).counts)
    }
}

/// What is known of a file's state on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) hash: u64,
    path_end: u32,
    /// Words in all fields.
    pub(super) length: u32,
}

impl Row {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        Some(Self {
            size: rest.wide()?,
            mtime: rest.time()?,
            hash: rest.wide()?,
            path_end: rest.number()?,
            length: rest.number()?,
        })
    }
}

/// An index that is open.
pub(super) struct Base {
    store: Store,
    pub(super) header: Header,
    rows: Vec<u8>,
    paths: String,
    /// Read at the first query.
    dictionary: Option<Vec<u8>>,
    /// Read when something is shown or merged.
    details: Option<Vec<u8>>,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            store: Store::Bytes(Vec::new()),
            header: Header::default(),
            rows: Vec::new(),
            paths: String::new(),
            dictionary: None,
            details: None,
        }
    }
}

impl Base {
    /// The index in a file, if there is one that can be read.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        Self::of(Store::File(file), length)
    }

    /// The index in these bytes.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let length = bytes.len() as u64;
        Self::of(Store::Bytes(bytes), length)
    }

    fn of(store: Store, length: u64) -> Option<Self> {
        if length > LARGEST || length < HEADER as u64 {
            return None;
        }
        let header = Header::read(&store.read(0, HEADER as u64).ok()?)?;
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

    /// Tells this index from every other.
    pub(super) fn id(&self) -> u64 {
        self.header.rows_sum ^ self.header.details_sum.rotate_left(1)
    }

    pub(super) fn count(&self) -> usize {
        self.header.count as usize
    }

    pub(super) fn row(&self, row: usize) -> Option<Row> {
        self.rows.get(row * ROW..(row + 1) * ROW).and_then(Row::read)
    }

    pub(super) fn path(&self, row: usize) -> &str {
        let end = |row: usize| self.row(row).map_or(0, |row| row.path_end as usize);
        let start = row.checked_sub(1).map_or(0, end);
        self.paths.get(start..end(row)).unwrap_or_default()
    }

    /// The row of this path.
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

    /// All words with their lists, in order of hash.
    pub(super) fn lists(&mut self) -> Result<Vec<(u32, List)>, Damaged> {
        let postings = self.store.read(self.header.postings_at(), self.header.postings)?;
        let mut start = 0;
        let words = self.dictionary()?.as_chunks::<WORD>().0.iter();
        let lists = words.map(|word| {
            let (hash, end, check) = split(word);
            let list = postings.get(start..end as usize * POSTING).ok_or(Damaged)?;
            start = end as usize * POSTING;
            checked(list.to_vec(), check).map(|list| (hash, list))
        });
        lists.collect()
    }

    /// The list of one word.
    pub(super) fn list(&mut self, hash: u32) -> Result<List, Damaged> {
        let words = self.dictionary()?.as_chunks::<WORD>().0;
        let Ok(at) = words.binary_search_by_key(&hash, |word| split(word).0) else {
            return Ok(List(Vec::new()));
        };
        let start = at.checked_sub(1).map_or(0, |before| split(&words[before]).1);
        let (_, end, check) = split(&words[at]);
        let length = u64::from(end.checked_sub(start).ok_or(Damaged)?) * POSTING as u64;
        let from = u64::from(start) * POSTING as u64;
        if from + length > self.header.postings {
            return Err(Damaged);
        }
        checked(self.store.read(self.header.postings_at() + from, length)?, check)
    }

    fn dictionary(&mut self) -> Result<&[u8], Damaged> {
        if self.dictionary.is_none() && self.header.words > 0 {
            let length = u64::from(self.header.words) * WORD as u64;
            let read = self.store.read(self.header.words_at(), length)?;
            if sum(&read) != self.header.words_sum {
                return Err(Damaged);
            }
            self.dictionary = Some(read);
        }
        Ok(self.dictionary.as_deref().unwrap_or_default())
    }

    /// Reads what [`Base::detail`] and [`Base::entry`] show.
    pub(super) fn read_details(&mut self) -> Result<(), Damaged> {
        if self.details.is_none() && self.header.count > 0 {
            let read = self.store.read(self.header.details_at(), self.header.details)?;
            if sum(&read) != self.header.details_sum {
                return Err(Damaged);
            }
            self.details = Some(read);
        }
        Ok(())
    }

    /// What is shown of a row, as it was written.
    pub(super) fn detail(&self, row: usize) -> Option<&[u8]> {
        let details = self.details.as_deref()?;
        let (ends, texts) = details.split_at_checked(self.count() * 4)?;
        let end = |row: usize| ends.as_chunks::<4>().0.get(row).map(|end| u32::from_le_bytes(*end) as usize);
        let start = row.checked_sub(1).map_or(Some(0), end)?;
        texts.get(start..end(row)?)
    }

    /// A row as an entry, without its words.
    pub(super) fn entry(&self, row: usize) -> Result<Entry, Damaged> {
        let (stat, detail) = self.row(row).zip(self.detail(row)).ok_or(Damaged)?;
        let mut entry = Entry::from_detail(&mut Rest(detail)).ok_or(Damaged)?;
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

fn checked(list: Vec<u8>, check: u32) -> Result<List, Damaged> {
    if sum(&list) as u32 == check { Ok(List(list)) } else { Err(Damaged) }
}
