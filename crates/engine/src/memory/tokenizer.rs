//! Hashes words: a file's path, symbols and summary become short lists of integers, so that a query over tens
//! of thousands of files compares integers.

use crate::template::stem;

/// Maximum number of tokens kept per field; more of a huge file's symbols add nothing.
const MOST: usize = 400;

/// Hashed words of an entry, by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) path: Vec<u32>,
    pub(super) symbols: Vec<u32>,
    pub(super) summary: Vec<u32>,
}

impl Tokens {
    /// Number of words in all fields.
    pub(super) fn len(&self) -> usize {
        self.path.len() + self.symbols.len() + self.summary.len()
    }

    /// Returns each distinct word with its count in each field.
    pub(super) fn counted(&self) -> Vec<(u32, [u32; 3])> {
        let fields = [&self.path, &self.symbols, &self.summary].into_iter().enumerate();
        let all = fields.flat_map(|(field, words)| words.iter().map(move |word| (*word, field)));
        let mut all: Vec<(u32, usize)> = all.collect();
        all.sort_unstable();
        let mut counted: Vec<(u32, [u32; 3])> = Vec::with_capacity(all.len());
        for (word, field) in all {
            match counted.last_mut().filter(|(last, _)| *last == word) {
                Some((_, counts)) => counts[field] += 1,
                None => {
                    let mut counts = [0; 3];
                    counts[field] = 1;
                    counted.push((word, counts));
                }
            }
        }
        counted
    }
}

pub(super) fn of_fields(path: &str, symbols: &[String], summary: &str) -> Tokens {
    let hashes = |words: Vec<String>| words.iter().take(MOST).map(|word| hash(word)).collect();
    Tokens {
        path: hashes(words(path)),
        symbols: hashes(symbols.iter().flat_map(|symbol| words(symbol)).collect()),
        summary: hashes(words(summary)),
    }
}

/// Returns the stemmed words of a text.
pub(super) fn words(text: &str) -> Vec<String> {
    split(text).iter().map(|word| stem(word)).collect()
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

/// Folded FNV-1a. The hashes are written to disk, so they must be stable between processes.
pub(super) fn hash(word: &str) -> u32 {
    let wide = hash_bytes(word.as_bytes());
    (wide ^ (wide >> 32)) as u32
}

pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
