//! The input editor: multi-line text, a cursor and the usual editing keys. [`super::state`] handles what is
//! submitted.

use unicode_width::UnicodeWidthChar as _;

#[cfg(test)]
mod tests;

/// Maximum size of the text in bytes; larger insertions are rejected, since they are pasted by mistake.
const MOST_BYTES: usize = 1 << 20;

/// A text and its cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// Byte offset of the cursor, on a character boundary.
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
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), at: text.len() }
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
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if self.text.len() + text.len() <= MOST_BYTES {
            self.text.insert_str(self.at, &text);
            self.at += text.len();
        }
    }

    /// Replaces the last `bytes` bytes before the cursor.
    pub(crate) fn replace_before(&mut self, bytes: usize, text: &str) {
        let from = self.at.saturating_sub(bytes);
        if self.text.is_char_boundary(from) {
            self.text.replace_range(from..self.at, "");
            self.at = from;
            self.insert(text);
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
        self.at = from;
    }

    fn target(&self, step: CursorMove) -> usize {
        let (before, after) = self.text.split_at(self.at);
        let word = |c: char| c.is_alphanumeric() || c == '_';
        match step {
            CursorMove::Left => self.at - before.chars().next_back().map_or(0, char::len_utf8),
            CursorMove::Right => self.at + after.chars().next().map_or(0, char::len_utf8),
            CursorMove::WordLeft => before.trim_end_matches(|c| !word(c)).trim_end_matches(word).len(),
            CursorMove::WordRight => {
                let rest = after.trim_start_matches(|c| !word(c)).trim_start_matches(word);
                self.text.len() - rest.len()
            }
            CursorMove::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            CursorMove::LineEnd => self.at + after.find('\n').unwrap_or(after.len()),
        }
    }

    /// Moves to the line above or below; returns `false` if there is none.
    pub(crate) fn line(&mut self, down: bool) -> bool {
        let start = self.target(CursorMove::LineStart);
        let column = self.text[start..self.at].chars().count();
        let line = if down {
            let end = self.target(CursorMove::LineEnd);
            (end < self.text.len()).then_some(end + 1)
        } else {
            (start > 0).then(|| self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1))
        };
        let Some(line) = line else { return false };
        let rest = self.text[line..].split('\n').next().unwrap_or_default();
        let within = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
        self.at = line + within;
        true
    }

    /// Lays the text out in rows of at most `columns` columns. Control characters are shown as `·`.
    pub(crate) fn layout(&self, columns: usize) -> TextLayout {
        let columns = columns.max(2);
        let (mut rows, mut row, mut width) = (Vec::new(), String::new(), 0);
        let mut cursor = (0, 0);
        for (at, c) in self.text.char_indices() {
            let wide = if c == '\n' { 0 } else { c.width().unwrap_or(1) };
            if width + wide > columns {
                rows.push(std::mem::take(&mut row));
                width = 0;
            }
            if at == self.at {
                cursor = (rows.len(), width);
            }
            match c {
                '\n' => {
                    rows.push(std::mem::take(&mut row));
                    width = 0;
                }
                c => {
                    row.push(if c.is_control() { '·' } else { c });
                    width += wide;
                }
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
