//! Styled terminal lines of known width, which can be truncated, wrapped and right-aligned. Untrusted text is
//! sanitized when it is added.

use fusee::engine::text::render::sanitize;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

#[cfg(test)]
mod tests;

/// Appearance of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warning,
    Accent,
}

impl Style {
    /// Escape sequence that switches the style on.
    ///
    /// A terminal does not report its background colour, so the colours are fixed mid-tones with a contrast
    /// of about 4 against both black and white. De-emphasized text is the terminal's own colour, faint.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\u{1b}[1m",
            Self::Dim => "\u{1b}[2m",
            Self::Good => "\u{1b}[38;5;28m",
            Self::Bad => "\u{1b}[38;5;160m",
            Self::Warning => "\u{1b}[38;5;130m",
            Self::Accent => "\u{1b}[38;5;31m",
        }
    }
}

/// One terminal row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StyledLine {
    pieces: Vec<(Style, String)>,
}

impl StyledLine {
    /// Creates an empty row.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates a row of one piece.
    pub(crate) fn styled(style: Style, text: &str) -> Self {
        Self::new().and(style, text)
    }

    /// Appends a piece. Line breaks in it become spaces, so it stays on this row.
    #[must_use]
    pub(crate) fn and(mut self, style: Style, text: &str) -> Self {
        if !text.is_empty() {
            self.pieces.push((style, clean(text)));
        }
        self
    }

    /// Appends all pieces of another row.
    #[must_use]
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// Display width in columns.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// Truncates to at most `most` columns, ending in `…` if anything was removed.
    #[must_use]
    pub(crate) fn cut(self, most: usize) -> Self {
        if self.width() <= most {
            return self;
        }
        let (mut left, mut pieces) = (most.saturating_sub(1), Vec::new());
        for (style, text) in self.pieces {
            let whole = text.width();
            if whole <= left {
                left -= whole;
                pieces.push((style, text));
                continue;
            }
            let mut kept = prefix(&text, left).to_owned();
            if most > 0 {
                kept.push('…');
            }
            pieces.push((style, kept));
            break;
        }
        Self { pieces }
    }

    /// Right-aligns another row on this one. If both do not fit, this row is truncated, down to half the
    /// width; beyond that, `right` is dropped.
    #[must_use]
    pub(crate) fn with_right(self, right: Self, columns: usize) -> Self {
        let needed = right.width();
        if needed == 0 || columns < needed + 2 || columns - needed - 2 < self.width().min(columns / 2) {
            return self.cut(columns);
        }
        let left = self.cut(columns - needed - 2);
        let gap = " ".repeat(columns - needed - left.width());
        left.and(Style::Plain, &gap).join(right)
    }

    /// Wraps the row: the last piece is broken between words, and continuation rows are indented.
    pub(crate) fn broken(mut self, columns: usize, indent: &str) -> Vec<Self> {
        if self.width() <= columns {
            return vec![self];
        }
        let Some((style, text)) = self.pieces.pop() else { return vec![self] };
        let first = wrap(&text, columns.saturating_sub(self.width())).into_iter().next().unwrap_or_default();
        let rest = text.strip_prefix(&first).unwrap_or_default().trim_start_matches(' ');
        let mut lines = vec![self.and(style, &first)];
        if !rest.is_empty() {
            let rows = wrap(rest, columns.saturating_sub(indent.width()));
            lines.extend(rows.iter().map(|row| Self::styled(Style::Plain, indent).and(style, row)));
        }
        lines.into_iter().map(|line| line.cut(columns)).collect()
    }

    /// Renders the row with escape sequences if `colour` is set.
    pub(crate) fn paint(&self, colour: bool) -> String {
        let mut out = String::new();
        for (style, text) in &self.pieces {
            let code = style.code();
            if colour && !code.is_empty() {
                out.push_str(code);
                out.push_str(text);
                out.push_str("\u{1b}[0m");
            } else {
                out.push_str(text);
            }
        }
        out
    }
}

/// Wraps text to at most `columns` columns, between words where possible. Line breaks are kept.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = clean(line.trim_end_matches('\r'));
        let mut rest = line.as_str();
        while rest.width() > columns {
            let head = prefix(rest, columns);
            // A row takes at least one character, so the loop ends even in a terminal of one column.
            let head = if head.is_empty() { rest.graphemes(true).next().unwrap_or_default() } else { head };
            let next_is_space = rest[head.len()..].starts_with(' ');
            let end = match head.rfind(' ') {
                Some(space) if !next_is_space && !head[..space].trim().is_empty() => space,
                _ => head.len(),
            };
            rows.push(rest[..end].trim_end().to_owned());
            rest = rest[end..].trim_start_matches(' ');
        }
        rows.push(rest.to_owned());
    }
    rows
}

/// The longest prefix of whole grapheme clusters that is at most `columns` wide.
fn prefix(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        taken += cluster.width();
        if taken > columns {
            return &text[..at];
        }
    }
    text
}

fn clean(text: &str) -> String {
    if text.contains(['\t', '\n']) {
        sanitize(&text.replace('\t', "    ").replace('\n', " ")).into_owned()
    } else {
        sanitize(text).into_owned()
    }
}
