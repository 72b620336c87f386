//! The difference between what a program asks now and what the journal says it asked then, for people.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

use crate::{Call, Kind, StepKey};

/// Lines of a diff that are shown.
const LINES: usize = 200;

/// How long to look for the shortest diff; after that any will do.
const PATIENCE: Duration = Duration::from_millis(500);

/// A step whose fingerprint does not fit, or an event that does not.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// Where.
    pub at: String,
    /// One line on what differs.
    pub what: String,
    /// A unified diff, recorded first, of at most some hundred lines; empty when the line says it all.
    pub diff: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run differs from its journal at {}: {}", self.at, self.what)?;
        if !self.diff.is_empty() {
            write!(f, "\n{}", self.diff.trim_end())?;
        }
        Ok(())
    }
}

impl Divergence {
    /// What stood there was another sort of step, or one to somebody else.
    pub(crate) fn callee(key: &StepKey, kind: Kind, callee: &str, now: &Call) -> Self {
        Self {
            at: key.to_string(),
            what: format!("recorded {kind} `{callee}`, asked now {} `{}`", now.kind, now.callee),
            diff: String::new(),
        }
    }

    /// The same callee was asked something else.
    pub(crate) fn arguments(key: &StepKey, recorded: &Value, now: &Call) -> Self {
        Self {
            at: key.to_string(),
            what: format!("{} `{}` is asked something else", now.kind, now.callee),
            diff: diff(recorded, &now.args),
        }
    }

    /// The program makes another event than it made then.
    pub(crate) fn event(at: String, recorded: &Value, now: &Value) -> Self {
        Self { at, what: "the event differs".to_owned(), diff: diff(recorded, now) }
    }

    /// The parts of the run that ran side by side came to other ends.
    pub(crate) fn children(key: &StepKey, recorded: &Value, now: &Value) -> Self {
        let what = "its parts end differently".to_owned();
        Self { at: key.to_string(), what, diff: diff(recorded, now) }
    }

    /// An event is made where none was.
    pub(crate) fn surplus(at: String, now: &Value) -> Self {
        Self { at, what: "no event is recorded here".to_owned(), diff: pretty(now) }
    }

    /// Something is recorded that the program did not come to.
    pub(crate) fn leftover(at: String, count: u64) -> Self {
        Self { at, what: format!("{count} more recorded than asked for now"), diff: String::new() }
    }
}

fn diff(recorded: &Value, now: &Value) -> String {
    let (recorded, now) = (pretty(recorded), pretty(now));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&recorded, &now);
    let diff = diff.unified_diff().context_radius(2).header("recorded", "now").to_string();
    match diff.match_indices('\n').nth(LINES) {
        Some((cut, _)) => {
            let more = diff[cut + 1..].lines().count();
            format!("{}\n... {more} more lines", &diff[..cut])
        }
        None => diff,
    }
}

/// Long texts are broken into their lines, so that a diff of them can be read.
fn pretty(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    pretty.replace("\\n", "\n    ") + "\n"
}
