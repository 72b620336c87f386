//! Resuming a run that has ended: repeats its result from the journal alone. Neither its model nor its
//! directory need to exist any more.

use fusee_engine::journal::event::{ErrorCode, TaskComplete, TaskStatus};
use fusee_engine::journal::{Event, Journal, RunId, Stamped};
use fusee_engine::model::CancellationToken;
use fusee_engine::run::{self, Exit, RunOutcome, Settings};

use crate::face::{Plan, Show};
use crate::failure::Failure;
use crate::{history, output};

/// Displays how the run ended and returns its exit code.
pub(crate) async fn repeat(
    journal: &Journal,
    run: &RunId,
    settings: Settings,
    show: &Show,
    wants_result: bool,
) -> Result<Exit, Failure> {
    let mut end: Vec<Stamped> = Vec::new();
    let mut complete = None;
    history::each(journal, run, |event| {
        match &event.event {
            Event::TaskComplete(last) if event.task == fusee_engine::journal::Branch::main() => {
                complete = Some(last.clone());
                end.push(event);
            }
            _ => {}
        }
        Ok(())
    })?;
    let Some(complete) = complete else {
        return Err(Failure::failed(format!("run {run} has ended, but its last event is missing")));
    };
    let exit = match run::replay(journal, run, settings.clone(), Vec::new()).await? {
        outcome @ RunOutcome::Ended(_) => {
            if let RunOutcome::Ended(ended) = &outcome
                && let Some(line) = show.last_line(ended)
            {
                output::print(&format!("{line}\n"))?;
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
                output::print(&format!("{}\n", recorded_result(&complete)))?;
            }
            recorded_exit(&complete)
        }
    };
    let mut face = show.face(Plan::of(&settings), CancellationToken::new());
    for event in &end {
        face.show(event).and_then(|()| face.close()).map_err(|error| Failure::failed(error.to_string()))?;
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

fn recorded_exit(complete: &TaskComplete) -> Exit {
    match (complete.status, complete.error.as_ref().map(|error| error.code)) {
        (TaskStatus::Completed, _) => Exit::Completed,
        (TaskStatus::Cancelled, _) | (_, Some(ErrorCode::Cancelled)) => Exit::Cancelled,
        (_, Some(ErrorCode::MaxTurns | ErrorCode::TokenLimit | ErrorCode::Timeout | ErrorCode::Budget)) => {
            Exit::Limit
        }
        (_, Some(ErrorCode::InitFailed)) => Exit::Usage,
        (_, Some(ErrorCode::TurnFailed) | None) => Exit::Failed,
    }
}
