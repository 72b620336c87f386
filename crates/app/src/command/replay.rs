//! `fusee replay`.

use std::collections::BTreeMap;
use std::io;

use clap::Args;
use fusee_engine::journal::{Kind, Stop};
use fusee_engine::run::{self, Exit, RunOutcome};

use super::Process;
use crate::arguments::shared::{Place, RunArg};
use crate::face::Json;
use crate::failure::Failure;
use crate::project::Project;
use crate::{history, output, selection};

/// Replay a recorded run from its journal and compare.
///
/// No model is called, no tool runs, and no file of the workspace is read. Every request, call and event must
/// be the same as recorded; the first difference is shown as a diff and the exit code is 1. Otherwise the
/// answer is printed again. An interrupted run is compared as far as it was recorded.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    run: RunArg,
    #[command(flatten)]
    place: Place,
    /// Print the run's events as JSON Lines
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn replay(args: ReplayArgs, process: &Process) -> Result<Exit, Failure> {
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let run = selection::named(&journal, &args.run.run)?.id;
    let settings = run::settings_of(&journal, &run)?;
    let steps = journal.steps(&run)?;
    let mut events = 0_usize;
    history::each(&journal, &run, |_| {
        events += 1;
        Ok(())
    })?;
    let mut kinds = BTreeMap::<&str, usize>::new();
    for step in &steps {
        let what = match step.kind {
            Kind::Model => "model requests",
            Kind::Tool => "tool calls",
            Kind::Settings | Kind::Environment | Kind::Wait | Kind::FanOut => "others",
        };
        *kinds.entry(what).or_default() += 1;
    }
    let count = |what: &str| kinds.get(what).copied().unwrap_or_default();
    let counts = format!(
        "{} steps ({} model requests, {} tool calls), {events} events",
        steps.len(),
        count("model requests"),
        count("tool calls")
    );
    let outcome = run::replay(&journal, &run, settings, Vec::new()).await?;
    if args.json && !matches!(outcome, RunOutcome::Stopped(Stop::Diverged(_))) {
        history::show_all(&journal, &run, &mut Json::new(io::BufWriter::new(io::stdout())))?;
    }
    match outcome {
        RunOutcome::Ended(ended) => {
            if !args.json && !ended.answer.is_empty() {
                output::print(&format!("{}\n", ended.answer.trim_end()))?;
            }
            output::error(&format!("run {run} replays identically: {counts}\n"));
            Ok(Exit::Completed)
        }
        RunOutcome::Stopped(Stop::EndOfJournal(key)) => {
            output::error(&format!(
                "run {run} replays identically up to {key}, where its journal ends: {counts}\n"
            ));
            Ok(Exit::Completed)
        }
        RunOutcome::Stopped(Stop::Diverged(divergence)) => {
            output::print(&format!("{divergence}\n"))?;
            Err(Failure::failed(format!("run {run} does not replay identically")))
        }
        RunOutcome::Stopped(stop) => Err(Failure::failed(stop.to_string())),
        RunOutcome::Lost(cause) => {
            Err(Failure::failed(format!("internal error: the replay panicked: {cause}")))
        }
    }
}
