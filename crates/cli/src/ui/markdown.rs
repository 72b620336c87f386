//! Renders the model's Markdown as terminal rows. Text without markup is unchanged. `terminal/stream_buffer.rs`
//! decides which part of a stream is complete enough to be rendered.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use self::table::Table;
use super::line::{Style, StyledLine, wrap};

mod table;

#[cfg(test)]
mod tests;

/// Maximum nesting depth of lists and quotes that is still indented.
const MAX_DEPTH: usize = 6;

/// Renders `text` in rows of at most `columns` columns (at least 8).
pub(crate) fn rows(text: &str, columns: usize) -> Vec<StyledLine> {
    let mut writer = Writer { columns: columns.max(8), ..Writer::default() };
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_TABLES;
    Parser::new_ext(text, options).for_each(|event| writer.take(event));
    writer.end_paragraph();
    writer.rows
}

#[derive(Default)]
struct Writer {
    columns: usize,
    rows: Vec<StyledLine>,
    /// Styled text of the current paragraph.
    words: Vec<(Style, String)>,
    bold: usize,
    /// For each enclosing list, the number of the next item; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// List marker that precedes the next row of text.
    marker: Option<String>,
    quotes: usize,
    code: Option<String>,
    link: Option<String>,
    table: Option<Table>,
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.add(if self.bold > 0 { Style::Bold } else { Style::Plain }, &text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.add(Style::Accent, &text);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.add(Style::Dim, &text),
            Event::FootnoteReference(name) => self.add(Style::Dim, &format!("[{name}]")),
            Event::SoftBreak => self.add(Style::Plain, " "),
            Event::HardBreak => self.add(Style::Plain, "\n"),
            Event::Rule => {
                self.gap();
                self.rows.push(StyledLine::styled(Style::Dim, &"─".repeat(self.columns.min(40))));
            }
            Event::TaskListMarker(done) => self.add(Style::Plain, if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph if self.marker.is_none() => self.gap(),
            Tag::Paragraph => {}
            Tag::Heading { level, .. } => {
                self.gap();
                self.bold += 1;
                if level > HeadingLevel::H2 {
                    self.add(Style::Dim, &format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::Strong | Tag::Emphasis => self.bold += 1,
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                self.gap();
                if let CodeBlockKind::Fenced(name) = &kind
                    && !name.is_empty()
                {
                    self.rows.push(StyledLine::styled(Style::Dim, &format!("{}{name}", self.indent())));
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_paragraph();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.marker = Some(mark);
            }
            Tag::Table(_) => {
                self.end_paragraph();
                self.gap();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(Table::row),
            Tag::TableCell => self.table.iter_mut().for_each(Table::cell),
            Tag::BlockQuote(_) => self.quotes += 1,
            Tag::Link { dest_url, .. } => self.link = Some(dest_url.into_string()),
            Tag::Image { dest_url, .. } => self.add(Style::Dim, &format!("[image {dest_url}] ")),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Item | TagEnd::HtmlBlock => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.bold = self.bold.saturating_sub(1);
            }
            TagEnd::Strong | TagEnd::Emphasis => self.bold = self.bold.saturating_sub(1),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
            }
            TagEnd::Table => {
                let (table, indent) = (self.table.take().unwrap_or_default(), self.indent());
                let lines = table.lines(self.columns.saturating_sub(indent.width()).max(8));
                self.rows
                    .extend(lines.into_iter().map(|line| StyledLine::styled(Style::Dim, &indent).join(line)));
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::Link => {
                let url = self.link.take().unwrap_or_default();
                let text: String = self.words.iter().map(|(_, text)| text.as_str()).collect();
                if !url.is_empty() && !text.ends_with(&url) {
                    self.add(Style::Dim, &format!(" ({url})"));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, style: Style, text: &str) {
        match &mut self.table {
            Some(table) => table.add(text),
            None => self.words.push((style, text.to_owned())),
        }
    }

    fn end_code(&mut self) {
        let indent = self.indent();
        for line in self.code.take().unwrap_or_default().trim_end_matches('\n').split('\n') {
            // Code is hard-wrapped without a continuation indent.
            for row in wrap(line, self.columns.saturating_sub(indent.width() + 2)) {
                self.rows
                    .push(StyledLine::styled(Style::Dim, &format!("{indent}│ ")).and(Style::Accent, &row));
            }
        }
    }

    fn indent(&self) -> String {
        format!("{}{}", "│ ".repeat(self.quotes.min(MAX_DEPTH)), "  ".repeat(self.lists.len().min(MAX_DEPTH)))
    }

    /// Wraps the current paragraph into rows, keeping the style of each word.
    fn end_paragraph(&mut self) {
        let words = std::mem::take(&mut self.words);
        if words.iter().all(|(_, text)| text.trim().is_empty()) {
            return;
        }
        let rest = self.indent();
        let first = match self.marker.take() {
            Some(mark) => {
                let outer: String = rest.chars().take(rest.chars().count().saturating_sub(2)).collect();
                format!("{outer}{mark}")
            }
            None => rest.clone(),
        };
        let mut row = StyledLine::styled(Style::Dim, &first);
        // A space is emitted together with the following word, so no row ends in a space.
        let (mut used, mut begun, mut space) = (first.width(), false, None);
        for (style, piece) in pieces(&words) {
            match piece {
                MarkdownPiece::Break => {
                    self.rows.push(std::mem::replace(&mut row, StyledLine::styled(Style::Dim, &rest)));
                    (used, begun, space) = (rest.width(), false, None);
                }
                MarkdownPiece::Space => space = begun.then_some(style),
                MarkdownPiece::Word(word) => {
                    if begun && used + usize::from(space.is_some()) + word.width() > self.columns {
                        self.rows.push(std::mem::replace(&mut row, StyledLine::styled(Style::Dim, &rest)));
                        (used, space) = (rest.width(), None);
                    }
                    if let Some(style) = space.take() {
                        (row, used) = (row.and(style, " "), used + 1);
                    }
                    let mut parts = wrap(word, self.columns.saturating_sub(rest.width()).max(1));
                    let last = parts.pop().unwrap_or_default();
                    for part in parts {
                        let whole = std::mem::replace(&mut row, StyledLine::styled(Style::Dim, &rest))
                            .and(style, &part);
                        self.rows.push(whole);
                        used = rest.width();
                    }
                    (used, begun) = (used + last.width(), true);
                    row = row.and(style, &last);
                }
            }
        }
        self.rows.push(row);
    }

    fn gap(&mut self) {
        if !self.rows.is_empty() && self.lists.is_empty() {
            self.rows.push(StyledLine::new());
        }
    }
}

enum MarkdownPiece<'a> {
    Word(&'a str),
    Space,
    Break,
}

fn pieces(words: &[(Style, String)]) -> impl Iterator<Item = (Style, MarkdownPiece<'_>)> {
    words.iter().flat_map(|(style, text)| {
        let mut rest = text.as_str();
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            if first == '\n' {
                rest = &rest[1..];
                return Some((*style, MarkdownPiece::Break));
            }
            let space = first == ' ' || first == '\t';
            let end =
                rest.find(|c: char| c == '\n' || (c == ' ' || c == '\t') != space).unwrap_or(rest.len());
            let (piece, left) = rest.split_at(end);
            rest = left;
            Some((*style, if space { MarkdownPiece::Space } else { MarkdownPiece::Word(piece) }))
        })
    })
}
