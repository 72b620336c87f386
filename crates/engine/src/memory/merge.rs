//! Merges a base segment and its delta into a new base.

use std::collections::HashMap;

use super::codec::{DamagedIndex, sum};
use super::delta::IndexDelta;
use super::entry::FileEntry;
use super::segment::{Posting, Segment, SegmentHeader};

/// Source of a row of the new base.
enum RowOrigin<'a> {
    Row(usize),
    Entry(&'a FileEntry),
}

/// Returns the bytes of the new base.
pub(super) fn merged(base: &mut Segment, delta: &IndexDelta) -> Result<Vec<u8>, DamagedIndex> {
    base.read_details()?;
    let lists = base.lists()?;
    let order = ordered(base, delta);
    let (mut rows, mut paths) = (Vec::new(), String::new());
    let (mut ends, mut details) = (Vec::new(), Vec::new());
    let mut header = SegmentHeader { count: order.len() as u32, ..SegmentHeader::default() };
    let mut renumbered = vec![None; base.count()];
    let mut added: HashMap<u32, Vec<Posting>> = HashMap::new();
    for (new, origin) in order.iter().enumerate() {
        let (size, mtime, hash, length) = match origin {
            RowOrigin::Row(row) => {
                let known = base.row(*row).ok_or(DamagedIndex)?;
                paths.push_str(base.path(*row));
                details.extend(base.detail(*row).ok_or(DamagedIndex)?);
                renumbered[*row] = Some(new as u32);
                let mtime = delta.touched.get(&(*row as u32)).copied().unwrap_or(known.mtime);
                (known.size, mtime, known.hash, known.length)
            }
            RowOrigin::Entry(entry) => {
                paths.push_str(&entry.path);
                entry.detail(&mut details);
                for (word, counts) in entry.tokens.counted() {
                    added.entry(word).or_default().push(Posting { row: new as u32, counts });
                }
                (entry.size, entry.mtime, entry.hash, entry.tokens.len() as u32)
            }
        };
        header.tokens += u64::from(length);
        rows.extend(size.to_le_bytes());
        rows.extend(mtime.to_le_bytes());
        rows.extend(hash.to_le_bytes());
        rows.extend((paths.len() as u32).to_le_bytes());
        rows.extend(length.to_le_bytes());
        ends.extend((details.len() as u32).to_le_bytes());
    }
    let mut all = PostingBuilder::default();
    let mut left: Vec<(u32, Vec<Posting>)> = added.into_iter().collect();
    left.sort_unstable_by_key(|(word, _)| *word);
    let mut left = left.into_iter().peekable();
    for (word, list) in lists {
        while let Some((other, postings)) = left.next_if(|(other, _)| *other < word) {
            all.add(other, &postings);
        }
        let kept = list.iter().filter_map(|posting| {
            let row = renumbered.get(posting.row as usize).copied().flatten()?;
            Some(Posting { row, ..posting })
        });
        let mut postings: Vec<Posting> = kept.collect();
        if let Some((_, more)) = left.next_if(|(other, _)| *other == word) {
            postings.extend(more);
            postings.sort_unstable_by_key(|posting| posting.row);
        }
        all.add(word, &postings);
    }
    left.for_each(|(word, postings)| all.add(word, &postings));
    rows.extend(paths.as_bytes());
    ends.extend(details);
    header.paths = paths.len() as u64;
    header.words = all.words;
    header.postings = all.lists.len() as u64;
    header.details = ends.len() as u64;
    (header.rows_sum, header.words_sum, header.details_sum) = (sum(&rows), sum(&all.dictionary), sum(&ends));
    Ok([header.bytes(), rows, all.dictionary, all.lists, ends].concat())
}

/// Returns all live rows and entries, sorted by path.
fn ordered<'a>(base: &Segment, delta: &'a IndexDelta) -> Vec<RowOrigin<'a>> {
    let mut order = Vec::with_capacity(base.count() + delta.entries.len());
    let mut entries = delta.entries.iter().peekable();
    for row in (0..base.count()).filter(|row| !delta.is_gone(*row)) {
        let path = base.path(row);
        while let Some(entry) = entries.next_if(|entry| entry.path.as_str() < path) {
            order.push(RowOrigin::Entry(entry));
        }
        order.push(RowOrigin::Row(row));
    }
    order.extend(entries.map(RowOrigin::Entry));
    order
}

/// Dictionary and posting lists under construction.
#[derive(Default)]
struct PostingBuilder {
    words: u32,
    dictionary: Vec<u8>,
    lists: Vec<u8>,
}

impl PostingBuilder {
    fn add(&mut self, word: u32, postings: &[Posting]) {
        if postings.is_empty() {
            return;
        }
        let start = self.lists.len();
        postings.iter().for_each(|posting| self.lists.extend(posting.bytes()));
        let end = (self.lists.len() / super::segment::POSTING) as u32;
        self.dictionary.extend(word.to_le_bytes());
        self.dictionary.extend(end.to_le_bytes());
        self.dictionary.extend((sum(&self.lists[start..]) as u32).to_le_bytes());
        self.words += 1;
    }
}
