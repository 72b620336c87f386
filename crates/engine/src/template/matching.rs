//! Which template fits some words: the likeness of word sets, with the description weighing most.
//!
//! An index of words keeps the cost of a question to the templates that share a word with it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::Template;
use super::registry::Registered;

/// How much of a score is the likeness to the description; the rest is how much of the question is covered.
const LIKENESS: f64 = 0.6;

/// Longer questions are cut: their tail decides nothing.
const MOST_WORDS: usize = 200;

/// What a match must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matching {
    /// The lowest score that counts.
    pub threshold: f64,
    /// At most so many.
    pub limit: usize,
}

impl Default for Matching {
    fn default() -> Self {
        Self { threshold: 0.1, limit: 5 }
    }
}

/// A template that fits.
#[derive(Clone, Debug)]
pub struct Match {
    /// How well: above 0, at most 1.
    pub score: f64,
    /// The template.
    pub registered: Arc<Registered>,
}

/// The words of all templates.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Names of the templates that have a word.
    words: HashMap<String, BTreeSet<String>>,
    templates: HashMap<String, Words>,
}

#[derive(Clone, Debug)]
struct Words {
    description: HashSet<String>,
    /// Of the name and the subtype too.
    all: HashSet<String>,
}

impl Index {
    pub(super) fn add(&mut self, template: &Template) {
        let description = words(&template.description);
        let mut all = description.clone();
        all.extend(words(&template.name));
        all.extend(template.subtype.iter().flat_map(|subtype| words(subtype)));
        for word in &all {
            self.words.entry(word.clone()).or_default().insert(template.name.clone());
        }
        self.templates.insert(template.name.clone(), Words { description, all });
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(known) = self.templates.remove(name) else { return };
        for word in known.all {
            if let Some(names) = self.words.get_mut(&word) {
                names.remove(name);
            }
        }
    }

    /// Names with their scores, best first, ties by name.
    pub(super) fn scored(&self, question: &str, matching: &Matching) -> Vec<(f64, String)> {
        let asked = words(question);
        if asked.is_empty() {
            return Vec::new();
        }
        let candidates: HashSet<&String> =
            asked.iter().filter_map(|word| self.words.get(word)).flatten().collect();
        let mut scored: Vec<(f64, &String)> = candidates
            .into_iter()
            .filter_map(|name| Some((score(&asked, self.templates.get(name)?), name)))
            .filter(|(score, _)| *score > 0.0 && *score >= matching.threshold)
            .collect();
        scored.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
        scored.truncate(matching.limit);
        scored.into_iter().map(|(score, name)| (score, name.clone())).collect()
    }
}

fn score(asked: &HashSet<String>, known: &Words) -> f64 {
    let shared = asked.intersection(&known.description).count() as f64;
    let union = asked.union(&known.description).count().max(1) as f64;
    let covered = asked.intersection(&known.all).count() as f64 / asked.len() as f64;
    let score = LIKENESS * (shared / union) + (1.0 - LIKENESS) * covered;
    (score.min(1.0) * 1000.0).round() / 1000.0
}

/// Words that say nothing of a task.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "in", "into", "is", "it",
    "its", "me", "my", "of", "on", "or", "our", "please", "so", "some", "that", "the", "their", "them",
    "then", "there", "these", "this", "to", "up", "us", "was", "we", "what", "which", "with", "you", "your",
];

/// The words of a text by their stems. A text of empty words alone keeps them.
pub(crate) fn words(text: &str) -> HashSet<String> {
    let all = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(MOST_WORDS)
        .map(str::to_lowercase);
    let (empty, telling): (Vec<String>, Vec<String>) =
        all.partition(|word| EMPTY_WORDS.contains(&word.as_str()));
    let kept = if telling.is_empty() { empty } else { telling };
    kept.iter().map(|word| stem(word)).collect()
}

/// A word without its commonest endings, so that `tests` and `testing` are one word, and `summarize` is `summarise`.
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
