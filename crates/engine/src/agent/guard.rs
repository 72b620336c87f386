//! Notices a model that goes in circles: the same call with the same result again and again, or answers that change
//! nothing.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// From this many on, a call is answered with a hint and not run.
const HINT_AT: u32 = 3;

/// With this many, the task ends.
const HALT_AT: u32 = 5;

/// What to do about the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Run,
    Hint { times: u32 },
    Halt { times: u32 },
}

/// Remembers the last call and how often it came in a row.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    last: Option<u64>,
    result: Option<u64>,
    times: u32,
}

impl Guard {
    /// Judges a call that is about to run.
    pub(crate) fn judge(&mut self, name: &str, arguments: &str) -> Verdict {
        let call = hash(&(name, arguments));
        if self.last == Some(call) {
            self.times += 1;
        } else {
            *self = Self { last: Some(call), result: None, times: 1 };
        }
        match self.times {
            times if times >= HALT_AT => Verdict::Halt { times },
            times if times >= HINT_AT => Verdict::Hint { times },
            _ => Verdict::Run,
        }
    }

    /// Takes note of what came of a call that ran. Another result, or a changed file, means it was no circle.
    pub(crate) fn saw(&mut self, content: &str, changed_files: bool) {
        let result = hash(&content);
        if changed_files || self.result.is_some_and(|before| before != result) {
            self.times = 1;
        }
        self.result = Some(result);
    }
}

/// Counts the answers in a row that were held back, with no call and no change of a file in between.
#[derive(Debug, Default)]
pub(crate) struct Held {
    files: Option<u64>,
    times: u32,
}

impl Held {
    /// Takes note of one, with the files in this state; how many there were, if these are enough.
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
