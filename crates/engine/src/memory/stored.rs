//! The index as a file. A format of our own, because tens of thousands of entries are read at every question.
//!
//! Numbers are little-endian, texts and lists have their length first. Anything that does not fit makes the whole file
//! count as none: it can always be made again.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::Index;
use super::entry::Entry;
use super::tokens::Tokens;

const MAGIC: &[u8; 8] = b"fuseem01";
/// A file larger than this is not ours.
const LARGEST: u64 = 1 << 30;

/// The index in a file, if there is one that can be read.
pub(super) fn read(path: &Path) -> Option<Index> {
    if fs::metadata(path).ok()?.len() > LARGEST {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let mut rest = Rest(bytes.strip_prefix(MAGIC)?);
    let count = rest.number()? as usize;
    // No entry is smaller than its fixed parts, so a count that lies is found before anything is reserved for it.
    if count > rest.0.len() / 16 {
        return None;
    }
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(rest.entry()?);
    }
    let in_order = entries.windows(2).all(|pair| pair[0].path < pair[1].path);
    (rest.0.is_empty() && in_order).then_some(Index { entries })
}

/// Writes the index in one go: whoever reads sees the old or the new one.
pub(super) fn write(path: &Path, index: &Index) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    number(&mut bytes, index.entries.len());
    for entry in &index.entries {
        bytes.extend(entry.size.to_le_bytes());
        bytes.extend(entry.mtime.to_le_bytes());
        bytes.extend(entry.hash.to_le_bytes());
        text(&mut bytes, &entry.path);
        text(&mut bytes, &entry.language);
        text(&mut bytes, &entry.summary);
        text(&mut bytes, &entry.symbols.join("\n"));
        for list in [&entry.tokens.path, &entry.tokens.symbols, &entry.tokens.summary] {
            number(&mut bytes, list.len());
            list.iter().for_each(|token| bytes.extend(token.to_le_bytes()));
        }
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(&bytes)?;
    drop(file);
    fs::rename(&new, path)
}

fn number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len());
    bytes.extend(text.as_bytes());
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(str::to_owned)
    }

    fn list(&mut self) -> Option<Vec<u32>> {
        let length = self.number()? as usize;
        let (list, rest) = self.0.split_at_checked(length.checked_mul(4)?)?;
        self.0 = rest;
        Some(list.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four)).collect())
    }

    fn entry(&mut self) -> Option<Entry> {
        let size = u64::from_le_bytes(self.take()?);
        let mtime = i64::from_le_bytes(self.take()?);
        let hash = u64::from_le_bytes(self.take()?);
        let (path, language, summary) = (self.text()?, self.text()?, self.text()?);
        let symbols = self.text()?;
        let symbols = symbols.split('\n').filter(|symbol| !symbol.is_empty()).map(str::to_owned).collect();
        let tokens = Tokens { path: self.list()?, symbols: self.list()?, summary: self.list()? };
        Some(Entry { path, language, size, mtime, hash, symbols, summary, tokens })
    }
}
