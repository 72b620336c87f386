//! Step and memory limits, which stop programs that loop forever or grow without bound.
//!
//! A step is a call or a loop iteration; operations on entire lists or strings cost steps in proportion to
//! their size. Allocations are added up; when the sum could exceed the limit, the machine measures what is
//! actually alive and continues if enough memory is free.

use crate::runtime_error::UnlocatedError;

/// Number of list items that a primitive processes per step.
const ITEMS_PER_STEP: usize = 16;
/// Number of bytes of text that a primitive processes per step.
const BYTES_PER_STEP: usize = 256;

/// Bounds on what a program may use before it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluationLimits {
    /// Maximum steps between two effects.
    pub steps: u64,
    /// Maximum call depth; tail calls are free.
    pub depth: usize,
    /// Maximum live memory in bytes.
    pub memory: usize,
    /// Steps after which the machine pauses, so that the driver can check the time.
    pub slice: u64,
}

impl Default for EvaluationLimits {
    fn default() -> Self {
        Self { steps: 10_000_000, depth: 10_000, memory: 512 * 1024 * 1024, slice: 200_000 }
    }
}

/// Remaining budget of the [`EvaluationLimits`].
pub(crate) struct Fuel {
    pub(crate) limits: EvaluationLimits,
    /// Steps left in the current slice.
    pub(crate) left: u64,
    /// Steps left after the current slice.
    pub(crate) reserve: u64,
    /// Bytes allocated since live memory was last measured.
    pub(crate) allocated: usize,
    /// Bytes that may be allocated before live memory is measured again.
    pub(crate) room: usize,
}

impl Fuel {
    pub(crate) fn new(limits: EvaluationLimits) -> Self {
        let limits = EvaluationLimits { slice: limits.slice.max(1), ..limits };
        let mut fuel = Self { limits, left: 0, reserve: 0, allocated: 0, room: limits.memory };
        fuel.refill();
        fuel
    }

    /// Resets the step budget, after an effect.
    pub(crate) fn refill(&mut self) {
        self.left = self.limits.slice.min(self.limits.steps);
        self.reserve = self.limits.steps - self.left;
    }

    /// Starts the next slice; false if no steps are left.
    pub(crate) fn next_slice(&mut self) -> bool {
        let slice = self.limits.slice.min(self.reserve);
        self.reserve -= slice;
        self.left += slice;
        self.left > 0
    }

    /// Charges `steps`, drawing on the reserve if needed: a primitive cannot pause halfway.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), UnlocatedError> {
        if steps <= self.left {
            self.left -= steps;
        } else {
            let missing = steps - self.left;
            self.left = 0;
            self.reserve = self.reserve.checked_sub(missing).ok_or_else(UnlocatedError::out_of_steps)?;
        }
        Ok(())
    }

    /// Charges for visiting `count` items.
    pub(crate) fn visit(&mut self, count: usize) -> Result<(), UnlocatedError> {
        self.spend((count / ITEMS_PER_STEP) as u64)
    }

    /// Charges for a new list or map of `count` items of `bytes` each.
    pub(crate) fn items(&mut self, count: usize, bytes: usize) -> Result<(), UnlocatedError> {
        self.allocate(count.saturating_mul(bytes).saturating_add(64))?;
        self.visit(count)
    }

    /// Charges for a new string of `bytes`.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<(), UnlocatedError> {
        self.allocate(bytes.saturating_add(48))?;
        self.spend((bytes / BYTES_PER_STEP) as u64)
    }

    /// Charges for an allocation; fails if it may exceed the memory limit.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), UnlocatedError> {
        let allocated = self.allocated.saturating_add(bytes);
        if allocated > self.room {
            return Err(UnlocatedError::need_memory(bytes));
        }
        self.allocated = allocated;
        Ok(())
    }

    /// Records an allocation that cannot be refused because it is small and bounded by the steps.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.allocated = self.allocated.saturating_add(bytes);
    }

    /// Whether recorded allocations exceed the available memory.
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.allocated > self.room
    }

    /// Records the measured live memory; false if less than `wanted` bytes remain.
    ///
    /// At least a sixteenth of the limit must be free: with less, a program would spend its time measuring.
    pub(crate) fn counted(&mut self, alive: usize, wanted: usize) -> bool {
        self.allocated = 0;
        self.room = self.limits.memory.saturating_sub(alive);
        self.room >= wanted.max(self.limits.memory / 16)
    }
}
