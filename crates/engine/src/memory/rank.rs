//! Which files fit some words: BM25 over path, symbols and summary, without a model.

use std::collections::HashMap;

use super::Found;
use super::entry::Entry;
use super::tokens::{self, Tokens};

/// How soon more of the same word stops counting.
const K1: f64 = 1.2;
/// How much longer fields are held back.
const B: f64 = 0.5;
/// What a word weighs in the path, in a symbol, in the summary.
const WEIGHTS: [f64; 3] = [3.0, 2.0, 1.0];
/// A sum of this much is half of a full score.
const HALF: f64 = 8.0;
/// Words of a question beyond these decide nothing.
const MOST_WORDS: usize = 64;

/// A word of the question.
struct Asked {
    word: String,
    hash: u32,
    /// Files that have it.
    files: u32,
}

/// The files that fit, best first, ties by path.
pub(super) fn rank(entries: &[Entry], question: &str, limit: usize) -> Vec<Found> {
    let named = named(entries, question);
    let mut asked = asked(question);
    let filter = Filter::of(&asked);
    let mut candidates: Vec<(usize, Vec<[f64; 3]>)> = Vec::new();
    let (mut lengths, mut hits) = (0_usize, Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        lengths += length(&entry.tokens);
        hits.clear();
        hits.resize(asked.len(), [0.0; 3]);
        if count(&entry.tokens, &asked, &filter, &mut hits) {
            for (word, hit) in asked.iter_mut().zip(&hits) {
                word.files += u32::from(hit.iter().any(|count| *count > 0.0));
            }
            candidates.push((at, hits.clone()));
        }
    }
    let average = (lengths as f64 / entries.len().max(1) as f64).max(1.0);
    let mut scored: Vec<(f64, usize, Vec<[f64; 3]>)> = candidates
        .into_iter()
        .map(|(at, hits)| (score(&entries[at], &hits, &asked, entries.len(), average), at, hits))
        .collect();
    scored.sort_unstable_by(|left, right| {
        let by_score = right.0.total_cmp(&left.0);
        by_score.then_with(|| entries[left.1].path.cmp(&entries[right.1].path))
    });
    let by_name = named.iter().map(|at| Found {
        path: entries[*at].path.clone(),
        score: 1.0,
        reason: "named in the query".to_owned(),
    });
    let by_words = scored.iter().filter(|(_, at, _)| !named.contains(at)).map(|(score, at, hits)| Found {
        path: entries[*at].path.clone(),
        score: ((score / (score + HALF)) * 1000.0).round().max(1.0) / 1000.0,
        reason: reason(hits, &asked),
    });
    by_name.chain(by_words).take(limit).collect()
}

/// Entries whose whole path stands in the question. A base name alone names nothing.
fn named(entries: &[Entry], question: &str) -> Vec<usize> {
    let trim = |word: &str| {
        word.trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '.' | '-'))).to_owned()
    };
    let mut found = Vec::new();
    for word in question.split_whitespace().take(MOST_WORDS * 4) {
        let word = trim(word);
        for path in [word.as_str(), word.trim_end_matches('.'), word.trim_start_matches("./")] {
            if let Ok(at) = entries.binary_search_by(|entry| entry.path.as_str().cmp(path))
                && !found.contains(&at)
            {
                found.push(at);
            }
        }
    }
    found
}

fn asked(question: &str) -> Vec<Asked> {
    let mut seen: HashMap<u32, ()> = HashMap::new();
    let words = tokens::words(question).into_iter();
    let asked = words.map(|word| Asked { hash: tokens::hash(&word), word, files: 0 });
    asked.filter(|asked| seen.insert(asked.hash, ()).is_none()).take(MOST_WORDS).collect()
}

/// Tells most words that were not asked for apart by one look.
struct Filter(Vec<bool>);

impl Filter {
    fn of(asked: &[Asked]) -> Self {
        let mut bits = vec![false; 1 << 16];
        asked.iter().for_each(|asked| bits[(asked.hash & 0xFFFF) as usize] = true);
        Self(bits)
    }
}

/// Counts the asked words in each field; false if there is none.
fn count(tokens: &Tokens, asked: &[Asked], filter: &Filter, hits: &mut [[f64; 3]]) -> bool {
    let mut any = false;
    for (field, list) in [&tokens.path, &tokens.symbols, &tokens.summary].into_iter().enumerate() {
        for hash in list.iter().filter(|hash| filter.0[(**hash & 0xFFFF) as usize]) {
            if let Some(at) = asked.iter().position(|asked| asked.hash == *hash) {
                hits[at][field] += 1.0;
                any = true;
            }
        }
    }
    any
}

fn length(tokens: &Tokens) -> usize {
    tokens.path.len() + tokens.symbols.len() + tokens.summary.len()
}

fn score(entry: &Entry, hits: &[[f64; 3]], asked: &[Asked], files: usize, average: f64) -> f64 {
    let relative = length(&entry.tokens) as f64 / average;
    hits.iter()
        .zip(asked)
        .map(|(hit, asked)| {
            let weighted: f64 = hit.iter().zip(WEIGHTS).map(|(count, weight)| count * weight).sum();
            let rarity =
                (1.0 + (files as f64 - f64::from(asked.files) + 0.5) / (f64::from(asked.files) + 0.5)).ln();
            rarity * weighted * (K1 + 1.0) / (weighted + K1 * (1.0 - B + B * relative))
        })
        .sum()
}

fn reason(hits: &[[f64; 3]], asked: &[Asked]) -> String {
    let names = ["path", "symbols", "summary"];
    let of_field = |field: usize| {
        let words =
            hits.iter().zip(asked).filter(|(hit, _)| hit[field] > 0.0).map(|(_, asked)| asked.word.as_str());
        words.take(6).collect::<Vec<_>>().join(" ")
    };
    let fields = (0..3).map(|field| (names[field], of_field(field))).filter(|(_, words)| !words.is_empty());
    fields.map(|(name, words)| format!("{name}: {words}")).collect::<Vec<_>>().join("; ")
}
