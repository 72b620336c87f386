//! The formatter behind `fusee fmt`: writes a [`Tree`] back as text.
//!
//! The output depends only on the tree, its comments and its blank lines, so formatting is idempotent. An
//! expression that fits on one line is written on one line; others are broken according to the [`Indent`] of
//! their head, which the language that defines the forms provides. Words and strings are written exactly as
//! spelled in the source.

mod flat;
mod multi_line;

use super::tree::{Comment, NodeId, NodeKind, Tree};
use flat::Widths;

#[cfg(test)]
mod tests;

/// Maximum line width in columns.
pub(super) const WIDTH: usize = 100;
/// Maximum indentation in columns, so that deeply nested code does not produce more spaces than text.
pub(super) const MAX_INDENT: usize = 60;

/// How a list that does not fit on one line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indent {
    /// Arguments are aligned below the first: `(if test`, then the branches below `test`.
    Align,
    /// This many arguments stay on the line of the head, the rest is indented by two columns: `(let (…)`,
    /// then the body.
    Body(usize),
}

/// Formats the tree as text that ends with exactly one newline.
///
/// `indent` returns how lists with a given head break, or `None` for unknown heads; those are formatted as
/// task calls if all their arguments are `(key expression)` pairs. Intended for trees that were read without
/// errors.
pub fn layout(tree: &Tree, indent: &dyn Fn(&str) -> Option<Indent>) -> String {
    let mut comments: Vec<usize> = (0..tree.comments.len()).collect();
    comments.sort_by_key(|index| tree.comments[*index].owner);
    let widths = Widths::new(tree);
    let mut writer =
        Formatter { tree, indent, widths, comments, out: String::new(), column: 0, jobs: Vec::new() };
    writer.roots();
    writer.run();
    let mut out = writer.out;
    let end = out.trim_end().len();
    out.truncate(end);
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Formatter state: the output so far, and a stack of pending jobs with the next one on top.
pub(super) struct Formatter<'t> {
    pub(super) tree: &'t Tree,
    pub(super) indent: &'t dyn Fn(&str) -> Option<Indent>,
    pub(super) widths: Widths<'t>,
    /// Indices of the tree's comments, grouped by the list that contains them.
    comments: Vec<usize>,
    out: String,
    column: usize,
    jobs: Vec<Job>,
}

pub(super) enum Job {
    /// A node followed by this many closing parentheses.
    Node(NodeId, usize),
    Text(&'static str),
    /// The comment at this index.
    Comment(usize),
    Break(usize),
    BlankLine,
}

impl<'t> Formatter<'t> {
    fn run(&mut self) {
        while let Some(job) = self.jobs.pop() {
            match job {
                Job::Text(text) => self.write(text),
                Job::Node(node, closers) => self.node(node, closers),
                Job::Comment(index) => {
                    let text = self.tree.comments.get(index).map_or("", |c| self.tree.source.slice(c.span));
                    self.write(text);
                }
                Job::Break(indent) => self.break_line(indent),
                Job::BlankLine => self.out.push('\n'),
            }
        }
    }

    fn node(&mut self, node: NodeId, closers: usize) {
        if self.widths.fits(node, self.column + closers) {
            let text = flat::text(self.tree, node);
            return self.write(&text);
        }
        match self.tree.kind(node) {
            NodeKind::List => {
                let jobs = multi_line::list(self, node, self.column, closers);
                self.jobs.extend(jobs.into_iter().rev());
            }
            NodeKind::Quote => {
                self.write("'");
                self.jobs.extend(self.tree.items(node).iter().map(|item| Job::Node(*item, closers)));
            }
            _ => {
                let spelled = self.tree.source.slice(self.tree.span(node));
                self.write(spelled);
            }
        }
    }

    fn roots(&mut self) {
        let mut jobs = Vec::new();
        let mut previous: Option<usize> = None;
        for item in self.items(None, self.tree.roots()) {
            let span = item.span(self.tree);
            match (previous, &item) {
                (None, _) => {}
                (Some(_), Item::Comment(_, comment)) if !comment.own_line => jobs.push(Job::Text(" ")),
                (Some(end), _) => {
                    if blank_between(self.tree, end, span.start()) {
                        jobs.push(Job::BlankLine);
                    }
                    jobs.push(Job::Break(0));
                }
            }
            jobs.push(item.job(0));
            previous = Some(span.end());
        }
        self.jobs.extend(jobs.into_iter().rev());
    }

    /// The items of a list, or the top-level items if `owner` is `None`, with the comments between them.
    pub(super) fn items(&self, owner: Option<NodeId>, nodes: &[NodeId]) -> Vec<Item<'t>> {
        let owner_of = |index: &usize| self.tree.comments[*index].owner;
        let first = self.comments.partition_point(|index| owner_of(index) < owner);
        let own = self.comments[first..].iter().take_while(|index| owner_of(index) == owner);
        let mut own = own.map(|index| (*index, &self.tree.comments[*index])).peekable();
        let mut items = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            while let Some((at, comment)) = own.next_if(|(_, comment)| comment.before as usize <= index) {
                items.push(Item::Comment(at, comment));
            }
            items.push(Item::Node(*node));
        }
        items.extend(own.map(|(at, comment)| Item::Comment(at, comment)));
        items
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        match text.rfind('\n') {
            Some(newline) => self.column = text[newline + 1..].chars().count(),
            None => self.column += text.chars().count(),
        }
    }

    fn break_line(&mut self, indent: usize) {
        let indent = indent.min(MAX_INDENT);
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }
}

/// An item of a list or of the top level, in source order.
pub(super) enum Item<'t> {
    Node(NodeId),
    Comment(usize, &'t Comment),
}

impl Item<'_> {
    pub(super) fn span(&self, tree: &Tree) -> crate::Span {
        match self {
            Item::Node(node) => tree.span(*node),
            Item::Comment(_, comment) => comment.span,
        }
    }

    pub(super) fn job(&self, closers: usize) -> Job {
        match self {
            Item::Node(node) => Job::Node(*node, closers),
            Item::Comment(index, _) => Job::Comment(*index),
        }
    }
}

/// Whether the source has a blank line between two offsets. Expects only white space between them.
pub(super) fn blank_between(tree: &Tree, start: usize, end: usize) -> bool {
    let between = tree.source.text().get(start..end).unwrap_or("");
    between.bytes().filter(|byte| *byte == b'\n').count() > 1
}
