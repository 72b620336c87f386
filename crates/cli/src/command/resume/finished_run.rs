//! Resuming a run that has ended: repeats its result from the journal alone. Neither its model nor its
//! directory need to exist any more.

use fusee::engine::journal::event::{ErrorCode, TaskComplete, TaskStatus};
use fusee::engine::journal::{Event, EventRecord, Journal, RunId};
use fusee::engine::model::CancellationToken;
use fusee::engine::run::{ExitStatus, RunBuilder, RunOutcome, RunSpec};

use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::event_pages;
use crate::ui::{RunHeader, UiOptions};

/// Displays how the run ended and returns its exit code.
pub(crate) async fn repeat(
    journal: &Journal,
    run: &RunId,
    settings: RunSpec,
    ui_options: &UiOptions,
    wants_result: bool,
) -> Result<ExitStatus, CliError> {
    let mut end: Vec<EventRecord> = Vec::new();
    let mut complete = None;
    event_pages::for_each_event(journal, run, |event| {
        match &event.event {
            Event::TaskComplete(last) if event.task == fusee::engine::journal::Branch::main() => {
                complete = Some(last.clone());
                end.push(event);
            }
            _ => {}
        }
        Ok(())
    })?;
    let Some(complete) = complete else {
        return Err(CliError::failed(format!("run {run} has ended, but its last event is missing")));
    };
    let exit = match RunBuilder::recorded(journal, run)?.replay(run).await? {
        outcome @ RunOutcome::Ended(_) => {
            if let RunOutcome::Ended(ended) = &outcome
                && let Some(line) = ui_options.last_line(ended)
            {
                stdio::print(&format!("{line}\n"))?;
            }
            let exit = outcome.exit();
            if wants_result {
                super::print_result(Some(outcome))?;
            }
            exit
        }
        // Another version of fusee ran it: only the event is left.
        RunOutcome::Stopped(_) | RunOutcome::Lost(_) => {
            if wants_result {
                stdio::print_json(&format!("{}\n", recorded_result(&complete)))?;
            }
            recorded_exit(&complete)
        }
    };
    let mut ui = ui_options.open_ui(RunHeader::from_spec(&settings), CancellationToken::new());
    for event in &end {
        ui.show(event).and_then(|()| ui.close()).map_err(|error| CliError::failed(error.to_string()))?;
    }
    Ok(exit)
}

/// The task result as far as the last event holds it.
fn recorded_result(complete: &TaskComplete) -> serde_json::Value {
    let error = complete.error.as_ref();
    let status = if error.is_none() { "COMPLETE" } else { "FAILED" };
    let error = error.map(|error| {
        serde_json::json!({ "type": "TASK_FAILURE", "reason": error.reason, "message": error.message })
    });
    let notes = error.map_or_else(|| serde_json::json!({}), |error| serde_json::json!({ "error": error }));
    serde_json::json!({ "status": status, "content": complete.answer, "notes": notes })
}

/// The exit code of a run that has ended.
pub(crate) async fn exit_of(journal: &Journal, run: &RunId) -> Result<ExitStatus, CliError> {
    let outcome = RunBuilder::recorded(journal, run)?.replay(run).await?;
    if let RunOutcome::Ended(_) = &outcome {
        return Ok(outcome.exit());
    }
    let last = journal.event_index(run, u64::MAX)?.last.saturating_sub(1);
    let end = journal.events(run, last, u64::MAX, 1)?.pop();
    Ok(match end.map(|record| record.event) {
        Some(Event::TaskComplete(complete)) => recorded_exit(&complete),
        _ => ExitStatus::Failed,
    })
}

fn recorded_exit(complete: &TaskComplete) -> ExitStatus {
    match (complete.status, complete.error.as_ref().map(|error| error.code)) {
        (TaskStatus::Completed, _) => ExitStatus::Completed,
        (TaskStatus::Cancelled, _) | (_, Some(ErrorCode::Cancelled)) => ExitStatus::Cancelled,
        (_, Some(ErrorCode::MaxTurns | ErrorCode::TokenLimit | ErrorCode::Timeout | ErrorCode::Budget)) => {
            ExitStatus::Limit
        }
        (_, Some(ErrorCode::InitFailed)) => ExitStatus::Usage,
        (_, Some(ErrorCode::TurnFailed) | None) => ExitStatus::Failed,
    }
}
