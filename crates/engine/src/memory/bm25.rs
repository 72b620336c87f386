//! BM25 ranking over path, symbols and summary, without a model. Only the posting lists of the query words
//! are read.

use std::collections::HashSet;

use super::FileMatch;
use super::codec::DamagedIndex;
use super::index::FileIndex;
use super::tokenizer::{self, Tokens};
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
const MOST_WORDS: usize = 64;

/// A query word.
struct QueryWord {
    /// The word as written, in lower case.
    word: String,
    /// Hash of its stem.
    hash: u32,
}

/// For each query word, its counts in the fields of a file.
type Hits = Vec<[u32; 3]>;

/// Returns the best matching files, best first, ties broken by path.
pub(super) fn rank(
    index: &mut FileIndex,
    question: &str,
    limit: usize,
) -> Result<Vec<FileMatch>, DamagedIndex> {
    let named = named(index, question);
    let asked = asked(question);
    let apart: Vec<Hits> = index.delta.entries.iter().map(|entry| count(&entry.tokens, &asked)).collect();
    let scores = scores(index, &asked, &apart)?;
    let best = best(index, &scores, &named, limit.saturating_sub(named.len()));
    let hits = hits(index, &asked, &apart, &best)?;
    let by_name = named.iter().map(|at| FileMatch {
        path: path(index, *at).to_owned(),
        score: 1.0,
        reason: "named in the query".to_owned(),
    });
    let by_words = best.iter().zip(&hits).map(|(at, hits)| FileMatch {
        path: path(index, *at).to_owned(),
        score: ((scores[*at] / (scores[*at] + HALF)) * 1000.0).round().max(1.0) / 1000.0,
        reason: reason(hits, &asked),
    });
    Ok(by_name.chain(by_words).take(limit).collect())
}

/// Returns the path of a file by its number: base rows come first, then delta entries.
fn path(index: &FileIndex, at: usize) -> &str {
    match at.checked_sub(index.base.count()) {
        None => index.base.path(at),
        Some(apart) => index.delta.entries.get(apart).map_or("", |entry| entry.path.as_str()),
    }
}

/// Returns the files whose full path occurs in the query. A base name alone does not count.
fn named(index: &FileIndex, question: &str) -> Vec<usize> {
    let find = |path: &str| match index.delta.find(path) {
        Ok(at) => Some(index.base.count() + at),
        Err(_) => index.base.find(path).filter(|row| !index.delta.is_gone(*row)),
    };
    let beside = |c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '.' | '-'));
    let mut found = Vec::new();
    for word in question.split_whitespace().take(MOST_WORDS * 4) {
        let word = word.trim_matches(beside);
        for path in [word, word.trim_end_matches('.'), word.trim_start_matches("./")] {
            if let Some(at) = find(path).filter(|at| !found.contains(at)) {
                found.push(at);
            }
        }
    }
    found
}

fn asked(question: &str) -> Vec<QueryWord> {
    let mut seen = HashSet::new();
    let words = tokenizer::split(question).into_iter();
    let asked = words.map(|word| QueryWord { hash: tokenizer::hash(&stem(&word)), word });
    asked.filter(|asked| seen.insert(asked.hash)).take(MOST_WORDS).collect()
}

/// Counts the query words in each field.
fn count(tokens: &Tokens, asked: &[QueryWord]) -> Hits {
    let mut hits = vec![[0; 3]; asked.len()];
    for (field, list) in [&tokens.path, &tokens.symbols, &tokens.summary].into_iter().enumerate() {
        for hash in list {
            if let Some(at) = asked.iter().position(|asked| asked.hash == *hash) {
                hits[at][field] += 1;
            }
        }
    }
    hits
}

/// Returns the BM25 sum of every file; zero for most.
fn scores(index: &mut FileIndex, asked: &[QueryWord], apart: &[Hits]) -> Result<Vec<f64>, DamagedIndex> {
    let (rows, files) = (index.base.count(), index.len());
    let gone = (0..rows).filter(|row| index.delta.is_gone(*row));
    let gone: u64 = gone.filter_map(|row| index.base.row(row)).map(|row| u64::from(row.length)).sum();
    let added: usize = index.delta.entries.iter().map(|entry| entry.tokens.len()).sum();
    let total = index.base.header.tokens.saturating_sub(gone) + added as u64;
    let average = (total as f64 / files.max(1) as f64).max(1.0);
    let mut scores = vec![0.0; rows + apart.len()];
    for (at, word) in asked.iter().enumerate() {
        let list = index.base.list(word.hash)?;
        let holds = |row: u32| !index.delta.is_gone(row as usize);
        let alive = list.iter().filter(|posting| holds(posting.row)).count();
        let alive = alive + apart.iter().filter(|hits| hits[at] != [0; 3]).count();
        let rarity = (1.0 + (files as f64 - alive as f64 + 0.5) / (alive as f64 + 0.5)).ln();
        let part = |counts: [u32; 3], length: usize| {
            let weighted: f64 = counts.iter().zip(WEIGHTS).map(|(n, weight)| f64::from(*n) * weight).sum();
            rarity * weighted * (K1 + 1.0) / (weighted + K1 * (1.0 - B + B * (length as f64 / average)))
        };
        for posting in list.iter().filter(|posting| holds(posting.row)) {
            let row = posting.row as usize;
            let length = index.base.row(row).ok_or(DamagedIndex)?.length as usize;
            scores[row] += part(posting.counts, length);
        }
        for (entry, hits) in apart.iter().enumerate().filter(|(_, hits)| hits[at] != [0; 3]) {
            scores[rows + entry] += part(hits[at], index.delta.entries[entry].tokens.len());
        }
    }
    Ok(scores)
}

/// Returns the files with the highest scores, without those already matched by name.
fn best(index: &FileIndex, scores: &[f64], named: &[usize], wanted: usize) -> Vec<usize> {
    let mut best: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
    best.retain(|at| !named.contains(at));
    let order = |left: &usize, right: &usize| {
        let by_score = scores[*right].total_cmp(&scores[*left]);
        by_score.then_with(|| path(index, *left).cmp(path(index, *right)))
    };
    if wanted < best.len() {
        best.select_nth_unstable_by(wanted, order);
        best.truncate(wanted);
    }
    best.sort_unstable_by(order);
    best
}

/// Returns the word counts of the files to be shown.
fn hits(
    index: &mut FileIndex,
    asked: &[QueryWord],
    apart: &[Hits],
    best: &[usize],
) -> Result<Vec<Hits>, DamagedIndex> {
    let rows = index.base.count();
    let mut hits: Vec<Hits> = vec![Vec::with_capacity(asked.len()); best.len()];
    for (word, asked) in asked.iter().enumerate() {
        let list = index.base.list(asked.hash)?;
        for (hits, at) in hits.iter_mut().zip(best) {
            hits.push(match at.checked_sub(rows) {
                None => list.counts(*at as u32),
                Some(entry) => apart[entry][word],
            });
        }
    }
    Ok(hits)
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
