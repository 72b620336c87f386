//! Writing a [`Tree`] back, laid out: what `fusee fmt` prints.
//!
//! The layout depends on the tree, its comments and its blank lines alone, so laying out twice changes nothing. An
//! expression that fits on its line stays there; one that does not is broken by the [`Indent`] of its head, which the
//! language that owns the forms knows. Words and strings are written as they were spelled.

mod broken;
mod flat;

use super::tree::{Comment, Kind, NodeId, Tree};
use flat::Widths;

#[cfg(test)]
mod tests;

/// Columns a line may take.
pub(super) const WIDTH: usize = 100;
/// Indentation stops growing here, so that deep nesting does not write more space than text.
pub(super) const DEEPEST: usize = 60;

/// How a list that does not fit on one line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indent {
    /// Arguments in a column under the first: `(if test`, then the branches under `test`.
    Align,
    /// This many arguments stay on the line of the head, the rest is indented by two: `(let (…)`, then the body.
    Body(usize),
}

/// The whole tree as text, with one newline at its end.
///
/// `indent` says how lists with a given head break; `None` for heads it does not know, which are then taken for calls
/// of tasks if all their arguments are `(key expression)` pairs. Meant for trees that were read without problems.
pub fn layout(tree: &Tree, indent: &dyn Fn(&str) -> Option<Indent>) -> String {
    let mut comments: Vec<usize> = (0..tree.comments.len()).collect();
    comments.sort_by_key(|index| tree.comments[*index].owner);
    let widths = Widths::of(tree);
    let mut writer =
        Writer { tree, indent, widths, comments, out: String::new(), column: 0, jobs: Vec::new() };
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

/// The state of writing: what is written, and what is still to write, innermost last.
pub(super) struct Writer<'t> {
    pub(super) tree: &'t Tree,
    pub(super) indent: &'t dyn Fn(&str) -> Option<Indent>,
    pub(super) widths: Widths<'t>,
    /// Indices of the tree's comments, grouped by the list they stand in.
    comments: Vec<usize>,
    out: String,
    column: usize,
    jobs: Vec<Job>,
}

pub(super) enum Job {
    /// A node, with this many closing parentheses right after it.
    Node(NodeId, usize),
    Text(&'static str),
    /// A comment by its index.
    Comment(usize),
    Break(usize),
    BlankLine,
}

impl<'t> Writer<'t> {
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
            Kind::List => {
                let jobs = broken::list(self, node, self.column, closers);
                self.jobs.extend(jobs.into_iter().rev());
            }
            Kind::Quote => {
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

    /// The items of a list, or of the top, with the comments between them.
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
        let indent = indent.min(DEEPEST);
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }
}

/// What stands in a list or at the top: nodes and comments in the order of the text.
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

/// Whether the source has an empty line between two offsets with nothing else but space between them.
pub(super) fn blank_between(tree: &Tree, start: usize, end: usize) -> bool {
    let between = tree.source.text().get(start..end).unwrap_or("");
    between.bytes().filter(|byte| *byte == b'\n').count() > 1
}
