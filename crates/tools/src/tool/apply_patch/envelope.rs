//! Parser for the Begin/End Patch format: a header per file, and hunks that are located by their context
//! alone.

use super::parse::{NumberedLine, ParseError};
use super::section::{FileSection, Hunk, HunkLine, SectionAction};
use super::unified;

pub(super) const BEGIN: &str = "*** Begin Patch";
pub(super) const END: &str = "*** End Patch";
pub(super) const ADD: &str = "*** Add File:";
pub(super) const DELETE: &str = "*** Delete File:";
pub(super) const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Parses lines that start with the begin marker. Text after the end marker is ignored.
pub(super) fn parse(lines: &[NumberedLine<'_>]) -> Result<Vec<FileSection>, ParseError> {
    let Some(end) = lines.iter().position(|(_, line)| line.trim_end() == END) else {
        let at = lines.last().map_or(1, |(at, _)| *at);
        return Err(ParseError { at, what: format!("`{END}` is missing; was the patch cut off?") });
    };
    let mut reader = Reader { lines: &lines[1..end] };
    let mut sections = Vec::new();
    while let Some((at, line)) = reader.next() {
        if line.trim().is_empty() {
            continue;
        }
        let (action, path) = if let Some(path) = line.strip_prefix(ADD) {
            (reader.added_file()?, path)
        } else if let Some(path) = line.strip_prefix(DELETE) {
            (SectionAction::Delete { hunks: Vec::new() }, path)
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            (reader.updated_file(at)?, path)
        } else {
            return Err(ParseError {
                at,
                what: format!(
                    "expected `{ADD} PATH`, `{DELETE} PATH` or `{UPDATE} PATH`, found `{}`",
                    shortened(line)
                ),
            });
        };
        let path = path.trim().to_owned();
        if path.is_empty() {
            return Err(ParseError { at, what: "the path is missing".to_owned() });
        }
        sections.push(FileSection { path, action, at });
    }
    Ok(sections)
}

struct Reader<'l, 'p> {
    lines: &'l [NumberedLine<'p>],
}

impl<'p> Reader<'_, 'p> {
    fn peek(&self) -> Option<NumberedLine<'p>> {
        self.lines.first().copied()
    }

    fn next(&mut self) -> Option<NumberedLine<'p>> {
        let (first, rest) = self.lines.split_first()?;
        self.lines = rest;
        Some(*first)
    }

    fn added_file(&mut self) -> Result<SectionAction, ParseError> {
        let mut lines = Vec::new();
        while let Some((at, line)) = self.peek() {
            if is_header(line) {
                break;
            }
            match line.strip_prefix('+') {
                Some(text) => lines.push(text.to_owned()),
                // Between added lines: an empty line whose `+` was forgotten. After them: layout.
                None if line.trim().is_empty() => {
                    let rest = self.lines.iter().find(|(_, line)| !line.trim().is_empty());
                    if rest.is_some_and(|(_, line)| line.starts_with('+')) {
                        lines.push(String::new());
                    }
                }
                None => {
                    return Err(ParseError {
                        at,
                        what: format!(
                            "every line of an added file begins with `+`, found `{}`",
                            shortened(line)
                        ),
                    });
                }
            }
            self.next();
        }
        Ok(SectionAction::Add { lines, final_newline: true, mode: None })
    }

    fn updated_file(&mut self, header: usize) -> Result<SectionAction, ParseError> {
        let mut move_to = None;
        if let Some((at, line)) = self.peek()
            && let Some(path) = line.strip_prefix(MOVE)
        {
            self.next();
            let path = path.trim();
            if path.is_empty() {
                return Err(ParseError { at, what: "the path is missing".to_owned() });
            }
            move_to = Some(path.to_owned());
        }
        let mut hunks = Vec::new();
        while let Some((at, line)) = self.peek() {
            if is_header(line) {
                break;
            }
            // Skip blank lines used as layout between the header and the first hunk.
            if line.trim().is_empty()
                && self
                    .lines
                    .iter()
                    .find(|(_, line)| !line.trim().is_empty())
                    .is_some_and(|(_, line)| line.starts_with("@@") || is_header(line))
            {
                self.next();
                continue;
            }
            hunks.push(self.hunk(at)?);
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(ParseError {
                at: header,
                what: "the update changes nothing: no line begins with `-` or `+`".to_owned(),
            });
        }
        Ok(SectionAction::Update { move_to, hunks })
    }

    fn hunk(&mut self, at: usize) -> Result<Hunk, ParseError> {
        let mut hunk = Hunk { at, ..Hunk::default() };
        while let Some((_, line)) = self.peek().filter(|(_, line)| line.starts_with("@@")) {
            self.next();
            if let Some((start, _)) = unified::header(line) {
                hunk.hint = Some(start);
                continue;
            }
            let anchor = line.trim_start_matches('@');
            let anchor = anchor.strip_prefix(' ').unwrap_or(anchor);
            let anchor = anchor.strip_suffix("@@").unwrap_or(anchor).trim_end();
            if !anchor.is_empty() {
                hunk.anchors.push(anchor.to_owned());
            }
        }
        while let Some((at, line)) = self.peek() {
            if line.trim_end() == END_OF_FILE {
                self.next();
                hunk.at_end = true;
                break;
            }
            if line.starts_with("@@") || is_header(line) {
                break;
            }
            hunk.lines.push(hunk_line(line).ok_or_else(|| ParseError {
                at,
                what: format!(
                    "a line of a hunk begins with a space (context), `-` or `+`; found `{}`. Put a space before lines that stay",
                    shortened(line)
                ),
            })?);
            hunk.loose_blanks = if line.is_empty() { hunk.loose_blanks + 1 } else { 0 };
            self.next();
        }
        if !hunk.changes_something() {
            return Err(ParseError {
                at,
                what: "the hunk changes nothing: no line begins with `-` or `+`".to_owned(),
            });
        }
        Ok(hunk)
    }
}

/// Parses a line of a hunk; an empty line counts as empty context.
pub(super) fn hunk_line(line: &str) -> Option<HunkLine> {
    let mut characters = line.chars();
    Some(match characters.next() {
        None | Some('\r') => HunkLine::Keep(line.to_owned()),
        Some(' ') => HunkLine::Keep(characters.as_str().to_owned()),
        Some('-') => HunkLine::Remove(characters.as_str().to_owned()),
        Some('+') => HunkLine::Add(characters.as_str().to_owned()),
        Some(_) => return None,
    })
}

fn is_header(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|marker| line.starts_with(marker))
}

pub(super) fn shortened(line: &str) -> String {
    let mut text: String = line.chars().take(60).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    text
}
