//! The list type: an array if created at once, a linked chain if it grows at the front.
//!
//! `first`, `rest`, `cons` and `length` take constant time on both, so typical recursive list programs are
//! linear; `nth` takes constant time on an array and on the rest of one.

use std::sync::Arc;

use super::{
    Value,
    iterative_drop::{self, drop_iteratively},
};

/// A shared, immutable list.
#[derive(Clone, Default)]
pub struct List(Option<Arc<Node>>);

enum Node {
    Array(Vec<Value>),
    /// An array without its first items. `of` is always an array, and at least one item remains.
    Rest {
        of: List,
        from: usize,
    },
    Chain {
        head: Value,
        tail: List,
        length: usize,
    },
}

impl List {
    /// Number of items.
    pub fn len(&self) -> usize {
        match self.0.as_deref() {
            None => 0,
            Some(Node::Array(items)) => items.len(),
            Some(Node::Rest { of, from }) => of.len() - from,
            Some(Node::Chain { length, .. }) => *length,
        }
    }

    /// Whether the list has no items.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The item at `index`.
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.iter_from(index).next()
    }

    /// The first item.
    pub fn first(&self) -> Option<&Value> {
        self.get(0)
    }

    /// The list without its first item; `None` if it is empty.
    pub fn rest(&self) -> Option<List> {
        let (of, from) = match self.0.as_deref()? {
            Node::Array(_) => (self, 1),
            Node::Rest { of, from } => (of, from + 1),
            Node::Chain { tail, .. } => return Some(tail.clone()),
        };
        let rest = from < of.len();
        Some(if rest { Self::node(Node::Rest { of: of.clone(), from }) } else { List::default() })
    }

    /// The list with `head` prepended.
    pub fn cons(head: Value, tail: List) -> List {
        let length = tail.len() + 1;
        Self::node(Node::Chain { head, tail, length })
    }

    /// Iterates over the items.
    pub fn iter(&self) -> ListIter<'_> {
        ListIter { list: self, index: 0 }
    }

    /// Iterates over the items starting at `index`.
    pub(crate) fn iter_from(&self, index: usize) -> ListIter<'_> {
        let mut list = self;
        let mut index = index;
        while let Some(Node::Chain { tail, .. }) = list.0.as_deref()
            && index > 0
        {
            list = tail;
            index -= 1;
        }
        ListIter { list, index }
    }

    /// The same list with constant-time access by index.
    pub(crate) fn packed(&self) -> List {
        match self.0.as_deref() {
            Some(Node::Chain { .. }) => self.iter().cloned().collect(),
            _ => self.clone(),
        }
    }

    /// Whether both share one allocation.
    pub(crate) fn shares_storage(&self, other: &List) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (one, two) => one.is_none() && two.is_none(),
        }
    }

    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |node| Arc::as_ptr(node) as usize)
    }

    /// The direct contents of this allocation, for measuring memory: its bytes, its values, and the list it
    /// continues with.
    pub(crate) fn parts(&self) -> (usize, &[Value], Option<&List>) {
        let node = size_of::<Node>() + 2 * size_of::<usize>();
        match self.0.as_deref() {
            None => (0, &[], None),
            Some(Node::Array(items)) => (node + items.capacity() * size_of::<Value>(), items, None),
            Some(Node::Rest { of, .. }) => (node, &[], Some(of)),
            Some(Node::Chain { head, tail, .. }) => (node, std::slice::from_ref(head), Some(tail)),
        }
    }

    fn node(node: Node) -> List {
        List(Some(Arc::new(node)))
    }

    /// Moves the values that only this list owns to `pending`, so that dropping it does not recurse.
    pub(super) fn drain_children(&mut self, pending: &mut Vec<Value>) {
        if let Some(node) = self.0.as_mut().and_then(Arc::get_mut) {
            node.drain_children(pending);
        }
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        if items.is_empty() { Self::default() } else { Self::node(Node::Array(items)) }
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl Node {
    fn drain_children(&mut self, pending: &mut Vec<Value>) {
        match self {
            Node::Array(items) => pending.extend(items.drain(..).filter(iterative_drop::is_linked)),
            Node::Rest { of, .. } => pending.push(Value::List(std::mem::take(of))),
            Node::Chain { head, tail, .. } => {
                let parts = [std::mem::take(head), Value::List(std::mem::take(tail))];
                pending.extend(parts.into_iter().filter(iterative_drop::is_linked));
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let linked = match self {
            Node::Array(items) => items.iter().any(iterative_drop::is_linked),
            Node::Rest { of, .. } => !of.is_empty(),
            Node::Chain { head, tail, .. } => !tail.is_empty() || iterative_drop::is_linked(head),
        };
        if linked {
            let mut pending = Vec::new();
            self.drain_children(&mut pending);
            drop_iteratively(pending);
        }
    }
}

/// Iterator over the items of a [`List`].
#[derive(Clone)]
pub struct ListIter<'l> {
    list: &'l List,
    /// Index in the array that holds the remaining items.
    index: usize,
}

impl<'l> Iterator for ListIter<'l> {
    type Item = &'l Value;

    fn next(&mut self) -> Option<&'l Value> {
        match self.list.0.as_deref()? {
            Node::Chain { head, tail, .. } => {
                self.list = tail;
                Some(head)
            }
            Node::Array(items) => {
                self.index += 1;
                items.get(self.index - 1)
            }
            Node::Rest { of, from } => {
                self.index += from;
                self.list = of;
                self.next()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.list.len().saturating_sub(self.index);
        (left, Some(left))
    }
}

impl<'l> IntoIterator for &'l List {
    type Item = &'l Value;
    type IntoIter = ListIter<'l>;

    fn into_iter(self) -> ListIter<'l> {
        self.iter()
    }
}
