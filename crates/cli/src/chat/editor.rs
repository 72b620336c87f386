//! The input editor: multi-line text, a cursor and the usual editing keys. [`super::state`] handles what is
//! submitted.
//!
//! The unit of movement, deletion and layout is the grapheme cluster: a letter with its combining marks, or
//! an emoji with its modifiers.

use std::borrow::Cow;

use fusee::engine::text::render::sanitize;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};
use unicode_width::UnicodeWidthStr as _;

#[cfg(test)]
mod tests;

/// Maximum size of the text in bytes; larger insertions are rejected, since they are pasted by mistake.
const MAX_BYTES: usize = 1 << 20;

/// A text and its cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// Byte offset of the cursor, on a boundary of grapheme clusters.
    at: usize,
}

/// A text laid out in rows, with the cursor's (row, column).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextLayout {
    pub(crate) rows: Vec<String>,
    pub(crate) cursor: (usize, usize),
}

/// A cursor movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorMove {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
}

impl Editor {
    /// Creates an editor with the cursor at the end of `text`.
    pub(crate) fn with_text(text: &str) -> Self {
        let text = normalized(text);
        Self { at: text.len(), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text before the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.at]
    }

    /// Takes the text and clears the editor.
    pub(crate) fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    /// Inserts text at the cursor, with line endings normalized to `\n`.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = normalized(text);
        if self.text.len() + text.len() <= MAX_BYTES {
            self.text.insert_str(self.at, &text);
            self.put(self.at + text.len());
        }
    }

    /// Puts the cursor at a byte offset, or after the grapheme cluster that the last change formed around it.
    fn put(&mut self, at: usize) {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        let is_inside = cursor.is_boundary(&self.text, 0) == Ok(false);
        let end = if is_inside { cursor.next_boundary(&self.text, 0).ok().flatten() } else { None };
        self.at = end.unwrap_or(at);
    }

    /// Replaces the last `bytes` bytes before the cursor.
    pub(crate) fn replace_before(&mut self, bytes: usize, text: &str) {
        let from = self.at.saturating_sub(bytes);
        if self.text.is_char_boundary(from) {
            self.text.replace_range(from..self.at, "");
            // The insertion moves the cursor to a boundary again, unless it is rejected.
            self.at = from;
            self.insert(text);
            self.put(self.at);
        }
    }

    pub(crate) fn step(&mut self, step: CursorMove) {
        self.at = self.target(step);
    }

    /// Deletes from the cursor to the target of a movement.
    pub(crate) fn delete(&mut self, step: CursorMove) {
        let to = self.target(step);
        let (from, end) = (self.at.min(to), self.at.max(to));
        self.text.replace_range(from..end, "");
        self.put(from);
    }

    fn target(&self, step: CursorMove) -> usize {
        let (before, after) = self.text.split_at(self.at);
        let is_word = |cluster: &str| cluster.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        match step {
            CursorMove::Left => self.at - before.graphemes(true).next_back().map_or(0, str::len),
            CursorMove::Right => self.at + after.graphemes(true).next().map_or(0, str::len),
            CursorMove::WordLeft => {
                let clusters = before.grapheme_indices(true).rev();
                let mut rest = clusters.skip_while(|(_, it)| !is_word(it)).skip_while(|(_, it)| is_word(it));
                rest.next().map_or(0, |(at, cluster)| at + cluster.len())
            }
            CursorMove::WordRight => {
                let clusters = after.grapheme_indices(true);
                let mut rest = clusters.skip_while(|(_, it)| !is_word(it)).skip_while(|(_, it)| is_word(it));
                rest.next().map_or(self.text.len(), |(at, _)| self.at + at)
            }
            CursorMove::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            CursorMove::LineEnd => self.at + after.find('\n').unwrap_or(after.len()),
        }
    }

    /// Moves to the line above or below; returns `false` if there is none.
    pub(crate) fn line(&mut self, down: bool) -> bool {
        let start = self.target(CursorMove::LineStart);
        let column = self.text[start..self.at].graphemes(true).count();
        let line = if down {
            let end = self.target(CursorMove::LineEnd);
            (end < self.text.len()).then_some(end + 1)
        } else {
            (start > 0).then(|| self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1))
        };
        let Some(line) = line else { return false };
        let rest = self.text[line..].split('\n').next().unwrap_or_default();
        let within = rest.grapheme_indices(true).nth(column).map_or(rest.len(), |(at, _)| at);
        self.at = line + within;
        true
    }

    /// Lays the text out in rows of at most `columns` columns. Control characters are shown as `·`, and a
    /// grapheme cluster wider than a row as `…`.
    pub(crate) fn layout(&self, columns: usize) -> TextLayout {
        let columns = columns.max(2);
        let (mut rows, mut row, mut width) = (Vec::new(), String::new(), 0);
        let mut cursor = (0, 0);
        for (at, cluster) in self.text.grapheme_indices(true) {
            let shown = match cluster {
                "\n" => Cow::Borrowed(""),
                _ if cluster.starts_with(char::is_control) => Cow::Borrowed("·"),
                _ => Some(sanitize(cluster)).filter(|it| it.width() <= columns).unwrap_or(Cow::Borrowed("…")),
            };
            if width + shown.width() > columns {
                rows.push(std::mem::take(&mut row));
                width = 0;
            }
            if at == self.at {
                cursor = (rows.len(), width);
            }
            width += shown.width();
            row.push_str(&shown);
            if cluster == "\n" {
                rows.push(std::mem::take(&mut row));
                width = 0;
            }
        }
        if self.at == self.text.len() {
            if width >= columns {
                rows.push(std::mem::take(&mut row));
                width = 0;
            }
            cursor = (rows.len(), width);
        }
        rows.push(row);
        TextLayout { rows, cursor }
    }
}

/// The text with line endings normalized to `\n`.
fn normalized(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}
