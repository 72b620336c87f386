//! Measuring live memory, and collecting cycles of shared variables.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Frame, Machine};
use crate::function::Cell;
use crate::value::{Slot, Value};

/// All shared variables of a run. A closure and a variable that refer to each other are never freed by
/// reference counting, so unreachable variables are freed when memory is measured, and the rest at the end of
/// the run.
#[derive(Default)]
pub(super) struct Cells {
    known: Mutex<CellIndex>,
}

#[derive(Default)]
struct CellIndex {
    cells: Vec<Weak<Cell>>,
    /// Number of live cells at the last cleanup.
    alive: usize,
}

impl Cells {
    pub(super) fn add(&self, cell: &Arc<Cell>) {
        let mut known = self.known.lock();
        if known.cells.len() > 2 * known.alive + 1024 {
            known.cells.retain(|cell| cell.strong_count() > 0);
            known.alive = known.cells.len();
        }
        known.cells.push(Arc::downgrade(cell));
    }

    fn free(&self, is_garbage: impl Fn(&Arc<Cell>) -> bool) {
        let mut known = self.known.lock();
        let cells = std::mem::take(&mut known.cells);
        drop(known);
        let mut kept = Vec::with_capacity(cells.len());
        for cell in cells.into_iter().filter_map(|cell| cell.upgrade()) {
            if is_garbage(&cell) {
                drop(cell.take());
            } else {
                kept.push(Arc::downgrade(&cell));
            }
        }
        let mut known = self.known.lock();
        known.alive = kept.len();
        known.cells.append(&mut kept);
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.free(|_| true);
    }
}

impl Machine {
    /// Measures live memory; returns whether `wanted` more bytes are available.
    pub(super) fn has_memory_for(&mut self, wanted: usize) -> bool {
        let mut walk = CellWalk::default();
        walk.pending.extend(&self.stack);
        walk.pending.extend(self.globals.iter());
        for frame in &self.frames {
            if let Frame::Native(native) = frame {
                native.held(&mut walk.pending);
                walk.lists.extend(native.iterated_list());
            }
        }
        walk.run();
        let CellWalk { bytes, seen, .. } = walk;
        if self.branch.is_main() {
            self.cells.free(|cell| !seen.contains(&(Arc::as_ptr(cell) as usize)));
        }
        self.fuel.counted(bytes, wanted)
    }
}

#[derive(Default)]
struct CellWalk<'v> {
    pending: Vec<&'v Value>,
    lists: Vec<&'v crate::value::List>,
    /// Contents of cells, which are behind a lock and therefore cannot be borrowed.
    owned: Vec<Value>,
    seen: HashSet<usize>,
    bytes: usize,
}

impl<'v> CellWalk<'v> {
    fn run(&mut self) {
        loop {
            if let Some(value) = self.pending.pop() {
                self.value(value);
            } else if let Some(list) = self.lists.pop() {
                self.list(list);
            } else if let Some(value) = self.owned.pop() {
                self.content(value);
            } else {
                return;
            }
        }
    }

    fn first_time(&mut self, address: usize) -> bool {
        self.seen.insert(address)
    }

    fn value(&mut self, value: &'v Value) {
        match value {
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Builtin(_) => {}
            Value::Text(text) | Value::Symbol(text) => {
                if self.first_time(text.address()) {
                    self.bytes += text.len() + 48;
                }
            }
            Value::List(list) => self.list(list),
            Value::Map(map) => {
                if self.first_time(map.address()) {
                    self.bytes += 96 + map.len() * 64;
                    for (key, value) in map {
                        self.bytes += key.len();
                        self.pending.push(value);
                    }
                }
            }
            Value::Function(closure) => {
                if self.first_time(Arc::as_ptr(closure) as usize) {
                    self.bytes += 64 + closure.captured.len() * size_of::<Value>();
                    self.pending.extend(&closure.captured);
                }
            }
            Value::Result(result) => {
                if self.first_time(Arc::as_ptr(result) as usize) {
                    self.bytes += 256 + result.content.len();
                    self.pending.extend([&result.parsed, &result.notes]);
                }
            }
            Value::Error(fault) => {
                if self.first_time(Arc::as_ptr(fault) as usize) {
                    self.bytes += 512 + fault.message.len();
                    self.pending.extend([&fault.value, &fault.cause]);
                }
            }
            Value::Slot(Slot(None)) => {}
            Value::Slot(Slot(Some(cell))) => {
                if self.first_time(Arc::as_ptr(cell) as usize) {
                    self.bytes += 96;
                    self.owned.push(cell.get());
                }
            }
        }
    }

    fn list(&mut self, list: &'v crate::value::List) {
        if list.is_empty() || !self.first_time(list.address()) {
            return;
        }
        let (bytes, items, rest) = list.parts();
        self.bytes += bytes;
        self.pending.extend(items);
        self.lists.extend(rest);
    }

    /// Visits a value owned by this walk, using a nested walk that shares `seen`.
    fn content(&mut self, value: Value) {
        let mut inner = CellWalk { seen: std::mem::take(&mut self.seen), ..CellWalk::default() };
        inner.pending.push(&value);
        // Cells found inside are left to the outer walk, so nesting stays at one level.
        while let Some(next) = inner.pending.pop() {
            inner.value(next);
            while let Some(list) = inner.lists.pop() {
                inner.list(list);
            }
        }
        let CellWalk { seen, bytes, owned, .. } = inner;
        self.seen = seen;
        self.bytes += bytes;
        self.owned.extend(owned);
    }
}
