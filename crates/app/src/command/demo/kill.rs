//! Killing the demo's run while a command of it runs, and going on with it.
//!
//! The run is a process of its own, so that kill -9 is what it is. The journal tells when to kill it: events are in it
//! before the command starts, so one that is found there is under way or about to be.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fusee_engine::journal::event::{Event, Fate};
use fusee_engine::journal::{Journal, Kind};
use fusee_engine::run::Exit;

use super::{MOST_EVENTS, RUN, perform, run_id};
use crate::command::Process;
use crate::demo::summary::{Killed, heading};
use crate::failure::Failure;
use crate::output;
use crate::project::Project;

/// How often the journal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// A run that has not come to its command by then never will.
const LONGEST: Duration = Duration::from_secs(60);

/// A terminal is given the time for a frame that shows the command running.
const SEEN: Duration = Duration::from_millis(60);

/// The line that tells of the kill can be read before it goes on.
const PAUSE: Duration = Duration::from_millis(900);

/// Runs it, kills it, resumes it.
pub(super) async fn killed_and_resumed(
    line: Vec<OsString>,
    project: &Path,
    process: &Process,
    colour: bool,
) -> Result<(Exit, Killed), Failure> {
    let mut child = start(line)?;
    let place = Project::find(Some(project), &process.environment)?;
    if !wait_for_moment(&mut child, &place).await? {
        return Err(Failure::failed("the demo's run ended before it could be killed")
            .help("without --kill it can be seen"));
    }
    let terminal = process.environment.terminals().stderr;
    if terminal {
        tokio::time::sleep(SEEN).await;
    }
    let pid = child.id();
    child
        .kill()
        .and_then(|()| child.wait())
        .map_err(|error| Failure::failed(format!("cannot kill {pid}: {error}")))?;
    let mut killed = read_back(&place.journal_with_runs()?)?;
    let said = format!("kill -9 {pid}, {}. Now: fusee resume {RUN}", killed.during());
    output::error(&format!("\n\n{}\n\n", heading(&said).paint(colour)));
    if terminal {
        tokio::time::sleep(PAUSE).await;
    }
    let exit = perform(vec!["resume".into(), "-C".into(), project.into(), RUN.into()], process).await?;
    killed.told = events(&place.journal_with_runs()?)?
        .iter()
        .any(|event| matches!(event, Event::ToolResult(result) if result.fate == Some(Fate::Interrupted)));
    Ok((exit, killed))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a second fusee is no command of a model: it starts its own keeper, and is killed alone"
)]
fn start(line: Vec<OsString>) -> Result<Child, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot start a second fusee: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    std::process::Command::new(program).args(line).stdin(Stdio::null()).spawn().map_err(failed)
}

/// Waits for the first command after a change of a file; false if the run ends before.
async fn wait_for_moment(child: &mut Child, place: &Project) -> Result<bool, Failure> {
    let begun = Instant::now();
    while begun.elapsed() < LONGEST && still_runs(child)? {
        // The journal is not there at first, and then not complete.
        let events = place.journal_with_runs().and_then(|journal| events(&journal)).unwrap_or_default();
        if has_come(&events) {
            return Ok(true);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = tokio::signal::ctrl_c() => {
                end(child);
                let mut failure = Failure::failed("cancelled");
                failure.exit = Exit::Cancelled;
                return Err(failure);
            }
        }
    }
    end(child);
    Ok(false)
}

fn still_runs(child: &mut Child) -> Result<bool, Failure> {
    let ended = child.try_wait().map_err(|error| Failure::failed(format!("the run was lost: {error}")))?;
    Ok(ended.is_none())
}

/// A run that is no longer wanted is not left behind.
fn end(child: &mut Child) {
    let _ = child.kill().and_then(|()| child.wait());
}

fn has_come(events: &[Event]) -> bool {
    let change = events.iter().position(|event| matches!(event, Event::FileChanged { .. }));
    let is_command = |event: &Event| matches!(event, Event::ToolCall { name, .. } if name == "shell");
    change.is_some_and(|change| events[change..].iter().any(is_command))
}

fn events(journal: &Journal) -> Result<Vec<Event>, Failure> {
    let events = journal.events(&run_id()?, 0, u64::MAX, MOST_EVENTS)?;
    Ok(events.into_iter().map(|stamped| stamped.event).collect())
}

/// What the journal holds of the killed run, all of which a resumed run reads back.
fn read_back(journal: &Journal) -> Result<Killed, Failure> {
    let steps = journal.steps(&run_id()?)?;
    let count = |kind| steps.iter().filter(|step| step.kind == kind && step.result.is_some()).count();
    let cut_off = steps.iter().find(|step| step.kind == Kind::Tool && step.result.is_none());
    let command = cut_off.and_then(|step| step.args["command"].as_str()).map(str::to_owned);
    Ok(Killed { command, replies: count(Kind::Model), results: count(Kind::Tool), told: false })
}
