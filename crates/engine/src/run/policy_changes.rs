//! Policy changes made by resumes, stored in `task_resumed` events.

use fusee_journal::{Event, Journal, RunId, SqliteRun};
use serde_json::Value;

use super::StartError;
use crate::agent::{PolicyChange, RunPolicy};

/// Number of events read at once.
const PAGE: usize = 256;

/// Reads all policy changes of a run, in order.
pub(super) fn read(journal: &Journal, run: &RunId) -> Result<Vec<PolicyChange>, StartError> {
    let (mut policy_changes, mut after) = (Vec::new(), 0);
    loop {
        let page = journal.events(run, after, u64::MAX, PAGE)?;
        let whole = page.len() == PAGE;
        for stamped in page {
            after = stamped.seq;
            if let Event::TaskResumed { amended: Some(recorded), .. } = stamped.event {
                let unreadable = |error: serde_json::Error| StartError::Unreadable {
                    run: run.clone(),
                    cause: error.to_string(),
                };
                policy_changes.push(serde_json::from_value(recorded).map_err(unreadable)?);
            }
        }
        if !whole {
            return Ok(policy_changes);
        }
    }
}

/// Creates a policy change that applies from the first step that is not in the journal yet.
pub(super) fn at_current_step(sqlite_run: &SqliteRun, policy: RunPolicy) -> PolicyChange {
    let after = sqlite_run.recorded_steps().map(|(branch, steps)| (branch.clone(), steps)).collect();
    PolicyChange { after, policy }
}

/// Encodes a policy change for the event.
pub(super) fn encode(change: &PolicyChange) -> Value {
    serde_json::to_value(change).unwrap_or_default()
}
