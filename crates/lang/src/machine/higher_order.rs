//! Library functions that call functions, as small state machines stepped by the machine, so that nothing
//! recurses.
//!
//! The agent loops are in [`super::agent_loops`], sorting in [`super::sort`].

use super::agent_loops::AgentLoop;
use super::sort::MergeSort;
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::{List, Value};

/// Result of starting a native function.
pub(crate) enum NativeStart {
    /// It completed immediately.
    Value(Value),
    /// It has functions to call.
    Native(HigherOrderCall),
}

/// A native function in progress.
pub(crate) struct HigherOrderCall {
    pub(super) name: &'static str,
    state: HigherOrderState,
    /// Whether the result of the last call is on the stack.
    waiting: bool,
}

enum HigherOrderState {
    Each { each: ItemAction, function: Value, items: List, index: usize, out: Vec<Value> },
    Reduce { function: Value, items: List, index: usize, sum: Value },
    Sort(MergeSort),
    Work(Box<AgentLoop>),
}

/// How the results of the calls are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemAction {
    Map,
    Filter,
    Only,
    Any,
    All,
}

/// Next action of a native function.
pub(super) enum NextStep {
    /// Call the function on the stack with the given number of arguments above it.
    Call(usize),
    /// Return this value.
    Return(Value),
}

impl HigherOrderCall {
    pub(crate) fn each(name: &'static str, each: ItemAction, function: Value, items: List) -> Self {
        Self::new(name, HigherOrderState::Each { each, function, items, index: 0, out: Vec::new() })
    }

    pub(crate) fn reduce(function: Value, sum: Value, items: List) -> Self {
        Self::new("reduce", HigherOrderState::Reduce { function, items, index: 0, sum })
    }

    pub(crate) fn sort(less: Value, items: Vec<Value>) -> Self {
        Self::new("sort", HigherOrderState::Sort(MergeSort::new(less, items)))
    }

    pub(super) fn work(name: &'static str, work: AgentLoop) -> Self {
        Self::new(name, HigherOrderState::Work(Box::new(work)))
    }

    fn new(name: &'static str, state: HigherOrderState) -> Self {
        Self { name, state, waiting: false }
    }

    /// Pops the result of the last call and pushes the next call.
    pub(super) fn step(
        &mut self,
        fuel: &mut Fuel,
        stack: &mut Vec<Value>,
    ) -> Result<NextStep, UnlocatedError> {
        if let HigherOrderState::Each { out, .. } = &mut self.state {
            // Reserve memory before consuming anything, so that the step can be repeated if there is not
            // enough.
            has_memory_for(fuel, out)?;
        }
        let input = if self.waiting { stack.pop() } else { None };
        self.waiting = true;
        match &mut self.state {
            HigherOrderState::Each { each, function, items, index, out } => {
                if let Some(input) = input
                    && let Some(value) = each.take(input, items, *index, out)
                {
                    return Ok(NextStep::Return(value));
                }
                let Some(item) = items.get(*index) else {
                    return Ok(NextStep::Return(each.end(std::mem::take(out))));
                };
                *index += 1;
                stack.extend([function.clone(), item.clone()]);
                Ok(NextStep::Call(1))
            }
            HigherOrderState::Reduce { function, items, index, sum } => {
                if let Some(input) = input {
                    *sum = input;
                }
                let sum = std::mem::take(sum);
                let Some(item) = items.get(*index) else { return Ok(NextStep::Return(sum)) };
                *index += 1;
                stack.extend([function.clone(), sum, item.clone()]);
                Ok(NextStep::Call(2))
            }
            HigherOrderState::Sort(sort) => Ok(sort.step(input, stack)),
            HigherOrderState::Work(work) => work.step(input, stack),
        }
    }

    /// Collects the values it holds, for measuring memory.
    pub(super) fn held<'n>(&'n self, found: &mut Vec<&'n Value>) {
        match &self.state {
            HigherOrderState::Each { function, out, .. } => {
                found.push(function);
                found.extend(out);
            }
            HigherOrderState::Reduce { function, sum, .. } => found.extend([function, sum]),
            HigherOrderState::Sort(sort) => sort.held(found),
            HigherOrderState::Work(work) => work.held(found),
        }
    }

    /// The list it iterates over, for measuring memory.
    pub(super) fn iterated_list(&self) -> Option<&List> {
        match &self.state {
            HigherOrderState::Each { items, .. } | HigherOrderState::Reduce { items, .. } => Some(items),
            HigherOrderState::Sort(_) | HigherOrderState::Work(_) => None,
        }
    }
}

impl ItemAction {
    /// Processes the result for the item before `index`; returns the final value if that decides it.
    fn take(self, value: Value, items: &List, index: usize, out: &mut Vec<Value>) -> Option<Value> {
        match self {
            ItemAction::Map => out.push(value),
            ItemAction::Filter if value.is_true() => {
                out.extend(index.checked_sub(1).and_then(|before| items.get(before)).cloned());
            }
            ItemAction::Any if value.is_true() => return Some(Value::Bool(true)),
            ItemAction::All if !value.is_true() => return Some(Value::Bool(false)),
            ItemAction::Filter | ItemAction::Only | ItemAction::Any | ItemAction::All => {}
        }
        None
    }

    fn end(self, out: Vec<Value>) -> Value {
        match self {
            ItemAction::Map | ItemAction::Filter => Value::list(out),
            ItemAction::Only => Value::Nil,
            ItemAction::Any => Value::Bool(false),
            ItemAction::All => Value::Bool(true),
        }
    }
}

fn has_memory_for(fuel: &mut Fuel, out: &mut Vec<Value>) -> Result<(), UnlocatedError> {
    if out.len() == out.capacity() {
        let more = out.len().max(8);
        fuel.allocate(more.saturating_mul(size_of::<Value>()))?;
        out.reserve_exact(more);
    }
    Ok(())
}
