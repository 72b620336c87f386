//! `fusee fork`.

use std::sync::Arc;

use clap::Args;
use fusee::engine::journal::{Journal, RunId};
use fusee::engine::rewind::{self, Rewind};
use fusee::engine::run::{ExitStatus, JsonOutput, RunSpec};
use fusee::engine::tools::worktree::Worktree;
use fusee::system;

use super::rewind::finish_interrupted;
use super::run::{self, ContinuedRun, Launched, RunArgs};
use super::run_setup::{RunSetup, RunTarget};
use super::{resume, run_session};
use crate::config::Config;
use crate::config::flags::{ApprovalFlags, DirectoryFlag, FlowFlags, LimitFlags, ModelFlags, RunIdFlag};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::project::fork_worktrees;
use crate::ui::UiOptions;
use crate::ui::format;

/// Branch off a new run from an earlier one and continue differently.
///
/// The new run takes over the first TURN turns of an earlier run and continues from there: with another model, another
/// flow or other limits, or with a further message. Without TURN it starts over with the same request; with a message
/// and no TURN, it continues after the last turn. The earlier run is unchanged.
///
/// With `--worktree` the fork works in a copy of the project, with the files of that turn, and the original is not touched:
/// a git worktree, or a plain copy where there is no git. Ignored files are not copied. Several forks can work side by
/// side; `fusee runs diff A B` compares them, and `fusee adopt RUN` applies the changes of one to the original. Without
/// `--worktree` the fork works in the same directory, with the current files.
///
/// The answer goes to stdout, followed by the id of the new run as the last line.
#[derive(Args)]
pub(crate) struct ForkArgs {
    /// Run id, a unique prefix of it, `last` or `last~N`
    #[arg(value_name = "RUN")]
    run: String,
    /// Number of completed turns to take over [default: 0, or all of them with a message]
    #[arg(value_name = "TURN")]
    turn: Option<String>,
    /// Message to continue with
    #[arg(value_name = "MESSAGE")]
    message: Option<String>,
    /// Work in a copy of the project
    #[arg(long)]
    worktree: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print events as JSON Lines instead of the answer and the id
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    name: RunIdFlag,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    flow: FlowFlags,
    #[command(flatten)]
    approval: ApprovalFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl ForkArgs {
    /// The turn and the message; a second word that is not a number is the message.
    fn turn_and_message(&self) -> Result<(Option<u32>, Option<String>), CliError> {
        let Some(word) = &self.turn else { return Ok((None, None)) };
        match (word.parse(), &self.message) {
            (Ok(turn), message) => Ok((Some(turn), message.clone())),
            (Err(_), None) => Ok((None, Some(word.clone()))),
            (Err(_), Some(_)) => Err(CliError::usage(format!(
                "`{word}` is not a turn: expected the number of completed turns"
            ))),
        }
    }
}

/// Runs the command.
pub(crate) async fn fork(args: ForkArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let (turn, message) = args.turn_and_message()?;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    drop(project.journal_with_runs()?);
    project.check_owner()?;
    let flags =
        [args.model.values(), args.flow.values(), args.approval.values(), args.limits.values()].concat();
    let config =
        Config::gather_for(Some(&project.config_file()), args.flow.agent.as_deref(), environment, flags)?;
    let journal =
        process.journals.get_or_open(&project.journal, || project.open_journal(config.journal()))?;
    finish_interrupted(&journal).await;
    let row = find_run::named(&journal, &args.run)?;
    let turn = match (turn, &message) {
        (Some(turn), _) => turn,
        (None, None) => 0,
        (None, Some(_)) => rewind::turn_count(&journal, &row.id)?,
    };
    let changes_flow = !args.flow.values().is_empty() || args.flow.agent.is_some();
    if changes_flow && turn > 0 && message.is_none() {
        let after = format::count(turn.into(), "turn");
        let problem = format!("the flow cannot change after {after} in the flow of the original run");
        return Err(CliError::usage(problem).help("fork at turn 0, or add a message to continue with"));
    }
    // Checked before anything is copied.
    let planned = Rewind::plan_fork(&journal, &row.id, turn, None)?;
    let id = args.name.run_id.clone().map_or_else(system::new_run_id, Ok).map_err(CliError::failed)?;
    let fork = match args.worktree {
        false => NewFork { planned, worktree: None },
        true => NewFork::in_worktree(&planned, &journal, &id, &project, process)?,
    };
    let worktree = fork.worktree.clone();
    let project = match &worktree {
        Some(worktree) => project.working_in(&worktree.workspace, None)?,
        None => project.working_in(&fork.planned.spec().workspace.clone(), None)?,
    };
    let (mut spec, resolved) = resume::changed(
        fork.planned.spec().clone(),
        &args.model,
        &args.approval,
        &args.limits,
        &config,
        environment,
    )?;
    if changes_flow {
        spec.flow = config.flow()?;
    }
    let ui_options = UiOptions::new(args.json, &config, environment).for_benchmark(spec.flow.benchmark);
    if let Some(worktree) = &worktree {
        stdio::error(&format!("fork {id} works in {}\n", worktree.workspace.display()));
    }
    let copy = worktree.as_ref().map(|worktree| worktree.workspace.clone());
    let spec = fork.planned.fork_spec(spec, copy.as_deref());
    let (exit, id) = match message {
        Some(message) => {
            let base = system::new_run_id().map_err(CliError::failed)?;
            fork.planned.begin_fork(&journal, &base, spec.clone()).await?;
            continue_with(args, message, ContinuedRun { run: base, settings: spec }, id, project, process)
                .await?
        }
        None => {
            let setup = RunSetup::reopen(project, config, ui_options, resolved, &spec, process).await?;
            let started = if turn == 0 {
                Box::pin(setup.start_with(&id, spec, Arc::clone(&setup.model), None)).await?
            } else {
                fork.planned.begin_fork(&journal, &id, spec.clone()).await?;
                let model = Arc::clone(&setup.model);
                setup.resume(&id, spec, model, &setup.servers, None)?
            };
            let json = args.json;
            let (exit, _) =
                run_session::watch(started, &ui_options, &[]).await.map_err(CliError::after_start)?;
            (exit, (!json).then_some(id))
        }
    };
    if let Some(id) = id {
        stdio::print(&format!("{id}\n"))?;
    }
    Ok(exit)
}

/// Continues the shared beginning with a message, as a run of its own.
async fn continue_with(
    args: ForkArgs,
    message: String,
    earlier: ContinuedRun,
    id: RunId,
    project: Project,
    process: &Process,
) -> Result<(ExitStatus, Option<RunId>), CliError> {
    let json = args.json;
    let args = RunArgs {
        json,
        name: RunIdFlag { run_id: Some(id.clone()) },
        model: args.model,
        flow: args.flow,
        approval: args.approval,
        limits: args.limits,
        ..RunArgs::default()
    };
    let target = RunTarget::Request(message);
    let Launched { started, ui_options } =
        Box::pin(run::launch(args, target, Some(earlier), JsonOutput::Events, project, process)).await?;
    let (exit, _) = run_session::watch(started, &ui_options, &[]).await.map_err(CliError::after_start)?;
    Ok((exit, (!json).then_some(id)))
}

/// A fork that is ready to begin.
struct NewFork {
    planned: Rewind,
    worktree: Option<Worktree>,
}

impl NewFork {
    /// Copies the project and gives the copy the files of the turn.
    fn in_worktree(
        planned: &Rewind,
        journal: &Journal,
        id: &RunId,
        project: &Project,
        process: &Process,
    ) -> Result<Self, CliError> {
        let root = fork_worktrees::folder(project, &process.environment)?.join(id.as_str());
        if journal.run(id.as_str()).is_ok() || root.exists() {
            return Err(CliError::usage(format!("run {id} already exists")).help("choose another id"));
        }
        let original: &RunSpec = planned.spec();
        let worktree = Worktree::create(&original.workspace, &root).map_err(|error| {
            CliError::failed(format!("cannot copy the project to {}: {error}", root.display()))
        })?;
        let fork = Rewind::plan_fork(journal, &planned.run, planned.turn, Some(&worktree.workspace));
        let fork = fork.and_then(|fork| fork.restore_copy(journal, id, &worktree.workspace).map(|()| fork));
        match fork {
            Ok(planned) => {
                for (path, why) in &planned.left {
                    stdio::error(&format!("not restored   {path}: {why}\n"));
                }
                Ok(Self { planned, worktree: Some(worktree) })
            }
            Err(error) => {
                Worktree::remove(&original.workspace, &root);
                Err(error.into())
            }
        }
    }
}
