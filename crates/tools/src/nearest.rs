//! The place in a file that is most like a text that is not in it: what `edit` and `patch` show on a miss.
//!
//! Lines vote: each line of the wanted text that stands somewhere in the file votes for the place where the whole
//! would then begin. Only if no line votes are lines compared by likeness, which is slower and bounded.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write;

use crate::numbered;

/// Lines of the place that are shown.
const SHOWN_LINES: usize = 30;
/// Lines of a file that are compared by likeness.
const MOST_COMPARED: usize = 20_000;
/// Characters of a line that count for its likeness.
const COMPARED_CHARACTERS: usize = 160;
/// Below this two lines have nothing to do with each other.
const LEAST_LIKENESS: f64 = 0.5;
/// A line found more often than this says nothing about the place.
const MOST_VOTES_OF_A_LINE: usize = 64;

/// A place in a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    /// Counted from zero.
    first: usize,
    found: Vec<String>,
    wanted: Vec<String>,
}

/// The place of `text` that is most like `wanted`, if anything is.
pub(crate) fn find(text: &str, wanted: &str) -> Option<Place> {
    find_after(text, wanted, 0)
}

/// The same, with places at or after line `from` before all others.
pub(crate) fn find_after(text: &str, wanted: &str, from: usize) -> Option<Place> {
    let wanted: Vec<&str> = numbered::lines(wanted).collect();
    let lines: Vec<&str> = numbered::lines(text).collect();
    let later = lines.get(from..).filter(|_| from > 0).unwrap_or_default();
    let first = by_votes(later, &wanted)
        .map(|first| first + from)
        .or_else(|| by_votes(&lines, &wanted))
        .or_else(|| by_likeness(&lines, &wanted))?;
    let end = (first + wanted.len()).min(lines.len());
    Some(Place {
        first,
        found: lines[first..end].iter().map(|line| (*line).to_owned()).collect(),
        wanted: wanted.iter().map(|line| (*line).to_owned()).collect(),
    })
}

fn by_votes(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut standing: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if line.chars().filter(|character| character.is_alphanumeric()).count() >= 3 {
            standing.entry(line).or_default().push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let Some(places) = standing.get(line.trim()).filter(|places| places.len() <= MOST_VOTES_OF_A_LINE)
        else {
            continue;
        };
        for place in places.iter().filter_map(|place| place.checked_sub(offset)) {
            *votes.entry(place).or_default() += 1;
        }
    }
    // The earliest of the best, so that the answer is always the same.
    votes.into_iter().max_by_key(|&(place, count)| (count, std::cmp::Reverse(place))).map(|(place, _)| place)
}

fn by_likeness(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let (offset, telling) =
        wanted.iter().enumerate().max_by_key(|(at, line)| (line.trim().len(), std::cmp::Reverse(*at)))?;
    let telling = clipped(telling);
    if telling.is_empty() {
        return None;
    }
    let mut pairs = Pairs::of(telling);
    let mut best: Option<(f64, usize)> = None;
    for (at, line) in lines.iter().take(MOST_COMPARED).enumerate() {
        let likeness = pairs.likeness(clipped(line));
        if likeness >= LEAST_LIKENESS && best.is_none_or(|(known, _)| likeness > known) {
            best = Some((likeness, at));
        }
    }
    best.map(|(_, at)| at.saturating_sub(offset))
}

/// The pairs of neighbouring bytes of a line, space left out, against which other lines are held: the Sørensen–Dice
/// measure, with a table instead of sets because it is taken of every line of a file.
struct Pairs {
    /// How often each pair is there.
    left: Vec<u8>,
    total: usize,
    /// Pairs that the line at hand has in common, to be put back after it.
    taken: Vec<usize>,
}

impl Pairs {
    fn of(line: &str) -> Self {
        let mut left = vec![0u8; 1 << 16];
        let mut total = 0;
        for pair in pairs(line) {
            left[pair] = left[pair].saturating_add(1);
            total += 1;
        }
        Self { left, total, taken: Vec::new() }
    }

    /// 0 to 1.
    fn likeness(&mut self, line: &str) -> f64 {
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

impl Place {
    /// What stands there, and how it differs from what was wanted.
    pub(crate) fn describe(&self, line_characters: usize) -> String {
        let last = self.first + self.found.len();
        let mut out = format!("The nearest place is at lines {}-{last}:\n", self.first + 1);
        for (at, line) in self.found.iter().take(SHOWN_LINES).enumerate() {
            numbered::push_line(&mut out, self.first + at + 1, line, line_characters);
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
