//! Finds a hunk's lines in a file: exactly first, then with increasing leniency. Each level searches the
//! entire file before the next is tried.

use super::lines::FileLine;

/// How strictly lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Leniency {
    Exact,
    /// Ignores trailing whitespace.
    TrailingSpace,
    /// Ignores leading and trailing whitespace.
    SurroundingSpace,
    /// Also treats typographic quotes, dashes and spaces as their ASCII forms, which models write instead.
    Typographic,
}

pub(super) const LADDER: [Leniency; 4] =
    [Leniency::Exact, Leniency::TrailingSpace, Leniency::SurroundingSpace, Leniency::Typographic];

impl Leniency {
    pub(super) fn same(self, file: &[u8], wanted: &str) -> bool {
        match self {
            Self::Exact => file == wanted.as_bytes(),
            Self::TrailingSpace => file.trim_ascii_end() == wanted.as_bytes().trim_ascii_end(),
            Self::SurroundingSpace => file.trim_ascii() == wanted.as_bytes().trim_ascii(),
            Self::Typographic => match std::str::from_utf8(file) {
                Ok(file) => plain(file).eq(plain(wanted)),
                Err(_) => false,
            },
        }
    }
}

/// The trimmed characters, with typographic ones replaced by ASCII.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.trim().chars().map(|character| match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{00b4}' | '\u{ff07}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{00ab}' | '\u{00bb}' | '\u{ff02}' => '"',
        '\u{00a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        '\u{2024}' => '.',
        other => other,
    })
}

/// Positions of `wanted` in `lines` at or after `from`, at the strictest level that has any match.
pub(super) fn find(lines: &[FileLine<'_>], wanted: &[&str], from: usize) -> Option<(Leniency, Vec<usize>)> {
    let last = lines.len().checked_sub(wanted.len())?;
    LADDER.into_iter().find_map(|leniency| {
        let places: Vec<usize> = (from..=last)
            .filter(|&place| {
                lines[place..].iter().zip(wanted).all(|(line, wanted)| leniency.same(line.text, wanted))
            })
            .collect();
        (!places.is_empty()).then_some((leniency, places))
    })
}

/// Returns the line after the first match of `anchor` at or after `from`. As a last resort it accepts a line
/// that only starts with the anchor, if it is the only one.
pub(super) fn find_anchor(lines: &[FileLine<'_>], anchor: &str, from: usize) -> Option<usize> {
    if let Some((_, places)) = find(lines, &[anchor], from) {
        return places.first().map(|place| place + 1);
    }
    let anchor = anchor.trim().as_bytes();
    let mut begin = (from..lines.len()).filter(|&place| lines[place].text.trim_ascii().starts_with(anchor));
    match (begin.next(), begin.next()) {
        (Some(place), None) if !anchor.is_empty() => Some(place + 1),
        _ => None,
    }
}

/// Leading spaces and tabs of a line.
pub(super) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
