//! Finds the passage of a file that is most similar to a missing text; `edit` and `patch` show it on a miss.
//!
//! Each line of the wanted text that occurs in the file votes for the position where the text would then
//! start. Only if there are no votes are lines compared by similarity, which is slower and bounded.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write;

use crate::tool::line_numbers;

/// Maximum lines shown of the passage.
const SHOWN_LINES: usize = 30;
/// Maximum lines of a file compared by similarity.
const MAX_COMPARED: usize = 20_000;
/// Maximum characters of a line compared by similarity.
const COMPARED_CHARACTERS: usize = 160;
/// Lines below this similarity count as unrelated.
const MIN_LIKENESS: f64 = 0.5;
/// Lines that occur more often than this do not vote.
const MAX_VOTES_OF_A_LINE: usize = 64;

/// A passage of a file, with the text it is compared to.
#[derive(Debug, PartialEq)]
pub(crate) struct Passage {
    /// Zero-based number of the first line.
    first: usize,
    found: Vec<String>,
    wanted: Vec<String>,
}

/// Finds the passage of `text` most similar to `wanted`; `None` if nothing is similar.
pub(crate) fn find(text: &str, wanted: &str) -> Option<Passage> {
    find_after(text, wanted, 0)
}

/// Like [`find`], but prefers passages at or after line `from`.
pub(crate) fn find_after(text: &str, wanted: &str, from: usize) -> Option<Passage> {
    let wanted: Vec<&str> = line_numbers::lines(wanted).collect();
    let lines: Vec<&str> = line_numbers::lines(text).collect();
    let later = lines.get(from..).filter(|_| from > 0).unwrap_or_default();
    let first = by_votes(later, &wanted)
        .map(|first| first + from)
        .or_else(|| by_votes(&lines, &wanted))
        .or_else(|| rank_by_similarity(&lines, &wanted))?;
    let end = (first + wanted.len()).min(lines.len());
    Some(Passage {
        first,
        found: lines[first..end].iter().map(|line| (*line).to_owned()).collect(),
        wanted: wanted.iter().map(|line| (*line).to_owned()).collect(),
    })
}

fn by_votes(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut line_positions: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if line.chars().filter(|character| character.is_alphanumeric()).count() >= 3 {
            line_positions.entry(line).or_default().push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let Some(places) =
            line_positions.get(line.trim()).filter(|places| places.len() <= MAX_VOTES_OF_A_LINE)
        else {
            continue;
        };
        for place in places.iter().filter_map(|place| place.checked_sub(offset)) {
            *votes.entry(place).or_default() += 1;
        }
    }
    // The earliest of the best, so that the result is deterministic.
    votes.into_iter().max_by_key(|&(place, count)| (count, std::cmp::Reverse(place))).map(|(place, _)| place)
}

fn rank_by_similarity(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let (offset, telling) =
        wanted.iter().enumerate().max_by_key(|(at, line)| (line.trim().len(), std::cmp::Reverse(*at)))?;
    let telling = clipped(telling);
    if telling.is_empty() {
        return None;
    }
    let mut pairs = Bigrams::new(telling);
    let mut best: Option<(f64, usize)> = None;
    for (at, line) in lines.iter().take(MAX_COMPARED).enumerate() {
        let likeness = pairs.similarity(clipped(line));
        if likeness >= MIN_LIKENESS && best.is_none_or(|(known, _)| likeness > known) {
            best = Some((likeness, at));
        }
    }
    best.map(|(_, at)| at.saturating_sub(offset))
}

/// Byte bigrams of a line without whitespace, for the Sørensen–Dice coefficient. A count table instead of
/// sets, because it is compared with every line of a file.
struct Bigrams {
    /// Number of occurrences of each bigram.
    left: Vec<u8>,
    total: usize,
    /// Bigrams shared with the line being compared, restored afterwards.
    taken: Vec<usize>,
}

impl Bigrams {
    fn new(line: &str) -> Self {
        let mut left = vec![0u8; 1 << 16];
        let mut total = 0;
        for pair in pairs(line) {
            left[pair] = left[pair].saturating_add(1);
            total += 1;
        }
        Self { left, total, taken: Vec::new() }
    }

    /// Sørensen–Dice coefficient, 0 to 1.
    fn similarity(&mut self, line: &str) -> f64 {
        let mut others = 0;
        self.taken.clear();
        for pair in pairs(line) {
            others += 1;
            if self.left[pair] > 0 {
                self.left[pair] -= 1;
                self.taken.push(pair);
            }
        }
        for &pair in &self.taken {
            self.left[pair] += 1;
        }
        2.0 * self.taken.len() as f64 / (self.total + others).max(1) as f64
    }
}

fn pairs(line: &str) -> impl Iterator<Item = usize> {
    let bytes = line.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let next = bytes.clone().skip(1);
    bytes.zip(next).map(|(first, second)| usize::from(first) << 8 | usize::from(second))
}

fn clipped(line: &str) -> &str {
    let line = line.trim();
    line.char_indices().nth(COMPARED_CHARACTERS).map_or(line, |(end, _)| &line[..end])
}

impl Passage {
    /// Describes the passage and how it differs from the wanted text.
    pub(crate) fn describe(&self, line_characters: usize) -> String {
        let last = self.first + self.found.len();
        let mut out = format!("The nearest place is at lines {}-{last}:\n", self.first + 1);
        for (at, line) in self.found.iter().take(SHOWN_LINES).enumerate() {
            line_numbers::push_line(&mut out, self.first + at + 1, line, line_characters);
        }
        if self.found.len() > SHOWN_LINES {
            let _ = writeln!(out, "[… {} more lines]", self.found.len() - SHOWN_LINES);
        }
        out.push_str(&self.difference(line_characters));
        out
    }

    fn difference(&self, line_characters: usize) -> String {
        let alike = |clean: fn(&str) -> String| {
            self.found.len() == self.wanted.len()
                && self.found.iter().zip(&self.wanted).all(|(found, wanted)| clean(found) == clean(wanted))
        };
        if alike(|line| line.trim_end().to_owned()) {
            return "It differs only in spaces at the end of lines.".to_owned();
        }
        if alike(|line| line.trim().to_owned()) {
            return "It differs only in indentation: take it exactly as it stands in the file.".to_owned();
        }
        if alike(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")) {
            return "It differs only in spaces within lines.".to_owned();
        }
        let mut out = String::from("It differs from what was given (- in the file, + given):\n");
        let (mut old, mut new) = (self.found.join("\n"), self.wanted.join("\n"));
        old.push('\n');
        new.push('\n');
        let difference = similar::TextDiff::from_lines(&old, &new);
        let mut shown = 0;
        for change in difference.iter_all_changes() {
            let sign = match change.tag() {
                similar::ChangeTag::Equal => continue,
                similar::ChangeTag::Delete => '-',
                similar::ChangeTag::Insert => '+',
            };
            if shown == SHOWN_LINES {
                out.push_str("[…]\n");
                break;
            }
            let line: String = change.value().trim_end_matches('\n').chars().take(line_characters).collect();
            let _ = writeln!(out, "{sign} {line}");
            shown += 1;
        }
        out.truncate(out.trim_end().len());
        out
    }
}
