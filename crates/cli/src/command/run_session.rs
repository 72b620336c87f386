//! Drives a run from this process: displays its events and handles signals. The run itself is the engine's.

use std::time::{Duration, Instant};

use fusee::engine::agent::TurnInterrupt;
use fusee::engine::journal::EventRecord;
use fusee::engine::model::CancellationToken;
use fusee::engine::run::{ExitStatus, FailureClass, RunOutcome};
use tokio::signal::unix::{SignalKind, signal};

use super::detach;
use super::run_setup::StartedRun;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::{self, UiOptions};

/// A second Ctrl-C within this time cancels the run; a further one exits without waiting for it to end.
const DOUBLE_PRESS_WINDOW: Duration = Duration::from_secs(2);

/// Displays a run until it ends and returns its exit code and outcome; no outcome if the user did not wait for
/// it. `past` holds earlier events of a resumed run that are still relevant.
pub(crate) async fn watch(
    started: StartedRun,
    ui_options: &UiOptions,
    past: &[EventRecord],
) -> Result<(ExitStatus, Option<RunOutcome>), CliError> {
    #[cfg(feature = "restate")]
    let _copy = started.copy;
    let StartedRun { running, header, readers, .. } = started;
    if ui_options.is_detached() {
        detach::announce(&running).await?;
    }
    let (run, cancel) = (running.id().clone(), running.cancellation());
    let mut ui = ui_options.open_ui(header, cancel.clone());
    past.iter().for_each(|event| ui.note_rendered(event));
    let watching = ui::watch(ui, running.events())?;
    let exit_requested = watch_signals(cancel, running.turn_stop(), ui_options.is_live());
    let ended = async {
        let outcome = running.outcome().await;
        for reader in readers {
            reader.ended().await?;
        }
        watching.ended().await.map(|()| outcome)
    };
    let outcome = tokio::select! {
        outcome = ended => outcome?,
        () = exit_requested => {
            stdio::error(&format!("\nstopped immediately; run `fusee resume {run}` to continue\n"));
            return Ok((ExitStatus::Cancelled, None));
        }
    };
    match &outcome {
        RunOutcome::Lost(cause) => {
            Err(CliError::failed(format!("internal error: the run panicked: {cause}"))
                .help(format!("all committed steps are kept; run `fusee resume {run}` to continue")))
        }
        RunOutcome::Stopped(_) => {
            // The last event says why it stopped.
            stdio::error(&format!(
                "run {run} is still open; fix the problem, then run `fusee resume {run}`\n"
            ));
            print_failure_class(&outcome, ui_options);
            Ok((outcome.exit(), Some(outcome)))
        }
        RunOutcome::Ended(ended) => {
            if let Some(line) = ui_options.last_line(ended) {
                stdio::print(&format!("{line}\n"))?;
            }
            print_failure_class(&outcome, ui_options);
            Ok((outcome.exit(), Some(outcome)))
        }
    }
}

/// Names the class of a failure in the last line, for harnesses that parse it; terminal users have already seen the
/// details.
fn print_failure_class(outcome: &RunOutcome, ui_options: &UiOptions) {
    if let Some(class) = FailureClass::from_outcome(outcome).filter(|_| !ui_options.is_live()) {
        stdio::error(&format!("failure class: {class}\n"));
    }
}

/// SIGINT or SIGTERM cancels the run, which then ends and reports as usual. At a terminal the first SIGINT
/// stops only the turn; a second one shortly after, or while no turn runs, cancels the run. Returns when the
/// user interrupts once more instead of waiting for the end.
async fn watch_signals(cancel: CancellationToken, turns: TurnInterrupt, live: bool) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    let mut last: Option<Instant> = None;
    loop {
        let interrupted = tokio::select! {
            _ = interrupt.recv() => true,
            _ = terminate.recv() => false,
        };
        if live && interrupted {
            let soon = last.replace(Instant::now()).is_some_and(|last| last.elapsed() < DOUBLE_PRESS_WINDOW);
            if soon && cancel.is_cancelled() {
                return;
            }
            if !soon && !cancel.is_cancelled() && turns.stop() {
                continue;
            }
        }
        cancel.cancel();
    }
}
