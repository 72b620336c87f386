//! Text that arrives in pieces, as rows: whole rows are settled and scroll by, the last one is still growing.

use crate::face::line::wrap;

/// A block of Markdown that is longer than this does not wait for its end.
const LONG_BLOCK: usize = 2_000;

/// How far a text is made of whole blocks.
struct Boundary<'a> {
    whole: usize,
    /// The line that opened the block of code at the end, if one is open.
    fence: Option<&'a str>,
}

fn boundary(text: &str) -> Boundary<'_> {
    let (mut whole, mut at, mut fence) = (0, 0, None);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let trimmed = line.trim();
        let marks = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        match (fence, marks) {
            (None, true) => fence = Some(trimmed),
            (Some(_), true) => {
                fence = None;
                whole = if line.ends_with('\n') { at } else { whole };
            }
            (None, false) if trimmed.is_empty() && line.ends_with('\n') => whole = at,
            _ => {}
        }
    }
    Boundary { whole, fence }
}

/// The text of one message.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// All that came.
    text: String,
    /// What of it is not settled yet.
    pending: String,
}

impl Stream {
    /// A piece came.
    pub(crate) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.pending.push_str(piece);
    }

    /// The whole message is known. Pieces may have been lost on the way; then it is shown again as a whole.
    pub(crate) fn finish(&mut self, whole: &str) {
        match whole.strip_prefix(self.text.as_str()) {
            Some(rest) => self.pending.push_str(rest),
            // All of it came, and white space behind it.
            None if self.text.trim_end() == whole => {}
            None => {
                if !self.pending.is_empty() {
                    self.pending.push('\n');
                }
                self.pending.push_str(whole);
            }
        }
        self.text.clear();
    }

    /// Whether nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.pending.is_empty()
    }

    /// Takes the rows that will not change any more.
    pub(crate) fn settled(&mut self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if let Some(end) = self.pending.rfind('\n') {
            let whole: String = self.pending.drain(..=end).collect();
            rows = wrap(whole.trim_end_matches('\n'), columns);
            // The breaks that were trimmed are empty rows between paragraphs.
            let trailing = whole.len() - whole.trim_end_matches('\n').len();
            rows.extend(std::iter::repeat_n(String::new(), trailing.saturating_sub(1)));
        }
        let mut growing = wrap(&self.pending, columns);
        if growing.len() > 1 {
            self.pending = growing.pop().unwrap_or_default();
            rows.extend(growing);
        }
        rows
    }

    /// Takes the blocks of Markdown that are whole. A long one is taken in parts, each of which reads as Markdown.
    pub(crate) fn blocks(&mut self) -> String {
        let Boundary { whole, fence } = boundary(&self.pending);
        let fence = fence.map(str::to_owned);
        if whole > 0 {
            return self.pending.drain(..whole).collect();
        }
        if self.pending.len() < LONG_BLOCK {
            return String::new();
        }
        let Some(end) = self.pending.rfind('\n') else { return String::new() };
        let mut part: String = self.pending.drain(..=end).collect();
        if let Some(opening) = fence {
            part.push_str("```\n");
            self.pending.insert_str(0, &format!("{opening}\n"));
        }
        part
    }

    /// The row that is growing.
    pub(crate) fn growing(&self) -> &str {
        &self.pending
    }
}
