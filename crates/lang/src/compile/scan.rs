//! First pass over the source: which names a body defines, which variables are assigned, and where closures
//! are created.

use std::collections::HashSet;
use std::ops::Range;

use fusee_text::sexpr::{NodeId, NodeKind, Tree};

use crate::form::{Special, SpecialForm};

/// A definition that belongs to a body itself, not to a nested scope.
#[derive(Clone, Copy)]
pub(super) struct Definition<'t> {
    pub(super) name: &'t str,
    /// The node of the name, for diagnostics.
    pub(super) name_node: NodeId,
    /// The node of the form.
    pub(super) node: NodeId,
    /// Whether it may not be executed because it is inside an `if`, a loop or an argument.
    pub(super) conditional: bool,
}

/// The definitions that belong to the scope of a body, in source order.
pub(super) fn definitions<'t>(tree: &'t Tree, body: &[NodeId]) -> Vec<Definition<'t>> {
    let mut found = Vec::new();
    for root in body {
        scan_one(tree, *root, &mut found);
    }
    found.sort_by_key(|definition| definition.node);
    found
}

fn scan_one<'t>(tree: &'t Tree, root: NodeId, found: &mut Vec<Definition<'t>>) {
    let mut ranges = vec![tree.extent(root)];
    let mut conditional_until = root;
    while let Some(Range { start, end }) = ranges.pop() {
        let mut at = Some(start);
        while let Some(node) = at.filter(|node| *node < end) {
            let special = tree.head(node).and_then(SpecialForm::find).map(|form| form.special);
            at = match (tree.kind(node), special) {
                (NodeKind::Quote, _) => tree.after(node),
                (NodeKind::List, Some(Special::Define | Special::Defun)) => {
                    let conditional = node < conditional_until;
                    found.extend(name_of(tree, node).map(|(name, name_node)| Definition {
                        name,
                        name_node,
                        node,
                        conditional,
                    }));
                    conditional_until = conditional_until.max(tree.extent(node).end);
                    let makes_a_scope = special == Some(Special::Defun) || defines_function(tree, node);
                    if makes_a_scope { tree.after(node) } else { tree.next(node) }
                }
                (NodeKind::List, Some(special)) if opens_scope(special) => tree.after(node),
                (NodeKind::List, Some(Special::Match)) => {
                    conditional_until = conditional_until.max(tree.extent(node).end);
                    ranges.extend(tree.items(node).get(1).map(|subject| tree.extent(*subject)));
                    tree.after(node)
                }
                (NodeKind::List, Some(Special::Progn)) => tree.next(node),
                (NodeKind::List, _) => {
                    conditional_until = conditional_until.max(tree.extent(node).end);
                    tree.next(node)
                }
                _ => tree.next(node),
            };
        }
    }
}

/// Whether the node is the short form of a function definition, `(define (f x) …)`.
pub(super) fn defines_function(tree: &Tree, node: NodeId) -> bool {
    tree.items(node).get(1).is_some_and(|target| tree.kind(*target) == NodeKind::List)
}

fn name_of(tree: &Tree, node: NodeId) -> Option<(&str, NodeId)> {
    // With fewer items it is malformed, or an argument of a task that happens to have the name of a form.
    let &[_, target, _, ..] = tree.items(node) else { return None };
    let name = if tree.kind(target) == NodeKind::List { *tree.items(target).first()? } else { target };
    Some((tree.symbol(name)?, name))
}

fn opens_scope(special: Special) -> bool {
    matches!(
        special,
        Special::Lambda
            | Special::Let
            | Special::LetStar
            | Special::Letrec
            | Special::Clause
            | Special::Quote
            | Special::Defatom
            | Special::Params
            | Special::Load
    )
}

/// Information about one file.
pub(super) struct FileOverview {
    /// Nodes that create functions, in source order.
    functions: Vec<NodeId>,
    /// Tasks it defines. They capture nothing from the enclosing scope, so they are visible everywhere.
    pub(super) atoms: Vec<NodeId>,
}

impl FileOverview {
    /// Scans a file; adds the names changed by `set!` to `assigned`.
    pub(super) fn of<'t>(tree: &'t Tree, assigned: &mut HashSet<&'t str>) -> Self {
        let mut overview = Self { functions: Vec::new(), atoms: Vec::new() };
        let mut at = tree.roots().first().copied();
        while let Some(node) = at {
            let special = tree.head(node).and_then(SpecialForm::find).map(|form| form.special);
            match special {
                Some(Special::Lambda | Special::Defun) => overview.functions.push(node),
                Some(Special::Define) if defines_function(tree, node) => overview.functions.push(node),
                Some(Special::Defatom) => overview.atoms.push(node),
                Some(Special::Set) => {
                    assigned.extend(tree.items(node).get(1).and_then(|target| tree.symbol(*target)));
                }
                _ => {}
            }
            let is_data = tree.kind(node) == NodeKind::Quote || special == Some(Special::Quote);
            at = if is_data { tree.after(node) } else { tree.next(node) };
        }
        overview
    }

    /// Whether a function is created in this range of nodes, so that a variable there may outlive its frame.
    pub(super) fn makes_function(&self, within: &Range<NodeId>) -> bool {
        let first = self.functions.partition_point(|node| *node < within.start);
        self.functions.get(first).is_some_and(|node| *node < within.end)
    }
}
