//! `fusee replay`.

use std::collections::BTreeMap;
use std::io;

use clap::Args;
use fusee::engine::journal::{RunAborted, StepKind};
use fusee::engine::run::{ExitStatus, RunBuilder, RunOutcome};

use crate::config::flags::{DirectoryFlag, RunArg};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::JsonLines;
use crate::ui::event_pages;
use crate::ui::format;

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
    directory: DirectoryFlag,
    /// Print the run's events as JSON Lines
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn replay(args: ReplayArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let run = find_run::named_or_newest(&journal, args.run.run.as_deref())?.id;
    let recorded = RunBuilder::recorded(&journal, &run)?;
    let steps = journal.steps(&run)?;
    let mut events = 0_u64;
    event_pages::for_each_event(&journal, &run, |_| {
        events += 1;
        Ok(())
    })?;
    let mut kinds = BTreeMap::<&str, u64>::new();
    for step in &steps {
        let what = match step.kind {
            StepKind::Model => "model request",
            StepKind::Tool => "tool call",
            StepKind::Settings
            | StepKind::Environment
            | StepKind::Wait
            | StepKind::FanOut
            | StepKind::Hook => "other step",
        };
        *kinds.entry(what).or_default() += 1;
    }
    let count = |what: &str| format::count(kinds.get(what).copied().unwrap_or_default(), what);
    let counts = format!(
        "{} ({}, {}), {}",
        format::count(steps.len() as u64, "step"),
        count("model request"),
        count("tool call"),
        format::count(events, "event")
    );
    let outcome = recorded.replay(&run).await?;
    if args.json && !matches!(outcome, RunOutcome::Stopped(RunAborted::Diverged(_))) {
        event_pages::show_all(&journal, &run, &mut JsonLines::new(io::BufWriter::new(io::stdout())))?;
    }
    match outcome {
        RunOutcome::Ended(ended) => {
            if !args.json && !ended.answer.is_empty() {
                stdio::print(&format!("{}\n", ended.answer.trim_end()))?;
            }
            stdio::error(&format!("run {run} replays identically: {counts}\n"));
            Ok(ExitStatus::Completed)
        }
        RunOutcome::Stopped(RunAborted::EndOfJournal(key)) => {
            stdio::error(&format!(
                "run {run} replays identically up to {key}, where its journal ends: {counts}\n"
            ));
            Ok(ExitStatus::Completed)
        }
        RunOutcome::Stopped(RunAborted::Diverged(divergence)) => {
            stdio::print(&format!("{divergence}\n"))?;
            Err(CliError::failed(format!("run {run} does not replay identically")))
        }
        RunOutcome::Stopped(stop) => Err(CliError::failed(stop.to_string())),
        RunOutcome::Lost(cause) => {
            Err(CliError::failed(format!("internal error: the replay panicked: {cause}")))
        }
    }
}
