//! Loop detection: the same call with the same result several times in a row, or answers that change nothing.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Number of repetitions from which a call is answered with a hint instead of being run.
const HINT_AT: u32 = 3;

/// Number of repetitions at which the task ends.
const HALT_AT: u32 = 5;

/// Verdict on the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopVerdict {
    Run,
    Hint { times: u32 },
    Halt { times: u32 },
}

/// Remembers the last call and how often it was repeated in a row.
#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    last: Option<u64>,
    result: Option<u64>,
    times: u32,
}

impl LoopDetector {
    /// Judges a call that is about to run.
    pub(crate) fn check(&mut self, name: &str, arguments: &str) -> LoopVerdict {
        let call = hash(&(name, arguments));
        if self.last == Some(call) {
            self.times += 1;
        } else {
            *self = Self { last: Some(call), result: None, times: 1 };
        }
        match self.times {
            times if times >= HALT_AT => LoopVerdict::Halt { times },
            times if times >= HINT_AT => LoopVerdict::Hint { times },
            _ => LoopVerdict::Run,
        }
    }

    /// Records the result of a call that ran. A different result or a changed file resets the count.
    pub(crate) fn record_seen(&mut self, content: &str, changed_files: bool) {
        let result = hash(&content);
        if changed_files || self.result.is_some_and(|before| before != result) {
            self.times = 1;
        }
        self.result = Some(result);
    }
}

/// Counts consecutive rejected answers with no file change in between.
#[derive(Debug, Default)]
pub(crate) struct RejectedAnswers {
    files: Option<u64>,
    times: u32,
}

impl RejectedAnswers {
    /// Records a rejected answer for this file state. Returns the count once it reaches the limit.
    pub(crate) fn again(&mut self, files: u64) -> Option<u32> {
        self.times = if self.files == Some(files) { self.times + 1 } else { 1 };
        self.files = Some(files);
        (self.times >= HALT_AT).then_some(self.times)
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
