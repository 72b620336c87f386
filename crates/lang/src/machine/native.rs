//! Library functions that call functions, as small state machines stepped by the machine, so that nothing
//! recurses.
//!
//! The agent loops are in [`super::work`], sorting in [`super::sort`].

use super::sort::Sort;
use super::work::Work;
use crate::fault::Problem;
use crate::meter::Meter;
use crate::value::{List, Value};

/// Result of starting a native function.
pub(crate) enum Begun {
    /// It completed immediately.
    Value(Value),
    /// It has functions to call.
    Native(Native),
}

/// A native function in progress.
pub(crate) struct Native {
    pub(super) name: &'static str,
    state: State,
    /// Whether the result of the last call is on the stack.
    waiting: bool,
}

enum State {
    Each { each: Each, function: Value, items: List, index: usize, out: Vec<Value> },
    Reduce { function: Value, items: List, index: usize, sum: Value },
    Sort(Sort),
    Work(Box<Work>),
}

/// How the results of the calls are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Each {
    Map,
    Filter,
    Only,
    Any,
    All,
}

/// Next action of a native function.
pub(super) enum Next {
    /// Call the function on the stack with the given number of arguments above it.
    Call(usize),
    /// Return this value.
    Return(Value),
}

impl Native {
    pub(crate) fn each(name: &'static str, each: Each, function: Value, items: List) -> Self {
        Self::of(name, State::Each { each, function, items, index: 0, out: Vec::new() })
    }

    pub(crate) fn reduce(function: Value, sum: Value, items: List) -> Self {
        Self::of("reduce", State::Reduce { function, items, index: 0, sum })
    }

    pub(crate) fn sort(less: Value, items: Vec<Value>) -> Self {
        Self::of("sort", State::Sort(Sort::new(less, items)))
    }

    pub(super) fn work(name: &'static str, work: Work) -> Self {
        Self::of(name, State::Work(Box::new(work)))
    }

    fn of(name: &'static str, state: State) -> Self {
        Self { name, state, waiting: false }
    }

    /// Pops the result of the last call and pushes the next call.
    pub(super) fn step(&mut self, meter: &mut Meter, stack: &mut Vec<Value>) -> Result<Next, Problem> {
        if let State::Each { out, .. } = &mut self.state {
            // Reserve memory before consuming anything, so that the step can be repeated if there is not
            // enough.
            make_room(meter, out)?;
        }
        let input = if self.waiting { stack.pop() } else { None };
        self.waiting = true;
        match &mut self.state {
            State::Each { each, function, items, index, out } => {
                if let Some(input) = input
                    && let Some(value) = each.take(input, items, *index, out)
                {
                    return Ok(Next::Return(value));
                }
                let Some(item) = items.get(*index) else {
                    return Ok(Next::Return(each.end(std::mem::take(out))));
                };
                *index += 1;
                stack.extend([function.clone(), item.clone()]);
                Ok(Next::Call(1))
            }
            State::Reduce { function, items, index, sum } => {
                if let Some(input) = input {
                    *sum = input;
                }
                let sum = std::mem::take(sum);
                let Some(item) = items.get(*index) else { return Ok(Next::Return(sum)) };
                *index += 1;
                stack.extend([function.clone(), sum, item.clone()]);
                Ok(Next::Call(2))
            }
            State::Sort(sort) => Ok(sort.step(input, stack)),
            State::Work(work) => work.step(input, stack),
        }
    }

    /// Collects the values it holds, for measuring memory.
    pub(super) fn held<'n>(&'n self, found: &mut Vec<&'n Value>) {
        match &self.state {
            State::Each { function, out, .. } => {
                found.push(function);
                found.extend(out);
            }
            State::Reduce { function, sum, .. } => found.extend([function, sum]),
            State::Sort(sort) => sort.held(found),
            State::Work(work) => work.held(found),
        }
    }

    /// The list it iterates over, for measuring memory.
    pub(super) fn walked(&self) -> Option<&List> {
        match &self.state {
            State::Each { items, .. } | State::Reduce { items, .. } => Some(items),
            State::Sort(_) | State::Work(_) => None,
        }
    }
}

impl Each {
    /// Processes the result for the item before `index`; returns the final value if that decides it.
    fn take(self, value: Value, items: &List, index: usize, out: &mut Vec<Value>) -> Option<Value> {
        match self {
            Each::Map => out.push(value),
            Each::Filter if value.is_true() => {
                out.extend(index.checked_sub(1).and_then(|before| items.get(before)).cloned());
            }
            Each::Any if value.is_true() => return Some(Value::Bool(true)),
            Each::All if !value.is_true() => return Some(Value::Bool(false)),
            Each::Filter | Each::Only | Each::Any | Each::All => {}
        }
        None
    }

    fn end(self, out: Vec<Value>) -> Value {
        match self {
            Each::Map | Each::Filter => Value::list(out),
            Each::Only => Value::Nil,
            Each::Any => Value::Bool(false),
            Each::All => Value::Bool(true),
        }
    }
}

fn make_room(meter: &mut Meter, out: &mut Vec<Value>) -> Result<(), Problem> {
    if out.len() == out.capacity() {
        let more = out.len().max(8);
        meter.allocate(more.saturating_mul(size_of::<Value>()))?;
        out.reserve_exact(more);
    }
    Ok(())
}
