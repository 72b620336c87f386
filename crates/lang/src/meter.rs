//! Steps and memory: what keeps a program that does not end from not ending, and one that grows from growing.
//!
//! A step is a call or a turn of a loop; work on a whole list or string costs steps by its size. Memory is counted as
//! it is asked for; when the sum could pass the limit, the machine counts what is really alive and goes on if that
//! leaves room.

use crate::fault::Problem;

/// Items of a list that a primitive handles for the price of one step.
const ITEMS_A_STEP: usize = 16;
/// Bytes of text that a primitive handles for the price of one step.
const BYTES_A_STEP: usize = 256;

/// How far an evaluation may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps between two effects.
    pub steps: u64,
    /// Calls inside calls; tail calls are free.
    pub depth: usize,
    /// Bytes alive at one time.
    pub memory: usize,
    /// Steps after which the machine pauses, so that its driver can look at the clock.
    pub slice: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 10_000_000, depth: 10_000, memory: 512 * 1024 * 1024, slice: 200_000 }
    }
}

/// What is left of the [`Limits`].
pub(crate) struct Meter {
    pub(crate) limits: Limits,
    /// Steps until the machine looks up.
    pub(crate) left: u64,
    /// Steps after that.
    pub(crate) reserve: u64,
    /// Bytes asked for since memory was counted.
    pub(crate) allocated: usize,
    /// Bytes that may be asked for before memory is counted again.
    pub(crate) room: usize,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        let limits = Limits { slice: limits.slice.max(1), ..limits };
        let mut meter = Self { limits, left: 0, reserve: 0, allocated: 0, room: limits.memory };
        meter.refill();
        meter
    }

    /// A new budget of steps, after an effect.
    pub(crate) fn refill(&mut self) {
        self.left = self.limits.slice.min(self.limits.steps);
        self.reserve = self.limits.steps - self.left;
    }

    /// The next slice; false if all steps are used up.
    pub(crate) fn next_slice(&mut self) -> bool {
        let slice = self.limits.slice.min(self.reserve);
        self.reserve -= slice;
        self.left += slice;
        self.left > 0
    }

    /// Pays for work of `steps`, from the reserve too: a primitive does not pause half way.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Problem> {
        if steps <= self.left {
            self.left -= steps;
        } else {
            let missing = steps - self.left;
            self.left = 0;
            self.reserve = self.reserve.checked_sub(missing).ok_or_else(Problem::out_of_steps)?;
        }
        Ok(())
    }

    /// Pays for looking at `count` items.
    pub(crate) fn visit(&mut self, count: usize) -> Result<(), Problem> {
        self.spend((count / ITEMS_A_STEP) as u64)
    }

    /// Pays for a new list or map of `count` items of `bytes` each.
    pub(crate) fn items(&mut self, count: usize, bytes: usize) -> Result<(), Problem> {
        self.allocate(count.saturating_mul(bytes).saturating_add(64))?;
        self.visit(count)
    }

    /// Pays for a new string of `bytes`.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<(), Problem> {
        self.allocate(bytes.saturating_add(48))?;
        self.spend((bytes / BYTES_A_STEP) as u64)
    }

    /// Asks for memory.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), Problem> {
        let allocated = self.allocated.saturating_add(bytes);
        if allocated > self.room {
            return Err(Problem::need_memory(bytes));
        }
        self.allocated = allocated;
        Ok(())
    }

    /// Takes note of memory that is used in any case: small, and bounded by the steps.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.allocated = self.allocated.saturating_add(bytes);
    }

    /// Whether more was noted than there was room for.
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.allocated > self.room
    }

    /// Takes in what is really alive; false if that leaves no room for `wanted` bytes more.
    ///
    /// A sixteenth of the limit stays free: with less, a program would spend its time counting.
    pub(crate) fn counted(&mut self, alive: usize, wanted: usize) -> bool {
        self.allocated = 0;
        self.room = self.limits.memory.saturating_sub(alive);
        self.room >= wanted.max(self.limits.memory / 16)
    }
}
