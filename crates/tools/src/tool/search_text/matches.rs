//! Collects matches: those of one file while it is searched, and those of all files. Only the first in path
//! order are kept, whatever the order in which threads deliver them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkFinish, SinkMatch};

use crate::workspace::WorkspacePath;

/// Maximum bytes shown of a matching line.
const MAX_BYTES: usize = 400;
/// Bytes shown before the match if the line is cut.
const BEFORE_MATCH: usize = 100;

/// Matching lines collected while a file is searched.
pub(super) struct FileMatches<'m> {
    matcher: &'m RegexMatcher,
    most: usize,
    lines: Vec<(u64, String)>,
    more: bool,
    binary: bool,
}

impl<'m> FileMatches<'m> {
    pub(super) fn new(matcher: &'m RegexMatcher, most: usize) -> Self {
        Self { matcher, most, lines: Vec::new(), more: false, binary: false }
    }

    pub(super) fn finished(self) -> Option<Self> {
        (!self.binary && !self.lines.is_empty()).then_some(self)
    }
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.lines.len() >= self.most {
            self.more = true;
            return Ok(false);
        }
        let first = found.line_number().unwrap_or(1);
        for (number, line) in (first..).zip(found.lines()) {
            self.lines.push((number, shortened(line, self.matcher)));
        }
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The line without its ending; a long line is cut to the part around the match.
fn shortened(line: &[u8], matcher: &RegexMatcher) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let at = matcher.find(line).ok().flatten().map_or(0, |found| found.start());
    let from = floor_boundary(line, at.saturating_sub(BEFORE_MATCH));
    let to = floor_boundary(line, (from + MAX_BYTES).min(line.len()));
    let (head, tail) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    format!("{head}{}{tail}", String::from_utf8_lossy(&line[from..to]))
}

/// The closest character boundary at or before `at`.
fn floor_boundary(line: &[u8], at: usize) -> usize {
    let mut at = at;
    while at > 0 && at < line.len() && (line[at] & 0xC0) == 0x80 {
        at -= 1;
    }
    at
}

/// The first matches of all files in path order. Once there are enough, files later in the order cannot
/// contribute and need not be searched.
pub(super) struct CollectedMatches {
    most: usize,
    count: usize,
    files: BTreeMap<WorkspacePath, (Vec<(u64, String)>, bool)>,
    dropped: bool,
}

impl CollectedMatches {
    pub(super) fn new(most: usize) -> Self {
        Self { most, count: 0, files: BTreeMap::new(), dropped: false }
    }

    /// Whether this path sorts after everything that will be shown.
    pub(super) fn is_past(&self, path: &WorkspacePath) -> bool {
        // One match more than shown is enough to know that there are more.
        self.count > self.most && self.files.last_key_value().is_some_and(|(last, _)| path > last)
    }

    pub(super) fn add(&mut self, path: WorkspacePath, found: FileMatches<'_>) {
        self.count += found.lines.len();
        self.files.insert(path, (found.lines, found.more));
        while let Some(last) = self.files.last_entry() {
            let length = last.get().0.len();
            if self.count - length <= self.most {
                break;
            }
            last.remove();
            self.count -= length;
            self.dropped = true;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes the matches that fit; returns their number and whether they are all.
    pub(super) fn render(&self, out: &mut String, bytes: usize) -> (usize, bool) {
        let mut shown = 0;
        for (path, (lines, more)) in &self.files {
            for (at, (number, line)) in lines.iter().enumerate() {
                if shown == self.most || out.len() + line.len() > bytes {
                    return (shown, false);
                }
                if at == 0 {
                    let _ = writeln!(out, "{path}");
                }
                let _ = writeln!(out, "  {number}: {line}");
                shown += 1;
            }
            if *more {
                return (shown, false);
            }
        }
        (shown, !self.dropped)
    }
}
