//! `pmap`: elements that a driver evaluates concurrently, each in its own machine.

use std::sync::Arc;

use super::memory::Cells;
use super::{ControlFlow, Machine, MachineState, PendingEffect};
use crate::builtin::{callable, packed};
use crate::bytecode::Program;
use crate::effect::EffectKind;
use crate::fuel::{EvaluationLimits, Fuel};
use crate::function::EvaluationBranch;
use crate::runtime_error::{SourceLocation, UnlocatedError};
use crate::value::{List, Value, brief};

/// Maximum nesting depth of `pmap`: each level is a machine waiting for the next.
const MAX_DEPTH: usize = 64;

/// The elements of a `pmap`: one function applied to each item.
///
/// A driver runs [`FanOut::machine`] for each index, at most [`FanOut::limit`] at a time, each on its own
/// branch of the journal. It answers with all values in order, or stops the other branches and answers with
/// the fault of one.
pub struct FanOut {
    function: Value,
    items: List,
    limit: Option<usize>,
    program: Arc<Program>,
    globals: Arc<Vec<Value>>,
    branch: Arc<EvaluationBranch>,
    cells: Arc<Cells>,
    limits: EvaluationLimits,
    /// The next free limits id, so that ids in an element differ from those around it.
    next_limits: u64,
    location: SourceLocation,
}

impl FanOut {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Maximum number of elements to run concurrently, if the program sets one.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// The item at `index`.
    pub fn item(&self, index: usize) -> Option<&Value> {
        self.items.get(index)
    }

    /// Creates the machine that evaluates the element at `index`; `None` if out of range.
    pub fn machine(&self, index: usize) -> Option<Machine> {
        let item = self.items.get(index)?.clone();
        Some(Machine {
            program: self.program.clone(),
            globals: self.globals.clone(),
            stack: vec![self.function.clone(), item],
            frames: Vec::new(),
            handlers: Vec::new(),
            fuel: Fuel::new(self.limits),
            branch: self.branch.child(),
            cells: self.cells.clone(),
            state: MachineState::Ready(Some(1)),
            next_limits: self.next_limits,
            home: self.location.clone(),
        })
    }
}

impl Machine {
    /// Starts a `pmap` whose arguments are the top `count` values of the stack.
    pub(super) fn begin_fan_out(
        &mut self,
        count: usize,
        floor: usize,
    ) -> Result<ControlFlow, UnlocatedError> {
        let start = self.stack.len() - count;
        let arguments = self.stack.get(start..).unwrap_or_default();
        let [function, list, rest @ ..] = arguments else { return Ok(ControlFlow::Go) };
        let function = callable("pmap", function)?;
        let items = packed(&mut self.fuel, "pmap", list)?;
        let limit = match rest.first() {
            None | Some(Value::Nil) => None,
            Some(Value::Int(limit)) if *limit > 0 => usize::try_from(*limit).ok(),
            Some(other) => {
                let message =
                    format!("`:limit` must be a positive integer, not {} {}", other.kind(), brief(other));
                return Err(UnlocatedError::new("wrong-type", message));
            }
        };
        if self.branch.nesting() >= MAX_DEPTH {
            return Err(UnlocatedError::exhausted(
                "depth",
                format!("`pmap` is nested deeper than {MAX_DEPTH}"),
            ));
        }
        self.stack.truncate(floor);
        if items.is_empty() {
            self.stack.push(Value::List(List::default()));
            return Ok(ControlFlow::Go);
        }
        let count = items.len();
        let fan_out = FanOut {
            function,
            items,
            limit,
            program: self.program.clone(),
            globals: self.globals.clone(),
            branch: self.branch.clone(),
            cells: self.cells.clone(),
            limits: self.fuel.limits,
            next_limits: self.next_limits,
            location: self.current_location(),
        };
        Ok(self.yield_effect(EffectKind::FanOut(fan_out), PendingEffect::Branches(count)))
    }
}
