//! Matches templates against a description: word set similarity, in which the template's description weighs
//! most.
//!
//! An inverted index limits the cost of a query to the templates that share a word with it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Template;
use super::registry::RegisteredTemplate;

/// Weight of the similarity to the description; the rest is the covered share of the query.
const LIKENESS: f64 = 0.6;

/// Maximum number of query words; the rest is ignored.
const MAX_WORDS: usize = 200;

/// Requirements for a match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchOptions {
    /// Minimum score.
    pub threshold: f64,
    /// Maximum number of matches.
    pub limit: usize,
}

impl Default for MatchOptions {
    fn default() -> Self {
        Self { threshold: 0.1, limit: 5 }
    }
}

/// A template whose description resembles the searched words.
#[derive(Clone, Debug)]
pub struct TemplateMatch {
    /// Score: above 0, at most 1.
    pub score: f64,
    /// The matched template.
    pub registered: Arc<RegisteredTemplate>,
}

/// Inverted index: for each word, the numbers of the templates that contain it.
#[derive(Clone, Debug, Default)]
pub(super) struct WordIndex {
    words: HashMap<String, Vec<WordPosting>>,
    /// By number; a removed template leaves its slot empty.
    templates: Vec<Option<KnownWords>>,
    numbers: HashMap<String, u32>,
}

/// Occurrence of a word in a template.
#[derive(Clone, Copy, Debug)]
struct WordPosting {
    template: u32,
    /// Whether it is in the description, not only in the name or subtype.
    described: bool,
}

#[derive(Clone, Debug)]
struct KnownWords {
    name: String,
    /// Number of distinct words in its description.
    description: u32,
}

/// Number of query words that a template contains.
#[derive(Clone, Copy, Default)]
struct SharedWords {
    described: u32,
    all: u32,
}

impl WordIndex {
    pub(super) fn add(&mut self, template: &Template) {
        self.remove(&template.name);
        let number = self.templates.len() as u32;
        let description = words(&template.description);
        let named = words(&template.name).into_iter();
        let named = named.chain(template.subtype.iter().flat_map(|subtype| words(subtype)));
        let others: HashSet<String> = named.filter(|word| !description.contains(word)).collect();
        let known = KnownWords { name: template.name.clone(), description: description.len() as u32 };
        for (words, described) in [(description, true), (others, false)] {
            for word in words {
                self.words.entry(word).or_default().push(WordPosting { template: number, described });
            }
        }
        self.templates.push(Some(known));
        self.numbers.insert(template.name.clone(), number);
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(number) = self.numbers.remove(name) else { return };
        self.templates[number as usize] = None;
        for postings in self.words.values_mut() {
            // Numbers only grow, so each list is sorted.
            if let Ok(at) = postings.binary_search_by_key(&number, |posting| posting.template) {
                postings.remove(at);
            }
        }
    }

    /// Returns names with scores, best first, ties broken by name.
    pub(super) fn scored(&self, question: &str, matching: &MatchOptions) -> Vec<(f64, String)> {
        let asked = words(question);
        if asked.is_empty() || matching.limit == 0 {
            return Vec::new();
        }
        let mut shared = vec![SharedWords::default(); self.templates.len()];
        for posting in asked.iter().filter_map(|word| self.words.get(word)).flatten() {
            let shared = &mut shared[posting.template as usize];
            shared.all += 1;
            shared.described += u32::from(posting.described);
        }
        let touched = self.templates.iter().zip(&shared).filter(|(_, shared)| shared.all > 0);
        let mut scored: Vec<(f64, &str)> = touched
            .filter_map(|(known, shared)| known.as_ref().map(|known| (known, shared)))
            .map(|(known, shared)| {
                (score(asked.len() as u32, known.description, *shared), known.name.as_str())
            })
            .filter(|(score, _)| *score > 0.0 && *score >= matching.threshold)
            .collect();
        let order = |left: &(f64, &str), right: &(f64, &str)| {
            right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1))
        };
        if scored.len() > matching.limit {
            scored.select_nth_unstable_by(matching.limit - 1, order);
            scored.truncate(matching.limit);
        }
        scored.sort_unstable_by(order);
        scored.into_iter().map(|(score, name)| (score, name.to_owned())).collect()
    }
}

fn score(asked: u32, description: u32, shared: SharedWords) -> f64 {
    let union = f64::from((asked + description - shared.described).max(1));
    let likeness = f64::from(shared.described) / union;
    let covered = f64::from(shared.all) / f64::from(asked);
    let score = LIKENESS * likeness + (1.0 - LIKENESS) * covered;
    (score.min(1.0) * 1000.0).round() / 1000.0
}

/// Stop words.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "in", "into", "is", "it",
    "its", "me", "my", "of", "on", "or", "our", "please", "so", "some", "that", "the", "their", "them",
    "then", "there", "these", "this", "to", "up", "us", "was", "we", "what", "which", "with", "you", "your",
];

/// Returns the stemmed words of a text without stop words. A text of only stop words keeps them.
pub(crate) fn words(text: &str) -> HashSet<String> {
    let all = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .map(str::to_lowercase);
    let (empty, telling): (Vec<String>, Vec<String>) =
        all.partition(|word| EMPTY_WORDS.contains(&word.as_str()));
    let kept = if telling.is_empty() { empty } else { telling };
    kept.iter().map(|word| stem(word)).collect()
}

/// Strips common endings, so that `tests` matches `testing`, and `summarize` matches `summarise`.
pub(crate) fn stem(word: &str) -> String {
    const SHORTEST: usize = 3;
    if !word.is_ascii() {
        return word.to_owned();
    }
    let cut = |word: &str, ending: &str| -> Option<String> {
        word.strip_suffix(ending).filter(|rest| rest.len() >= SHORTEST).map(str::to_owned)
    };
    let mut stem = word.to_owned();
    if !stem.ends_with("ss") {
        stem = cut(&stem, "s").unwrap_or(stem);
    }
    stem = cut(&stem, "ing").or_else(|| cut(&stem, "ed")).unwrap_or(stem);
    stem = cut(&stem, "e").unwrap_or(stem);
    match stem.strip_suffix("iz") {
        Some(rest) if rest.len() >= SHORTEST => format!("{rest}is"),
        _ => stem,
    }
}
