//! Breaking a list over several lines.

use super::super::tree::{NodeId, NodeKind, Tree};
use super::{Formatter, Indent, Item, Job, blank_between};

/// Maximum width of a head whose arguments are aligned below the first one.
const LONGEST_HEAD: u32 = 14;

/// The jobs that write a list starting at `column` and followed by `closers` closing parentheses.
pub(super) fn list(writer: &Formatter<'_>, node: NodeId, column: usize, closers: usize) -> Vec<Job> {
    let tree = writer.tree;
    let items = writer.items(Some(node), tree.items(node));
    let shape = ListShape::new(writer, node, &items);
    let ends_in_comment = matches!(items.last(), Some(Item::Comment(..)));
    let last = items.len().saturating_sub(1);
    let mut jobs = vec![Job::Text("(")];
    let mut previous: Option<&Item<'_>> = None;
    let mut nodes = 0;
    for (index, item) in items.iter().enumerate() {
        if let Some(before) = previous {
            separate(&mut jobs, tree, &shape, column, nodes, before, item);
        }
        jobs.push(item.job(if index == last { closers + 1 } else { 0 }));
        nodes += usize::from(matches!(item, Item::Node(_)));
        previous = Some(item);
    }
    if ends_in_comment {
        jobs.push(Job::Break(column));
    }
    jobs.push(Job::Text(")"));
    jobs
}

/// Placement of the items of one list.
struct ListShape {
    /// Number of nodes on the first line.
    on_first_line: usize,
    /// Column of the other nodes, relative to the opening parenthesis.
    offset: usize,
}

impl ListShape {
    fn new(writer: &Formatter<'_>, node: NodeId, items: &[Item<'_>]) -> Self {
        let tree = writer.tree;
        let column = Self { on_first_line: 1, offset: 1 };
        let (Some(Item::Node(head)), [_, arguments @ ..]) = (items.first(), tree.items(node)) else {
            return column;
        };
        let Some(name) = tree.symbol(*head) else { return column };
        let pairs = !arguments.is_empty() && arguments.iter().all(|item| is_pair(tree, *item));
        let indent = (writer.indent)(name).unwrap_or(if pairs { Indent::Body(0) } else { Indent::Align });
        match indent {
            Indent::Body(count) => {
                Self { on_first_line: 1 + count + keywords(tree, arguments, count), offset: 2 }
            }
            Indent::Align => {
                let width = writer.widths.width(*head);
                match arguments.first() {
                    Some(_) if width <= LONGEST_HEAD => Self { on_first_line: 2, offset: width as usize + 2 },
                    _ => Self { on_first_line: 1, offset: 2 },
                }
            }
        }
    }
}

fn is_pair(tree: &Tree, node: NodeId) -> bool {
    tree.head(node).is_some() && tree.items(node).len() == 2
}

/// Number of arguments after the first `count` that are `:keyword value` pairs, which stay on the first line.
fn keywords(tree: &Tree, arguments: &[NodeId], count: usize) -> usize {
    let rest = arguments.get(count..).unwrap_or_default();
    let pairs = rest
        .chunks_exact(2)
        .take_while(|pair| matches!(pair, [key, _] if tree.kind(*key) == NodeKind::Keyword));
    pairs.count() * 2
}

/// Pushes the separator between two items, with `nodes` nodes written so far.
fn separate(
    jobs: &mut Vec<Job>,
    tree: &Tree,
    shape: &ListShape,
    column: usize,
    nodes: usize,
    before: &Item<'_>,
    item: &Item<'_>,
) {
    match (before, item) {
        // A trailing comment stays on the line of the node before it; directly after `(` there is no such
        // node.
        (_, Item::Comment(_, comment)) if !comment.own_line && nodes > 0 => return jobs.push(Job::Text(" ")),
        (Item::Node(_), Item::Node(_)) if nodes < shape.on_first_line => return jobs.push(Job::Text(" ")),
        (Item::Node(key), Item::Node(_)) if tree.kind(*key) == NodeKind::Keyword => {
            return jobs.push(Job::Text(" "));
        }
        _ => {}
    }
    let before_end = before.span(tree).end();
    let after_first_line = nodes > shape.on_first_line || matches!(before, Item::Comment(..));
    if after_first_line && blank_between(tree, before_end, item.span(tree).start()) {
        jobs.push(Job::BlankLine);
    }
    jobs.push(Job::Break(column + shape.offset));
}
