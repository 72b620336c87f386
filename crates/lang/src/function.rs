//! Closures, the mutable variables they share, and the rule for which branch may change those.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::value::{Text, Value, drop_iteratively};

/// A function value: code and captured variables.
pub struct Closure {
    name: Text,
    /// Index of its code in the program.
    pub(crate) code: u32,
    pub(crate) captured: Vec<Value>,
    /// Whether its code never refers to the function itself: it captures nothing and does not call itself by
    /// name.
    pub(crate) plain: bool,
}

impl Closure {
    pub(crate) fn new(name: Text, code: u32, captured: Vec<Value>, plain: bool) -> Self {
        Self { name, code, captured, plain }
    }

    /// The name it was defined with, or `lambda`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn drain_children(&mut self, pending: &mut Vec<Value>) {
        pending.append(&mut self.captured);
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        if !self.captured.is_empty() {
            drop_iteratively(std::mem::take(&mut self.captured));
        }
    }
}

/// A mutable variable shared between closures.
pub struct Cell {
    value: Mutex<Value>,
    branch: Arc<EvaluationBranch>,
}

impl Cell {
    pub(crate) fn new(value: Value, branch: &Arc<EvaluationBranch>) -> Self {
        Self { value: Mutex::new(value), branch: branch.clone() }
    }

    pub(crate) fn get(&self) -> Value {
        self.value.lock().clone()
    }

    /// Takes the value and leaves the variable unbound.
    pub(crate) fn take(&self) -> Value {
        std::mem::replace(&mut *self.value.lock(), Value::UNSET)
    }

    /// Sets the variable; fails if it belongs to a branch that may run concurrently with `branch`.
    pub(crate) fn set(&self, value: Value, branch: &Arc<EvaluationBranch>) -> Result<(), ForeignCell> {
        if !Arc::ptr_eq(&self.branch, branch) && !self.branch.is_within(branch) {
            return Err(ForeignCell);
        }
        let before = std::mem::replace(&mut *self.value.lock(), value);
        drop(before);
        Ok(())
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        drop_iteratively(vec![self.take()]);
    }
}

/// The variable belongs to a branch that is still running, or to a sibling.
pub(crate) struct ForeignCell;

/// One thread of evaluation: the main one, or one element of a `pmap`.
///
/// Elements of a `pmap` run concurrently in no fixed order. If one could change a variable that another one
/// reads, the result would depend on that order and a replay could differ. A branch may therefore only change
/// variables created by itself or by branches that it started and that have finished.
pub(crate) struct EvaluationBranch {
    parent: Option<Arc<EvaluationBranch>>,
    /// Number of enclosing branches.
    nesting: usize,
    finished: AtomicBool,
}

impl EvaluationBranch {
    pub(crate) fn main() -> Arc<Self> {
        Arc::new(Self { parent: None, nesting: 0, finished: AtomicBool::new(false) })
    }

    pub(crate) fn child(self: &Arc<Self>) -> Arc<Self> {
        let (parent, nesting) = (Some(self.clone()), self.nesting + 1);
        Arc::new(Self { parent, nesting, finished: AtomicBool::new(false) })
    }

    pub(crate) fn is_main(&self) -> bool {
        self.parent.is_none()
    }

    pub(crate) fn nesting(&self) -> usize {
        self.nesting
    }

    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    fn is_within(&self, ancestor: &Arc<EvaluationBranch>) -> bool {
        let mut branch = self;
        while let Some(parent) = &branch.parent {
            if !branch.finished.load(Ordering::Acquire) {
                return false;
            }
            if Arc::ptr_eq(parent, ancestor) {
                return true;
            }
            branch = parent;
        }
        false
    }
}
