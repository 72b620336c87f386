//! `fusee replay`.

use std::collections::BTreeMap;

use clap::Args;
use fusee_engine::run::{self, Exit, RunOutcome};
use fusee_journal::{Kind, Stop};

use super::Process;
use crate::arguments::shared::{Place, RunArg};
use crate::failure::Failure;
use crate::project::Project;
use crate::{history, output, selection};

/// Run a recorded run again from its journal, and compare.
///
/// No model is asked, no tool runs, no file of the workspace is read. Every request, call and event must be the
/// same as it was then; the first difference is shown as a diff and the exit code is 1. Of a run that was
/// interrupted, what is there is compared.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    run: RunArg,
    #[command(flatten)]
    place: Place,
}

/// Replays a run.
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
    match run::replay(&journal, &run, settings).await? {
        RunOutcome::Ended(_) => {
            output::print(&format!("run {run} replays as it was: {counts}\n")).map(|()| Exit::Completed)
        }
        RunOutcome::Stopped(Stop::EndOfJournal(key)) => output::print(&format!(
            "run {run} replays as it was up to {key}, where its journal ends: {counts}\n"
        ))
        .map(|()| Exit::Completed),
        RunOutcome::Stopped(Stop::Diverged(divergence)) => {
            output::print(&format!("{divergence}\n"))?;
            Err(Failure::failed(format!("run {run} does not replay as it was")))
        }
        RunOutcome::Stopped(stop) => Err(Failure::failed(stop.to_string())),
        RunOutcome::Lost(cause) => {
            Err(Failure::failed(format!("the replay was lost to a fault in fusee: {cause}")))
        }
    }
}
