//! BM25 ranking over path, symbols and summary, without a model. The full-text table picks the files worth
//! ranking by the rarest query words; their scores are computed here.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::FileMatch;
use super::entry::FileEntry;
use super::index::FileIndex;
use super::tokenizer::{self, Words};
use crate::template::stem;

/// BM25 term frequency saturation.
const K1: f64 = 1.2;
/// BM25 length normalisation.
const B: f64 = 0.5;
/// Field weights: path, symbols, summary.
const WEIGHTS: [f64; 3] = [3.0, 2.0, 1.0];
/// Raw BM25 sum that maps to a score of 0.5.
const HALF: f64 = 8.0;
/// Maximum number of query words that are scored.
const MAX_WORDS: usize = 64;
/// Minimum number of files to rank, if as many match.
const CANDIDATES: usize = 200;
/// Maximum number of occurrences searched for candidates, counting each word once per file. Words beyond it,
/// the most common ones, only count in the scores. The rarest word is always searched.
const MAX_OCCURRENCES: usize = 40_000;

/// One distinct word of the search text.
struct QueryWord {
    /// The word as written, in lower case.
    word: String,
    stem: String,
    /// Number of files that contain it.
    files: usize,
}

/// For each query word, its counts in the fields of a file.
type Hits = Vec<[u32; 3]>;

/// Returns the best matching files, best first, ties broken by path.
pub(super) fn rank(index: &FileIndex, question: &str, limit: usize) -> rusqlite::Result<Vec<FileMatch>> {
    let named = named(index, question)?;
    let asked = asked(index, question)?;
    let mut found = candidates(index, &asked, limit.saturating_mul(2).max(CANDIDATES))?;
    found.retain(|entry| !named.contains(&entry.path));
    let totals = index.totals()?;
    let average = (totals.words as f64 / totals.files.max(1) as f64).max(1.0);
    let rated = found.into_iter().map(|entry| {
        let words = Words::new(&entry);
        let hits = count(&words, &asked);
        (score(&hits, &asked, totals.files as f64, words.len() as f64 / average), hits, entry.path)
    });
    let mut rated: Vec<(f64, Hits, String)> = rated.collect();
    rated.sort_unstable_by(|left, right| match right.0.total_cmp(&left.0) {
        Ordering::Equal => left.2.cmp(&right.2),
        order => order,
    });
    let by_name =
        named.into_iter().map(|path| FileMatch { path, score: 1.0, reason: "named in the query".to_owned() });
    let by_words = rated.into_iter().map(|(score, hits, path)| FileMatch {
        path,
        score: ((score / (score + HALF)) * 1000.0).round().max(1.0) / 1000.0,
        reason: reason(&hits, &asked),
    });
    Ok(by_name.chain(by_words).take(limit).collect())
}

/// Returns the files whose full path occurs in the query. A base name alone does not count.
fn named(index: &FileIndex, question: &str) -> rusqlite::Result<Vec<String>> {
    let beside = |c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '.' | '-'));
    let mut found: Vec<String> = Vec::new();
    for word in question.split_whitespace().take(MAX_WORDS * 4) {
        let word = word.trim_matches(beside);
        for path in [word, word.trim_end_matches('.'), word.trim_start_matches("./")] {
            if !found.iter().any(|other| other == path) && index.entry(path)?.is_some() {
                found.push(path.to_owned());
            }
        }
    }
    Ok(found)
}

fn asked(index: &FileIndex, question: &str) -> rusqlite::Result<Vec<QueryWord>> {
    let mut seen = HashSet::new();
    let words = tokenizer::split(question).into_iter().map(|word| (stem(&word), word));
    let words = words.filter(|(stem, _)| seen.insert(stem.clone())).take(MAX_WORDS);
    words.map(|(stem, word)| Ok(QueryWord { files: index.files_with(&stem)?, word, stem })).collect()
}

/// Returns files that contain query words.
fn candidates(index: &FileIndex, asked: &[QueryWord], most: usize) -> rusqlite::Result<Vec<FileEntry>> {
    let mut rarest: Vec<&QueryWord> = asked.iter().filter(|asked| asked.files > 0).collect();
    rarest.sort_by_key(|asked| asked.files);
    let mut occurrences = 0;
    let searched = rarest.iter().enumerate().take_while(|(at, asked)| {
        occurrences += asked.files;
        *at == 0 || occurrences <= MAX_OCCURRENCES
    });
    let searched: Vec<String> = searched.map(|(_, asked)| format!("\"{}\"", asked.stem)).collect();
    if searched.is_empty() {
        return Ok(Vec::new());
    }
    index.matching(&searched.join(" OR "), most)
}

/// Counts the query words in each field.
fn count(words: &Words, asked: &[QueryWord]) -> Hits {
    let mut hits = vec![[0; 3]; asked.len()];
    for (field, list) in words.fields().iter().enumerate() {
        for word in list {
            if let Some(at) = asked.iter().position(|asked| asked.stem == *word) {
                hits[at][field] += 1;
            }
        }
    }
    hits
}

/// Returns the BM25 sum of a file; `length` is relative to the average.
fn score(hits: &Hits, asked: &[QueryWord], files: f64, length: f64) -> f64 {
    let parts = hits.iter().zip(asked).map(|(counts, asked)| {
        let with = asked.files as f64;
        let rarity = (1.0 + (files - with + 0.5) / (with + 0.5)).ln();
        let weighted: f64 = counts.iter().zip(WEIGHTS).map(|(n, weight)| f64::from(*n) * weight).sum();
        rarity * weighted * (K1 + 1.0) / (weighted + K1 * (1.0 - B + B * length))
    });
    parts.sum()
}

fn reason(hits: &Hits, asked: &[QueryWord]) -> String {
    let names = ["path", "symbols", "summary"];
    let of_field = |field: usize| {
        let words =
            hits.iter().zip(asked).filter(|(hit, _)| hit[field] > 0).map(|(_, asked)| asked.word.as_str());
        words.take(6).collect::<Vec<_>>().join(" ")
    };
    let fields = (0..3).map(|field| (names[field], of_field(field))).filter(|(_, words)| !words.is_empty());
    fields.map(|(name, words)| format!("{name}: {words}")).collect::<Vec<_>>().join("; ")
}
