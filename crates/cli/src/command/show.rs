//! `fusee show`.

use std::io;

use clap::Args;
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
    directory: DirectoryFlag,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    engine: crate::config::flags::EngineFlags,
}

/// Runs the command.
pub(crate) async fn show(args: &ShowArgs, process: &Process) -> Result<ExitStatus, CliError> {
    #[cfg(feature = "restate")]
    if let Some(engine) = super::engine::OpenEngine::open(&args.engine, process).await? {
        let (run, journal, _copy) = engine.copy(args.run.run.as_deref()).await?;
        return print(args, &journal, &run);
    }
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let run = find_run::named_or_newest(&journal, args.run.run.as_deref())?.id;
    print(args, &journal, &run)
}

fn print(args: &ShowArgs, journal: &Journal, run: &RunId) -> Result<ExitStatus, CliError> {
    let out = io::BufWriter::new(io::stdout());
    let mut ui: Box<dyn Ui> = match (args.json, args.log) {
        (true, _) => Box::new(JsonLines::new(out)),
        (false, true) => Box::new(Log::new(out, phases(journal, run))),
        (false, false) => Box::new(Transcript::new(out, args.full)),
    };
    event_pages::show_all(journal, run, &mut *ui).map(|()| ExitStatus::Completed)
}

fn phases(journal: &Journal, run: &RunId) -> PhaseLogTarget {
    settings_of(journal, run)
        .map_or(PhaseLogTarget::Inline, |settings| PhaseLogTarget::from_flow(&settings.flow))
}
