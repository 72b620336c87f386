//! The parser: tokens to a [`Tree`]. Reports every error and always returns a tree.

use super::lex::{Lexer, Token, TokenKind};
use super::tree::{Comment, Node, NodeId, NodeKind, Tree};
use crate::{Diagnostic, Diagnostics, Source, Span};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// Maximum text length in bytes; a longer text gives one diagnostic and an empty tree.
pub const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Reads all expressions of a source.
///
/// Reading continues after every error: a stray `)` is skipped, lists left open are closed at the end, and an
/// unreadable word or string becomes a placeholder node. Time and memory are linear in the length of the
/// text.
pub fn read(source: &Source) -> (Tree, Diagnostics) {
    let mut reader = Reader {
        lexer: Lexer::new(source),
        source,
        tree: Tree::empty(source.clone()),
        open: Vec::new(),
        pending: Vec::new(),
        quotes: 0,
        margin: None,
    };
    if source.text().len() > MAX_BYTES {
        let message =
            format!("the text is too long: {} bytes, at most {MAX_BYTES} are allowed", source.text().len());
        let span = Span::at(0);
        reader.lexer.problems.push(Diagnostic::error("text-too-long", source, span, message));
        return (reader.tree, reader.lexer.problems);
    }
    while let Some(token) = reader.lexer.next() {
        reader.token(token);
    }
    reader.finish();
    (reader.tree, reader.lexer.problems)
}

struct Reader<'s> {
    lexer: Lexer<'s>,
    source: &'s Source,
    tree: Tree,
    open: Vec<OpenList>,
    /// Finished items of all open lists, innermost last.
    pending: Vec<NodeId>,
    /// Number of innermost open nodes that are quotes still without their item.
    quotes: usize,
    /// First `(` in the first column that is inside a list: a `)` is probably missing before it.
    margin: Option<Margin>,
}

struct OpenList {
    node: NodeId,
    /// Index in [`Reader::pending`] of its first item.
    items: usize,
}

struct Margin {
    at: usize,
    inside: NodeId,
}

impl Reader<'_> {
    fn token(&mut self, Token { kind, span }: Token) {
        match kind {
            TokenKind::Open => {
                self.note_margin(span.start());
                self.begin(NodeKind::List, span);
            }
            TokenKind::Quote => self.begin(NodeKind::Quote, span),
            TokenKind::Close => self.close(span),
            TokenKind::Comment => self.comment(span),
            TokenKind::Atom(kind, value) => {
                let node = self.add(kind, span);
                if let Some(value) = value {
                    self.tree.decoded.push((node, value));
                }
                self.attach(node);
            }
        }
    }

    fn add(&mut self, kind: NodeKind, span: Span) -> NodeId {
        // MAX_BYTES keeps the number of nodes far below 2^32.
        let id = self.tree.nodes.len() as u32;
        self.tree.nodes.push(Node { kind, span, items: (0, 0), next: id + 1 });
        NodeId(id)
    }

    fn begin(&mut self, kind: NodeKind, span: Span) {
        self.quotes = if kind == NodeKind::Quote { self.quotes + 1 } else { 0 };
        let node = self.add(kind, span);
        self.open.push(OpenList { node, items: self.pending.len() });
    }

    /// Adds a finished node to its parent list; a quote is complete with its first item.
    fn attach(&mut self, mut node: NodeId) {
        self.quotes = 0;
        loop {
            match self.open.last() {
                None => return self.tree.roots.push(node),
                Some(open) if self.tree.kind(open.node) == NodeKind::Quote => {
                    let end = self.tree.span(node).end();
                    self.pending.push(node);
                    match self.end(end) {
                        Some(quote) => node = quote,
                        None => return,
                    }
                }
                Some(_) => return self.pending.push(node),
            }
        }
    }

    /// Ends the innermost open node at `end`.
    fn end(&mut self, end: usize) -> Option<NodeId> {
        let open = self.open.pop()?;
        let first = self.tree.children.len() as u32;
        self.tree.children.extend(self.pending.drain(open.items..));
        let next = self.tree.nodes.len() as u32;
        let last = self.tree.children.len() as u32;
        let node = &mut self.tree.nodes[open.node.0 as usize];
        node.items = (first, last);
        node.next = next;
        node.span = Span::new(node.span.start(), end);
        Some(open.node)
    }

    fn close(&mut self, span: Span) {
        self.end_bare_quotes();
        match self.end(span.end()) {
            Some(list) => self.attach(list),
            None => {
                let problem = Diagnostic::error("unexpected-close", self.source, span, "unmatched `)`");
                self.lexer.problems.push(problem.help("remove it or add the missing `(`"));
            }
        }
    }

    /// Closes quotes that have nothing to quote; consecutive ones are reported as one error.
    fn end_bare_quotes(&mut self) {
        let mut outermost = None;
        for _ in 0..std::mem::take(&mut self.quotes) {
            let end = self.open.last().map_or(0, |open| self.tree.span(open.node).end());
            outermost = self.end(end);
        }
        if let Some(quote) = outermost {
            let span = self.tree.span(quote);
            let problem =
                Diagnostic::error("bare-quote", self.source, span, "`'` is not followed by an expression");
            self.lexer.problems.push(problem);
            self.tree.nodes[quote.0 as usize].kind = NodeKind::Unreadable;
            self.attach(quote);
        }
    }

    fn comment(&mut self, span: Span) {
        let depth = self.open.len() - self.quotes;
        let end = self.open.get(depth).map_or(self.pending.len(), |quote| quote.items);
        let (owner, before) = match depth.checked_sub(1).and_then(|index| self.open.get(index)) {
            Some(open) => (Some(open.node), end - open.items),
            None => (None, self.tree.roots.len()),
        };
        let line = self.source.line_span(self.source.line_of(span.start()));
        let prefix = self.source.slice(Span::new(line.start(), span.start()));
        let own_line = self.quotes > 0 || prefix.trim_start_matches('\u{feff}').trim_start().is_empty();
        self.tree.comments.push(Comment { span, owner, before: before as u32, own_line });
    }

    fn note_margin(&mut self, at: usize) {
        let in_first_column = at == 0 || self.source.text().as_bytes().get(at - 1) == Some(&b'\n');
        if in_first_column
            && self.margin.is_none()
            && let Some(open) = self.open.first()
        {
            self.margin = Some(Margin { at, inside: open.node });
        }
        if self.open.is_empty() {
            self.margin = None;
        }
    }

    /// Closes everything still open at the end of the text, with a single diagnostic for all lists.
    fn finish(&mut self) {
        let end = self.source.text().len();
        let mut lists = 0;
        let mut outermost = None;
        self.end_bare_quotes();
        while let Some(open) = self.open.last() {
            if self.tree.kind(open.node) == NodeKind::List {
                lists += 1;
                outermost = Some(open.node);
            }
            if let Some(node) = self.end(end) {
                self.attach_closed(node);
            }
        }
        if let Some(list) = outermost {
            let start = self.tree.nodes[list.0 as usize].span.start();
            let message = match lists {
                1 => "this list is not closed".to_owned(),
                _ => format!("this list and {} more inside it are not closed", lists - 1),
            };
            let forgotten = self.margin.as_ref().filter(|margin| margin.inside == list).map(|margin| {
                let line = self.source.line_of(margin.at);
                format!("line {line} starts a form at the left margin; a `)` is probably missing before it")
            });
            let span = Span::new(start, start + 1);
            let problem = Diagnostic::error("unclosed-list", self.source, span, message);
            self.lexer.problems.push(problem.maybe_help(forgotten).or_help("add the missing `)`"));
        }
    }

    fn attach_closed(&mut self, node: NodeId) {
        match self.open.last() {
            Some(_) => self.pending.push(node),
            None => self.tree.roots.push(node),
        }
    }
}
