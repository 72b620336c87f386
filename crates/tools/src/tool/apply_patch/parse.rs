//! Parses a patch into sections: strips what models wrap around it, and detects which of the two formats it
//! uses.

use super::section::FileSection;
use super::{envelope, unified};

/// Syntax error in a patch, with its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {at} of the patch: {what}")]
pub(super) struct ParseError {
    pub(super) at: usize,
    pub(super) what: String,
}

/// A line of the patch and its number, starting at 1.
pub(super) type NumberedLine<'p> = (usize, &'p str);

pub(super) fn parse(patch: &str) -> Result<Vec<FileSection>, ParseError> {
    let lines = lines(patch);
    let begins = |marker: &str| lines.iter().position(|(_, line)| line.trim() == marker);
    let sections = if let Some(begin) = begins(envelope::BEGIN) {
        envelope::parse(&lines[begin..])?
    } else if lines.iter().any(|(_, line)| is_envelope_header(line)) {
        return Err(ParseError {
            at: 1,
            what: format!("`{}` is missing before the first file", envelope::BEGIN),
        });
    } else {
        unified::parse(unfenced(&lines))?
    };
    if sections.is_empty() {
        return Err(ParseError {
            at: 1,
            what: format!(
                "no change found. A patch is `{}` … `{}` with `*** Update File: PATH` and lines that begin with a space, `-` or `+`, or a unified diff",
                envelope::BEGIN,
                envelope::END
            ),
        });
    }
    Ok(sections)
}

/// If every line ends with CRLF, the carriage returns are dropped; in a mixed patch they belong to their
/// lines.
fn lines(patch: &str) -> Vec<NumberedLine<'_>> {
    let patch = patch.strip_prefix('\u{feff}').unwrap_or(patch);
    let mut lines: Vec<&str> = patch.split('\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    if lines.iter().all(|line| line.ends_with('\r')) {
        lines.iter_mut().for_each(|line| *line = &line[..line.len() - 1]);
    }
    lines.into_iter().enumerate().map(|(at, line)| (at + 1, line)).collect()
}

/// Strips a code fence around the entire patch.
fn unfenced<'l, 'p>(lines: &'l [NumberedLine<'p>]) -> &'l [NumberedLine<'p>] {
    let first = lines.iter().position(|(_, line)| !line.trim().is_empty()).unwrap_or(0);
    let last = lines.iter().rposition(|(_, line)| !line.trim().is_empty()).unwrap_or(0);
    if first < last && lines[first].1.starts_with("```") && lines[last].1.trim() == "```" {
        &lines[first + 1..last]
    } else {
        lines
    }
}

fn is_envelope_header(line: &str) -> bool {
    [envelope::ADD, envelope::DELETE, envelope::UPDATE].iter().any(|marker| line.starts_with(marker))
}
