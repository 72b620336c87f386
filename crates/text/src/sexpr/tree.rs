//! The tree produced by [`read`](super::read()): nodes in one array, in source order.

use std::ops::Range;

use crate::{Source, Span};

/// Id of a node of a [`Tree`]. Ids increase in source order; a list precedes its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Kind of a node. The text of symbols, keywords and strings is read with [`Tree::text`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NodeKind {
    /// `( … )`, with any number of items.
    List,
    /// `'x`, with exactly one item.
    Quote,
    /// A name; [`Tree::text`] is its spelling.
    Symbol,
    /// `:name`; [`Tree::text`] is the name without the colon.
    Keyword,
    /// A string; [`Tree::text`] is its value.
    String,
    /// An integer.
    Int(i64),
    /// A finite number with a decimal point or an exponent.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// The literal `nil`.
    Nil,
    /// Unreadable text that was reported as an error; a placeholder that keeps the positions of the following
    /// items.
    Unreadable,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) span: Span,
    /// Range in [`Tree::children`].
    pub(super) items: (u32, u32),
    /// Id after the last descendant.
    pub(super) next: u32,
}

/// A comment, with the list that contains it and the number of that list's items before it.
#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) span: Span,
    pub(super) owner: Option<NodeId>,
    pub(super) before: u32,
    /// Whether only white space precedes it on its line.
    pub(super) own_line: bool,
}

/// All expressions of one source.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(super) source: Source,
    pub(super) nodes: Vec<Node>,
    pub(super) children: Vec<NodeId>,
    pub(super) roots: Vec<NodeId>,
    pub(super) comments: Vec<Comment>,
    /// Values of strings whose spelling contains escapes, ordered by node.
    pub(super) decoded: Vec<(NodeId, Box<str>)>,
}

impl Tree {
    pub(super) fn empty(source: Source) -> Self {
        Self {
            source,
            nodes: Vec::new(),
            children: Vec::new(),
            roots: Vec::new(),
            comments: Vec::new(),
            decoded: Vec::new(),
        }
    }

    /// The source that was read.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The top-level expressions.
    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the source contains no expression.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node's kind.
    pub fn kind(&self, node: NodeId) -> NodeKind {
        self.node(node).kind
    }

    /// The node's span, including parentheses, quotes and colons.
    pub fn span(&self, node: NodeId) -> Span {
        self.node(node).span
    }

    /// The items of a list, or the one item of a quote.
    pub fn items(&self, node: NodeId) -> &[NodeId] {
        let (start, end) = self.node(node).items;
        self.children.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The node and all its descendants, in source order.
    pub fn subtree(&self, node: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (node.0..self.node(node).next).map(NodeId)
    }

    /// All nodes in source order.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The next node in source order, which may be the first item of this one.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        Some(NodeId(node.0 + 1)).filter(|next| next.index() < self.nodes.len())
    }

    /// The next node that is not a descendant of this one.
    pub fn after(&self, node: NodeId) -> Option<NodeId> {
        Some(NodeId(self.node(node).next)).filter(|next| next.index() < self.nodes.len())
    }

    /// The range of ids of the node and its descendants, for comparison with other ids.
    pub fn extent(&self, node: NodeId) -> Range<NodeId> {
        node..NodeId(self.node(node).next)
    }

    /// Name of a symbol, name of a keyword without its colon, value of a string; the spelling of any other
    /// node.
    pub fn text(&self, node: NodeId) -> &str {
        let Node { kind, span, .. } = self.node(node);
        let spelled = self.source.slice(*span);
        match kind {
            NodeKind::Keyword => spelled.get(1..).unwrap_or(""),
            NodeKind::String => match self.decoded.binary_search_by_key(&node, |(id, _)| *id) {
                Ok(index) => self.decoded.get(index).map_or("", |(_, text)| text),
                Err(_) => spelled.get(1..spelled.len().saturating_sub(1)).unwrap_or(""),
            },
            _ => spelled,
        }
    }

    /// The name, if the node is a symbol.
    pub fn symbol(&self, node: NodeId) -> Option<&str> {
        (self.kind(node) == NodeKind::Symbol).then(|| self.text(node))
    }

    /// The name, if the node is a keyword.
    pub fn keyword(&self, node: NodeId) -> Option<&str> {
        (self.kind(node) == NodeKind::Keyword).then(|| self.text(node))
    }

    /// The value, if the node is a string.
    pub fn string(&self, node: NodeId) -> Option<&str> {
        (self.kind(node) == NodeKind::String).then(|| self.text(node))
    }

    /// The items, if the node is a list.
    pub fn list(&self, node: NodeId) -> Option<&[NodeId]> {
        (self.kind(node) == NodeKind::List).then(|| self.items(node))
    }

    /// The symbol at the head of a list, if the node is a list that starts with one.
    pub fn head(&self, node: NodeId) -> Option<&str> {
        self.symbol(*self.list(node)?.first()?)
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }
}
