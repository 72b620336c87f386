//! Killing the demo's run while a command of it runs, and going on with it.
//!
//! The run is a process of its own, so that kill -9 is what it is. The journal tells when to kill it: events are in it
//! before the command starts, so one that is found there is under way or about to be.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fusee_engine::run::Exit;
use fusee_journal::event::{Event, Fate};
use fusee_journal::{Journal, Kind};

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

/// Shows the line above for a moment before it goes on.
const PAUSE: Duration = Duration::from_millis(900);

/// Runs it, kills it, resumes it. Without a kill where the run was over first.
pub(super) async fn killed_and_resumed(
    line: Vec<OsString>,
    project: &Path,
    process: &Process,
    colour: bool,
) -> Result<(Exit, Option<Killed>), Failure> {
    let mut child = start(line)?;
    let place = Project::find(Some(project), &process.environment)?;
    let Some(moment) = wait_for_moment(&mut child, &place).await? else {
        return Err(Failure::failed("the demo's run ended before it could be killed")
            .help("without --kill it can be seen"));
    };
    let pid = child.id();
    child
        .kill()
        .and_then(|()| child.wait())
        .map_err(|error| Failure::failed(format!("cannot kill {pid}: {error}")))?;
    let mut killed = read_back(&place.journal_with_runs()?, moment)?;

    let terminal = process.environment.terminals().stderr;
    let said = format!("kill -9 {pid}, while `{}` ran. Now: fusee resume {RUN}", killed.command);
    output::error(&format!("\n\n{}\n\n", heading(&said).paint(colour)));
    if terminal {
        tokio::time::sleep(PAUSE).await;
    }
    let exit = perform(vec!["resume".into(), "-C".into(), project.into(), RUN.into()], process).await?;
    killed.told = events(&place.journal_with_runs()?)?
        .iter()
        .any(|event| matches!(event, Event::ToolResult(result) if result.fate == Some(Fate::Interrupted)));
    Ok((exit, Some(killed)))
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

/// The moment to kill at: a command that has begun, and the turn it is in.
struct Moment {
    command: String,
    turn: u32,
}

/// Waits for the first command after a change of a file; `None` if the run ends before.
async fn wait_for_moment(child: &mut Child, place: &Project) -> Result<Option<Moment>, Failure> {
    let begun = Instant::now();
    let mut looking = true;
    while looking {
        // The last look comes after the end, for a run that was quicker than we.
        let ended =
            child.try_wait().map_err(|error| Failure::failed(format!("the run was lost: {error}")))?;
        looking = ended.is_none() && begun.elapsed() < LONGEST;
        // The journal is not there at first, and then not complete.
        let events = place.journal_with_runs().and_then(|journal| events(&journal)).unwrap_or_default();
        match moment(&events) {
            Some(moment) if looking => return Ok(Some(moment)),
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
    // One that neither ends nor gets there is not left behind.
    let _ = child.kill().and_then(|()| child.wait());
    Ok(None)
}

fn moment(events: &[Event]) -> Option<Moment> {
    let change = events.iter().position(|event| matches!(event, Event::FileChanged { .. }))?;
    let turn = |event: &Event| match event {
        Event::TurnStart { turn_index, .. } => Some(turn_index + 1),
        _ => None,
    };
    events[change..].iter().enumerate().find_map(|(at, event)| match event {
        Event::ToolCall { name, arguments, .. } if name == "shell" => {
            let command = arguments["command"].as_str().unwrap_or_default().to_owned();
            let turn = events[..change + at].iter().rev().find_map(turn).unwrap_or_default();
            Some(Moment { command, turn })
        }
        _ => None,
    })
}

fn events(journal: &Journal) -> Result<Vec<Event>, Failure> {
    let events = journal.events(&run_id()?, 0, u64::MAX, MOST_EVENTS)?;
    Ok(events.into_iter().map(|stamped| stamped.event).collect())
}

/// What the journal holds of the killed run, all of which a resumed run reads back.
fn read_back(journal: &Journal, moment: Moment) -> Result<Killed, Failure> {
    let steps = journal.steps(&run_id()?)?;
    let count = |kind| steps.iter().filter(|step| step.kind == kind && step.result.is_some()).count();
    let Moment { command, turn } = moment;
    Ok(Killed { command, turn, replies: count(Kind::Model), results: count(Kind::Tool), told: false })
}
