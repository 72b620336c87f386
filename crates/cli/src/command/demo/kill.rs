//! Kills the demo's run while one of its commands runs, then resumes it.
//!
//! The run is a separate process, so kill -9 is real. The journal shows when to kill it: events are written
//! before the command starts, so a command found there is running or about to start.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fusee::engine::journal::event::{CallFate, Event};
use fusee::engine::journal::{Journal, StepKind};
use fusee::engine::run::ExitStatus;

use super::{MAX_EVENTS, RUN, perform, run_id};
use crate::command::demo::sample::summary::{KillReport, heading};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;

/// Interval at which the journal is polled.
const POLL: Duration = Duration::from_millis(3);

/// Time limit for the run to reach the command.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Delay before the kill, so that a terminal shows a frame with the command running.
const SEEN: Duration = Duration::from_millis(60);

/// Pause after the kill, so that the message can be read.
const PAUSE: Duration = Duration::from_millis(900);

/// Runs the command line, kills it, resumes the run.
pub(super) async fn killed_and_resumed(
    line: Vec<OsString>,
    project: &Path,
    process: &Process,
    colour: bool,
) -> Result<(ExitStatus, KillReport), CliError> {
    let mut child = start(line)?;
    let place = Project::find(Some(project), &process.environment)?;
    if !wait_for_moment(&mut child, &place).await? {
        return Err(CliError::failed("the demo's run ended before it could be killed")
            .help("run the demo without --kill"));
    }
    let terminal = process.environment.terminals().stderr;
    if terminal {
        tokio::time::sleep(SEEN).await;
    }
    let pid = child.id();
    child
        .kill()
        .and_then(|()| child.wait())
        .map_err(|error| CliError::failed(format!("cannot kill {pid}: {error}")))?;
    let mut killed = read_back(&place.journal_with_runs()?)?;
    let said = format!("kill -9 {pid}, {}. Now: fusee resume {RUN}", killed.during());
    stdio::error_styled(&format!("\n\n{}\n\n", heading(&said).paint(colour)));
    if terminal {
        tokio::time::sleep(PAUSE).await;
    }
    let exit = perform(vec!["resume".into(), "-C".into(), project.into(), RUN.into()], process).await?;
    killed.model_informed = events(&place.journal_with_runs()?)?.iter().any(
        |event| matches!(event, Event::ToolResult(result) if result.fate == Some(CallFate::Interrupted)),
    );
    Ok((exit, killed))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a second fusee is not a command of a model: it has its own fork server and is killed alone"
)]
fn start(line: Vec<OsString>) -> Result<Child, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("cannot start another fusee: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    std::process::Command::new(program).args(line).stdin(Stdio::null()).spawn().map_err(failed)
}

/// Waits for the first command after a file change; false if the run ends before that.
async fn wait_for_moment(child: &mut Child, place: &Project) -> Result<bool, CliError> {
    let begun = Instant::now();
    while begun.elapsed() < START_TIMEOUT && still_runs(child)? {
        // The journal does not exist at first, and is incomplete after that.
        let events = place.journal_with_runs().and_then(|journal| events(&journal)).unwrap_or_default();
        if has_come(&events) {
            return Ok(true);
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            _ = tokio::signal::ctrl_c() => {
                end(child);
                let mut failure = CliError::failed("cancelled");
                failure.exit = ExitStatus::Cancelled;
                return Err(failure);
            }
        }
    }
    end(child);
    Ok(false)
}

fn still_runs(child: &mut Child) -> Result<bool, CliError> {
    let ended =
        child.try_wait().map_err(|error| CliError::failed(format!("cannot wait for the run: {error}")))?;
    Ok(ended.is_none())
}

/// Kills the run so that no process is left behind.
fn end(child: &mut Child) {
    let _ = child.kill().and_then(|()| child.wait());
}

fn has_come(events: &[Event]) -> bool {
    let change = events.iter().position(|event| matches!(event, Event::FileChanged { .. }));
    let is_command = |event: &Event| matches!(event, Event::ToolCall { name, .. } if name == "shell");
    change.is_some_and(|change| events[change..].iter().any(is_command))
}

fn events(journal: &Journal) -> Result<Vec<Event>, CliError> {
    let events = journal.events(&run_id()?, 0, u64::MAX, MAX_EVENTS)?;
    Ok(events.into_iter().map(|stamped| stamped.event).collect())
}

/// Counts what the journal holds of the killed run; a resumed run reads all of it back.
fn read_back(journal: &Journal) -> Result<KillReport, CliError> {
    let steps = journal.steps(&run_id()?)?;
    let count = |kind| steps.iter().filter(|step| step.kind == kind && step.result.is_some()).count();
    let cut_off = steps.iter().find(|step| step.kind == StepKind::Tool && step.result.is_none());
    let command = cut_off.and_then(|step| step.args["command"].as_str()).map(str::to_owned);
    Ok(KillReport {
        command,
        replies: count(StepKind::Model),
        results: count(StepKind::Tool),
        model_informed: false,
    })
}
