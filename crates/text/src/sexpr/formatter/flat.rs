//! Expressions on one line: their width and their text.

use super::super::tree::{NodeId, NodeKind, Tree};
use super::WIDTH;

/// Width of every node when written on one line, or [`NEVER`] if it cannot be.
pub(in crate::sexpr) struct Widths<'t> {
    tree: &'t Tree,
    of: Vec<u32>,
}

const NEVER: u32 = u32::MAX;

impl<'t> Widths<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        let mut of = vec![0; tree.len()];
        // A comment takes the rest of its line, so a list that contains one cannot be written on one line.
        for owner in tree.comments.iter().filter_map(|comment| comment.owner) {
            of[owner.0 as usize] = NEVER;
        }
        // Items come after their list, so a reverse pass knows their widths when it reaches the list.
        for node in tree.all().rev() {
            let width = match tree.kind(node) {
                _ if of[node.0 as usize] == NEVER => NEVER,
                NodeKind::List => {
                    let items = tree.items(node);
                    let spaces = items.len().saturating_sub(1) as u32;
                    items.iter().fold(2 + spaces, |sum, item| sum.saturating_add(of[item.0 as usize]))
                }
                NodeKind::Quote => {
                    tree.items(node).iter().fold(1, |sum: u32, item| sum.saturating_add(of[item.0 as usize]))
                }
                _ => {
                    let spelled = tree.source.slice(tree.span(node));
                    if spelled.contains('\n') { NEVER } else { spelled.chars().count() as u32 }
                }
            };
            of[node.0 as usize] = width;
        }
        Self { tree, of }
    }

    /// Whether the node ends within the line if written from `column` on. Atoms always fit since they cannot
    /// be broken.
    pub(in crate::sexpr) fn fits(&self, node: NodeId, column: usize) -> bool {
        let width = self.width(node);
        let is_atom = !matches!(self.tree.kind(node), NodeKind::List | NodeKind::Quote);
        is_atom || (width != NEVER && column.saturating_add(width as usize) <= WIDTH)
    }

    pub(in crate::sexpr) fn width(&self, node: NodeId) -> u32 {
        self.of.get(node.0 as usize).copied().unwrap_or(NEVER)
    }
}

/// The text of a node on one line.
pub(super) fn text(tree: &Tree, node: NodeId) -> String {
    let mut out = String::new();
    let mut ends: Vec<u32> = Vec::new();
    for id in tree.subtree(node) {
        while ends.last().is_some_and(|end| *end <= id.0) {
            ends.pop();
            out.push(')');
        }
        if !out.is_empty() && !out.ends_with(['(', '\'']) {
            out.push(' ');
        }
        match tree.kind(id) {
            NodeKind::List => {
                out.push('(');
                ends.push(tree.extent(id).end.0);
            }
            NodeKind::Quote => out.push('\''),
            _ => out.push_str(tree.source.slice(tree.span(id))),
        }
    }
    out.extend(std::iter::repeat_n(')', ends.len()));
    out
}
