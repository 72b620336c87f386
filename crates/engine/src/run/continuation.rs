//! Continuation of an earlier run: its conversation is read from the journal once, as a journaled step, so
//! that resuming and replaying do not need the earlier run. [`PriorConversation`] defines what is carried over.

use fusee_journal::event::Event;
use fusee_journal::{
    Branch, DurableRun, Journal, JournalError, RunAborted, RunId, RunStatus, StepKind, StepRequest,
};
use serde_json::Value;

use super::{CarryOver, RunSpec, StartError, settings_of};
use crate::agent::{EARLIER_STEP, PriorConversation};

/// Number of events read at once.
const PAGE: usize = 512;

/// Checks that a run can be continued.
pub(super) fn check(journal: &Journal, run: &RunId) -> Result<(), StartError> {
    let settings = settings_of(journal, run)?;
    let is_open = journal.run(run.as_str())?.status == RunStatus::Open;
    // A rewind is both: a run to resume, and a conversation to continue.
    if is_open && (settings.origin.is_none() || journal.is_active(run)) {
        return Err(StartError::NotEnded { run: run.clone() });
    }
    Ok(())
}

/// Returns the carried-over conversation, if the run continues another one.
pub(super) async fn earlier(
    engine: &dyn DurableRun,
    branch: &Branch,
    journal: &Journal,
    settings: &RunSpec,
) -> Result<Option<PriorConversation>, RunAborted> {
    let Some(run) = settings.continues.clone() else { return Ok(None) };
    let read = async move {
        match gather(journal, &run) {
            Ok(earlier) => {
                let shortened = match settings.carry {
                    CarryOver::Whole => None,
                    CarryOver::Shortened => earlier.shortened(&settings.limits),
                };
                let earlier = shortened.map_or(earlier, |(shortened, _)| shortened);
                serde_json::to_value(earlier).unwrap_or_default()
            }
            Err(error) => Value::String(format!("cannot continue run {run}: {error}")),
        }
    };
    let request = StepRequest::new(branch, StepKind::Environment, EARLIER_STEP);
    match engine.step(request, read).await?.value {
        Value::String(problem) => Err(RunAborted::Unreadable(problem)),
        value => {
            serde_json::from_value(value).map(Some).map_err(|error| RunAborted::Unreadable(error.to_string()))
        }
    }
}

/// Collects what a run leaves to its continuation.
pub(super) fn gather(journal: &Journal, run: &RunId) -> Result<PriorConversation, String> {
    let steps = journal.steps(run).map_err(|error| error.to_string())?;
    let settings = settings_of(journal, run).map_err(|error| error.to_string())?;
    // A template or workflow has its own conversations; in the surrounding one it is a request and an answer.
    let by_task = settings.continues.is_some() && !settings.work.is_request();
    let earlier =
        if by_task { PriorConversation::before(&steps)? } else { PriorConversation::from_steps(&steps)? };
    let mut earlier = if settings.work.is_request() { earlier.with_parts(&steps) } else { earlier };
    earlier.opened.extend(settings.opened.iter().cloned());
    if !earlier.messages.is_empty() && !by_task {
        return Ok(earlier);
    }
    let answer = answer_of(journal, run).map_err(|error| error.to_string())?;
    Ok(earlier.with_exchange(&settings.request, &answer))
}

/// Returns the final answer of a run.
fn answer_of(journal: &Journal, run: &RunId) -> Result<String, JournalError> {
    let (mut after, mut answer) = (0, String::new());
    loop {
        let page = journal.events(run, after, u64::MAX, PAGE)?;
        let Some(last) = page.last() else { return Ok(answer) };
        after = last.seq;
        for stamped in page {
            if let Event::TaskComplete(complete) = stamped.event {
                answer = complete.answer;
            }
        }
    }
}
