//! A named text and its line index. [`Span`]s are byte ranges in it; [`Position`]s are the lines and columns
//! shown to users.

use std::fmt;
use std::sync::Arc;

use crate::Span;

#[cfg(test)]
mod tests;

/// A text with its name. Cloning is cheap: the text and the line index are shared.
#[derive(Clone)]
pub struct Source {
    inner: Arc<Inner>,
}

struct Inner {
    name: Arc<str>,
    text: Box<str>,
    /// Byte offset of the start of each line; the first is 0.
    lines: Vec<usize>,
    /// Whether the text is pure ASCII, where a column is a subtraction however long the line.
    ascii: bool,
}

impl Source {
    /// Creates a source; diagnostics show `name` as the file.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Box<str>>) -> Self {
        let text: Box<str> = text.into();
        let lines =
            std::iter::once(0).chain(text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        let ascii = text.is_ascii();
        Self { inner: Arc::new(Inner { name: name.into(), text, lines, ascii }) }
    }

    /// The name passed to [`Source::new`].
    pub fn name(&self) -> &Arc<str> {
        &self.inner.name
    }

    /// The entire text.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// The text at `span`; empty if the span is out of bounds or splits a character.
    pub fn slice(&self, span: Span) -> &str {
        self.inner.text.get(span.range()).unwrap_or("")
    }

    /// Line number (from 1) that contains `offset`; offsets past the end belong to the last line.
    pub fn line_of(&self, offset: usize) -> usize {
        self.inner.lines.partition_point(|start| *start <= offset).max(1)
    }

    /// Byte range of a line (from 1) without its line ending; an empty span at the end of the text if there
    /// is no such line.
    pub fn line_span(&self, line: usize) -> Span {
        let end_of_text = self.text().len();
        let Some(start) = line.checked_sub(1).and_then(|index| self.inner.lines.get(index)).copied() else {
            return Span::at(end_of_text);
        };
        let next = self.inner.lines.get(line).copied().unwrap_or(end_of_text);
        let text = self.text().get(start..next).unwrap_or("");
        Span::new(start, start + text.trim_end_matches(['\n', '\r']).len())
    }

    /// Line and column of a byte offset.
    pub fn position(&self, offset: usize) -> Position {
        let line = self.line_of(offset);
        let start = self.inner.lines.get(line - 1).copied().unwrap_or(0);
        let offset = offset.min(self.text().len());
        let column = if self.inner.ascii {
            offset - start
        } else {
            self.text().as_bytes().get(start..offset).map_or(0, characters)
        };
        Position { line, column: column + 1 }
    }

    /// Positions of the span's first character and of the character after its last.
    pub fn positions(&self, span: Span) -> (Position, Position) {
        (self.position(span.start()), self.position(span.end()))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name()).field("bytes", &self.text().len()).finish()
    }
}

/// Number of characters that start in `bytes`: every byte that is not a UTF-8 continuation byte.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}

/// A line and column, as shown to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters (Unicode scalar values), from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Default for Position {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}
