//! A run that continues an earlier one: what it takes over is read from the journal once, as a step of its own,
//! so that resuming and replaying it need the earlier run no more. What that is, is [`Earlier`]'s.

use fusee_journal::event::Event;
use fusee_journal::{Branch, Engine, Journal, JournalError, Kind, RunId, RunStatus, Stop};
use serde_json::Value;

use super::{Carry, Settings, StartError, call, settings_of, value_body};
use crate::agent::{EARLIER_STEP, Earlier};

/// Events read at a time.
const PAGE: usize = 512;

/// Whether a run can be continued.
pub(super) fn check(journal: &Journal, run: &RunId) -> Result<(), StartError> {
    if journal.run(run.as_str())?.status == RunStatus::Open {
        return Err(StartError::NotEnded { run: run.clone() });
    }
    settings_of(journal, run).map(drop)
}

/// What the run takes over, if it continues one.
pub(super) async fn earlier(
    engine: &dyn Engine,
    branch: &Branch,
    journal: &Journal,
    settings: &Settings,
) -> Result<Option<Earlier>, Stop> {
    let Some(run) = settings.continues.clone() else { return Ok(None) };
    let read = async move {
        match gather(journal, &run) {
            Ok(earlier) => {
                let shortened = match settings.carry {
                    Carry::Whole => None,
                    Carry::Shortened => earlier.shortened(&settings.limits),
                };
                let earlier = shortened.map_or(earlier, |(shortened, _)| shortened);
                serde_json::to_value(earlier).unwrap_or_default()
            }
            Err(error) => Value::String(format!("the run {run} cannot be continued: {error}")),
        }
    };
    let recorded = engine.step(call(branch, Kind::Environment, EARLIER_STEP), value_body(read)).await?;
    match &recorded.value {
        Value::String(problem) => Err(Stop::Unreadable(problem.clone())),
        _ => recorded.read().map(Some),
    }
}

/// What a run leaves to the one after it.
pub(super) fn gather(journal: &Journal, run: &RunId) -> Result<Earlier, String> {
    let steps = journal.steps(run).map_err(|error| error.to_string())?;
    let settings = settings_of(journal, run).map_err(|error| error.to_string())?;
    // A template or a workflow has conversations of its own; of the one around it, it is a request and an answer.
    let aside = settings.continues.is_some() && !settings.work.is_request();
    let earlier = if aside { Earlier::before(&steps)? } else { Earlier::of(&steps)? };
    let mut earlier = if settings.work.is_request() { earlier.with_parts(&steps) } else { earlier };
    earlier.opened.extend(settings.opened.iter().cloned());
    if !earlier.messages.is_empty() && !aside {
        return Ok(earlier);
    }
    let answer = answer_of(journal, run).map_err(|error| error.to_string())?;
    Ok(earlier.spoken(&settings.request, &answer))
}

/// What a run said at its end.
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
