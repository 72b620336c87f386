//! Streamed text as rows: complete rows are settled and scroll by, the last one is still growing.

use crate::ui::line::wrap;

/// Size in bytes from which a Markdown block is rendered before it is complete.
const LONG_BLOCK: usize = 2_000;

/// How much of a text consists of complete blocks.
struct BlockBoundary<'a> {
    whole: usize,
    /// Opening line of the code block that is still open at the end, if any.
    fence: Option<&'a str>,
}

fn boundary(text: &str) -> BlockBoundary<'_> {
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
    BlockBoundary { whole, fence }
}

/// The streamed text of one message.
#[derive(Debug, Default)]
pub(crate) struct TextStream {
    /// Everything received so far.
    text: String,
    /// The part that is not settled yet.
    pending: String,
}

impl TextStream {
    /// Appends a piece of streamed text.
    pub(crate) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.pending.push_str(piece);
    }

    /// Completes the message with its full text. If pieces were lost on the way, it is shown again in full.
    pub(crate) fn finish(&mut self, whole: &str) {
        match whole.strip_prefix(self.text.as_str()) {
            Some(rest) => self.pending.push_str(rest),
            // All of it was received, plus trailing white space.
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

    /// Whether no text was received.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.pending.is_empty()
    }

    /// Takes the rows that can no longer change.
    pub(crate) fn take_finished_rows(&mut self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if let Some(end) = self.pending.rfind('\n') {
            let whole: String = self.pending.drain(..=end).collect();
            rows = wrap(whole.trim_end_matches('\n'), columns);
            // The trimmed line breaks are empty rows between paragraphs.
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

    /// Takes the complete Markdown blocks. A long block is taken in parts, each of which is valid Markdown.
    pub(crate) fn blocks(&mut self) -> String {
        let BlockBoundary { whole, fence } = boundary(&self.pending);
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

    /// The text that is still growing.
    pub(crate) fn pending_text(&self) -> &str {
        &self.pending
    }
}
