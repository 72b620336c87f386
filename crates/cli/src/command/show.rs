//! `fusee show`.

use std::io;

use clap::Args;
use fusee::engine::agent::flow::{PhaseLog, PhaseMode};
use fusee::engine::journal::{Journal, RunId};
use fusee::engine::run::{ExitStatus, settings_of};

use crate::config::flags::{DirectoryFlag, RunArg};
use crate::process::Process;
use crate::process::error::CliError;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::event_pages;
use crate::ui::{JsonLines, Log, PhaseLogTarget, Transcript, Ui};

/// Show what a run did.
///
/// Prints a transcript: the request, the model's messages, its tool calls and their results. With --json,
/// prints the events like `fusee run --json`, without streamed message fragments; with --log, every event
/// with its time.
#[derive(Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    run: RunArg,
    /// Print the events as JSON Lines
    #[arg(long, conflicts_with = "log")]
    json: bool,
    /// Print every event with its time
    #[arg(long)]
    log: bool,
    /// Show tool results in full
    #[arg(long, conflicts_with_all = ["json", "log"])]
    full: bool,
    #[command(flatten)]
    place: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn show(args: &ShowArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let run = find_run::named(&journal, &args.run.run)?.id;
    let out = io::BufWriter::new(io::stdout());
    let mut face: Box<dyn Ui> = match (args.json, args.log) {
        (true, _) => Box::new(JsonLines::new(out)),
        (false, true) => Box::new(Log::new(out, phase_place(&journal, &run))),
        (false, false) => Box::new(Transcript::new(out, args.full)),
    };
    event_pages::show_all(&journal, &run, &mut *face).map(|()| ExitStatus::Completed)
}

/// Where a log shows the phases of a run, according to the run's own `phase_log`. Without phase control the
/// only phases are those of `staged`, which are shown inline.
fn phase_place(journal: &Journal, run: &RunId) -> PhaseLogTarget {
    match settings_of(journal, run).map(|settings| settings.flow) {
        Ok(flow) if matches!(flow.phase_log, PhaseLog::Log | PhaseLog::Both) => PhaseLogTarget::Apart,
        Ok(flow) if flow.phase_control.mode != PhaseMode::Off => PhaseLogTarget::Nowhere,
        _ => PhaseLogTarget::Inline,
    }
}
