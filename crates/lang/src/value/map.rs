//! The map type: string keys to values, in insertion order.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    Text, Value,
    iterative_drop::{self, drop_iteratively},
};

/// A shared, immutable map.
#[derive(Clone, Default)]
pub struct Map(Arc<Entries>);

#[derive(Clone, Default)]
struct Entries(IndexMap<Text, Value>);

impl Map {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.0.len()
    }

    /// Whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.0.get(key)
    }

    /// Iterates over the entries in insertion order.
    pub fn iter(&self) -> indexmap::map::Iter<'_, Text, Value> {
        self.0.0.iter()
    }

    /// The map with `key` set; an existing key keeps its position.
    #[must_use]
    pub fn with(mut self, key: Text, value: Value) -> Map {
        Arc::make_mut(&mut self.0).0.insert(key, value);
        self
    }

    pub(crate) fn shares_storage(&self, other: &Map) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(super) fn drain_children(&mut self, pending: &mut Vec<Value>) {
        if let Some(entries) = Arc::get_mut(&mut self.0) {
            entries.drain_children(pending);
        }
    }
}

impl FromIterator<(Text, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(entries: I) -> Self {
        Map(Arc::new(Entries(entries.into_iter().collect())))
    }
}

impl<'m> IntoIterator for &'m Map {
    type Item = (&'m Text, &'m Value);
    type IntoIter = indexmap::map::Iter<'m, Text, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Entries {
    fn drain_children(&mut self, pending: &mut Vec<Value>) {
        pending.extend(self.0.drain(..).map(|(_, value)| value).filter(iterative_drop::is_linked));
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        if self.0.values().any(iterative_drop::is_linked) {
            let mut pending = Vec::new();
            self.drain_children(&mut pending);
            drop_iteratively(pending);
        }
    }
}
