//! Human-readable differences between what a program requests now and what the journal recorded.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

use crate::{StepKey, StepKind, StepRequest};

/// Maximum number of diff lines shown.
const LINES: usize = 200;

/// Time limit for computing a minimal diff; after that a coarser one is used.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A step or event that does not match the journal.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// Position in the run, such as `main step 3`.
    pub at: String,
    /// One-line description of the difference.
    pub what: String,
    /// Unified diff from recorded to current, truncated after 200 lines; empty if `what` is sufficient.
    pub diff: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run diverges from its journal at {}: {}", self.at, self.what)?;
        if !self.diff.is_empty() {
            write!(f, "\n{}", self.diff.trim_end())?;
        }
        Ok(())
    }
}

impl Divergence {
    /// The recorded step has another kind or callee.
    pub(crate) fn callee(key: &StepKey, kind: StepKind, callee: &str, now: &StepRequest) -> Self {
        Self {
            at: key.to_string(),
            what: format!("recorded {kind} `{callee}`, now {} `{}`", now.kind, now.callee),
            diff: String::new(),
        }
    }

    /// Same kind and callee, different arguments.
    pub(crate) fn arguments(key: &StepKey, recorded: &Value, now: &StepRequest) -> Self {
        Self {
            at: key.to_string(),
            what: format!("{} `{}` has different arguments", now.kind, now.callee),
            diff: diff(recorded, &now.args),
        }
    }

    /// The program emits a different event.
    pub(crate) fn event(at: String, recorded: &Value, now: &Value) -> Self {
        Self { at, what: "the event differs".to_owned(), diff: diff(recorded, now) }
    }

    /// The program emits an event where none is recorded.
    pub(crate) fn surplus(at: String, now: &Value) -> Self {
        Self { at, what: "no event is recorded here".to_owned(), diff: pretty(now) }
    }

    /// Recorded steps or events that the program did not reach.
    pub(crate) fn leftover(at: String, count: u64) -> Self {
        Self { at, what: format!("{count} recorded but not reached"), diff: String::new() }
    }
}

fn diff(recorded: &Value, now: &Value) -> String {
    let (recorded, now) = (pretty(recorded), pretty(now));
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(&recorded, &now);
    let diff = diff.unified_diff().context_radius(2).header("recorded", "now").to_string();
    match diff.match_indices('\n').nth(LINES) {
        Some((cut, _)) => {
            let more = diff[cut + 1..].lines().count();
            format!("{}\n... {more} more lines", &diff[..cut])
        }
        None => diff,
    }
}

/// Pretty-prints a value and breaks strings at their newlines, so that a diff of them is readable.
fn pretty(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    pretty.replace("\\n", "\n    ") + "\n"
}
