//! Dropping values without recursion: dropping a list nested a million levels deep must not use a million
//! stack frames.

use std::sync::Arc;

use super::{Slot, Value};

/// Whether dropping the value may drop other values.
pub(super) fn is_linked(value: &Value) -> bool {
    match value {
        Value::List(list) => !list.is_empty(),
        Value::Map(_)
        | Value::Function(_)
        | Value::Result(_)
        | Value::Error(_)
        | Value::Slot(Slot(Some(_))) => true,
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Builtin(_) => false,
        Value::Text(_) | Value::Symbol(_) | Value::Slot(Slot(None)) => false,
    }
}

/// Drops values iteratively: values that only they own are queued before they are dropped.
pub(crate) fn drop_iteratively(mut pending: Vec<Value>) {
    while let Some(mut value) = pending.pop() {
        match &mut value {
            Value::List(list) => list.drain_children(&mut pending),
            Value::Map(map) => map.drain_children(&mut pending),
            Value::Function(closure) => {
                if let Some(closure) = Arc::get_mut(closure) {
                    closure.drain_children(&mut pending);
                }
            }
            Value::Result(result) => {
                if let Some(result) = Arc::get_mut(result) {
                    result.drain_children(&mut pending);
                }
            }
            Value::Error(fault) => {
                if let Some(fault) = Arc::get_mut(fault) {
                    fault.drain_children(&mut pending);
                }
            }
            // The machine holds a weak reference to every cell, so `get_mut` would fail; the strong count
            // decides.
            Value::Slot(Slot(Some(cell))) if Arc::strong_count(cell) == 1 => pending.push(cell.take()),
            _ => {}
        }
    }
}
