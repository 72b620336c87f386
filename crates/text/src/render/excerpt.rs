//! The source lines shown with a diagnostic, bounded in size for any source.

use std::ops::Range;

use super::sanitize::picture;
use crate::{Diagnostic, Source, Span};

/// Maximum number of characters shown per line; the window of a longer line starts [`BEFORE`] characters
/// before the span.
pub(super) const WIDTH: usize = 160;
const BEFORE: usize = 40;
/// A span over more lines than this is marked on its first line only.
const LINES: usize = 4;

/// Excerpt text and the byte range of it to mark.
pub(super) struct Excerpt {
    pub(super) text: String,
    pub(super) marked: Range<usize>,
    pub(super) first_line: usize,
    /// Whether the start of the first line was cut off.
    pub(super) cut: bool,
}

impl Excerpt {
    pub(super) fn new(source: &Source, diagnostic: &Diagnostic) -> Self {
        let (first_line, last_line) = (diagnostic.start.line, diagnostic.end.line);
        let lines: Vec<Span> =
            (first_line..=last_line).take(LINES + 1).map(|line| source.line_span(line)).collect();
        let fits = lines.len() <= LINES && lines.iter().all(|line| line.len() <= WIDTH);
        let shown = if fits { lines.as_slice() } else { lines.get(..1).unwrap_or_default() };
        let mut excerpt = Self { text: String::new(), marked: 0..0, first_line, cut: false };
        for (index, line) in shown.iter().enumerate() {
            if index > 0 {
                excerpt.text.push('\n');
            }
            excerpt.push_line(source, *line, diagnostic.span);
        }
        excerpt
    }

    /// Appends one line, cut to its window, and extends `marked` by the part of `span` that lies in it.
    fn push_line(&mut self, source: &Source, line: Span, span: Span) {
        let window = window(source.text(), line, span.start());
        if window.start() > line.start() {
            self.text.push('…');
            self.cut = true;
        }
        let starts_here = span.start() >= line.start();
        if starts_here {
            self.marked = self.text.len()..self.text.len();
        }
        for (offset, c) in source.slice(window).char_indices() {
            let at = window.start() + offset;
            if at <= span.start() && starts_here {
                self.marked = self.text.len()..self.text.len();
            }
            self.text.push(picture(c));
            if at < span.end() && at >= span.start() {
                self.marked.end = self.text.len();
            }
        }
        if span.start() >= window.end() && starts_here {
            self.marked = self.text.len()..self.text.len();
        }
        if window.end() < line.end() {
            self.text.push('…');
        }
    }
}

/// The part of a line that is shown: all of it, or [`WIDTH`] characters around `focus`.
fn window(text: &str, line: Span, focus: usize) -> Span {
    if line.len() <= WIDTH {
        return line;
    }
    let focus = floor_char_boundary(text, focus.clamp(line.start(), line.end()));
    let before = text.get(line.start()..focus).unwrap_or("");
    let start = before.char_indices().rev().nth(BEFORE - 1).map_or(line.start(), |(at, _)| line.start() + at);
    let after = text.get(start..line.end()).unwrap_or("");
    let end = after.char_indices().nth(WIDTH).map_or(line.end(), |(at, _)| start + at);
    Span::new(start, end)
}

fn floor_char_boundary(text: &str, mut offset: usize) -> usize {
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
