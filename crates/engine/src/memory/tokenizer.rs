//! Splits an entry's path, symbols and summary into stemmed words, as they are indexed and counted.

use super::entry::FileEntry;
use crate::template::stem;

/// Maximum number of words kept per field; more of a huge file's symbols add nothing.
const MAX_WORDS: usize = 400;

/// Stemmed words of an entry, by field: path, symbols, summary.
pub(super) struct Words([Vec<String>; 3]);

impl Words {
    pub(super) fn new(entry: &FileEntry) -> Self {
        let stems = |words: Vec<String>| words.iter().take(MAX_WORDS).map(|word| stem(word)).collect();
        let symbols = entry.symbols.iter().flat_map(|symbol| split(symbol)).collect();
        Self([stems(split(&entry.path)), stems(symbols), stems(split(&entry.summary))])
    }

    pub(super) fn fields(&self) -> &[Vec<String>; 3] {
        &self.0
    }

    /// Returns each field as words separated by blanks.
    pub(super) fn texts(&self) -> [String; 3] {
        self.0.each_ref().map(|words| words.join(" "))
    }

    /// Number of words in all fields.
    pub(super) fn len(&self) -> i64 {
        self.0.iter().map(|words| words.len() as i64).sum()
    }
}

/// Splits a text into lower-case words, at non-alphanumeric characters and at case changes.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars() {
        if c.is_alphanumeric() {
            if c.is_uppercase() && was_lower {
                flush(&mut word, &mut words);
            }
            was_lower = c.is_lowercase() || c.is_numeric();
            word.extend(c.to_lowercase());
        } else {
            flush(&mut word, &mut words);
            was_lower = false;
        }
    }
    flush(&mut word, &mut words);
    words
}

fn flush(word: &mut String, words: &mut Vec<String>) {
    if word.len() > 1 {
        words.push(word.clone());
    }
    word.clear();
}

/// FNV-1a. The hash is stored, so it must not differ between processes.
pub(super) fn hash(bytes: &[u8]) -> i64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).cast_signed()
}
