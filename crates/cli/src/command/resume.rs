//! `fusee resume`.

pub(super) mod finished_run;

use std::sync::Arc;

use clap::Args;
use fusee::engine::approval::AnsweredOutside;
use fusee::engine::journal::{Event, EventRecord, Journal, RunId, RunStatus};
use fusee::engine::model::ResolvedModel;
use fusee::engine::run::{self, ExitStatus, JsonOutput, RunHandle, RunOutcome, RunSpec};
use fusee::engine::tools::sandbox::Network;
use fusee::launch::ResumeRequest;

use super::run_setup::RunSetup;
use super::task;
use crate::command::run_session;
use crate::config::flags::{ApprovalFlags, DetachFlag, DirectoryFlag, LimitFlags, ModelFlags};
use crate::config::{Config, McpEntry};
use crate::model_selection;
use crate::process::Process;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::UiOptions;
use crate::ui::event_pages;

/// Resume an interrupted run.
///
/// The run continues after the last journaled step, with the settings it was started with. A command that was
/// running when the process ended is not run again: the model is told that its effects are unknown. Flags
/// change the settings from here on. For a run that has ended, its result and exit code are repeated.
#[derive(Args)]
pub(crate) struct ResumeArgs {
    /// Run id, a unique prefix of it, `last` or `last~N` [default: the newest open run]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print what the original command prints with --json: events as JSON Lines, or the result of `fusee
    /// task`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) background_run: DetachFlag,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    approval: ApprovalFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    engine: crate::config::flags::EngineFlags,
}

/// Runs the command.
pub(crate) async fn resume(args: ResumeArgs, process: &Process) -> Result<ExitStatus, CliError> {
    #[cfg(feature = "restate")]
    if args.engine.engine.is_some() {
        return super::engine::attach::follow(&args.engine, args.run.as_deref(), args.json, process).await;
    }
    let environment = &process.environment;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let row = match &args.run {
        Some(name) => find_run::named(&journal, name)?,
        None => find_run::newest_open(&journal)?,
    };
    let began_with = run::settings_of(&journal, &row.id)?;
    let flags = [args.model.values(), args.approval.values(), args.limits.values()].concat();
    let config = Config::gather(Some(&project.config_file()), environment, flags)?;
    let wants_result = args.json && began_with.json_form == JsonOutput::Result;
    let ui_options = match wants_result {
        true => UiOptions::for_result(true, &config, environment),
        false => UiOptions::new(args.json, &config, environment),
    };
    let ui_options = ui_options.for_benchmark(began_with.flow.benchmark);
    ui_options.warn(&config);
    if row.status != RunStatus::Open {
        return Box::pin(finished_run::repeat(&journal, &row.id, began_with, &ui_options, wants_result))
            .await;
    }
    let ui_options = ui_options.in_background(args.background_run.detached);
    ui_options.warn_if_nobody_can_be_asked(began_with.approve);
    let past = past(&journal, &row.id)?;
    drop(journal);
    let (settings, resolved) =
        changed(began_with, &args.model, &args.approval, &args.limits, &config, environment)?;
    let ui_options = ui_options.with_phases(settings.flow.phase_log);
    let setup = RunSetup::reopen(project, config, ui_options, resolved, &settings, process).await?;
    let model = Arc::clone(&setup.model);
    let started = setup.resume(&row.id, settings, model, &setup.servers, None)?;
    let (exit, outcome) = run_session::watch(started, &ui_options, &past).await?;
    if wants_result {
        print_result(outcome)?;
    }
    Ok(exit)
}

/// Resumes a run that another front end presents, with the settings it was started with; `servers` are the MCP servers
/// that it brings along.
pub(super) async fn elsewhere(
    run: &RunId,
    project: Project,
    with: ResumeRequest,
    servers: Vec<McpEntry>,
    process: &Process,
) -> Result<RunHandle, CliError> {
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let settings = run::settings_of(&journal, run)?;
    drop(journal);
    let mut config = Config::gather(Some(&project.config_file()), &process.environment, Vec::new())?;
    config.add_mcp(servers);
    let resolved = model_selection::for_resume(&settings, &config, &process.environment)?;
    let ui_options = UiOptions::silent(&config, &process.environment);
    let mut setup = RunSetup::reopen(project, config, ui_options, resolved, &settings, process).await?;
    let mut model = Arc::clone(&setup.model);
    if settings.flow.benchmark.is_some() && model_selection::is_script(&setup.resolved) {
        model = model_selection::open(&setup.resolved, None)?;
        if let Some(earlier) = &settings.continues {
            run::replay_replies(&setup.journal, earlier, &*model)?;
        }
    }
    setup.documents = with.documents;
    let approver = with.approver.unwrap_or_else(|| Arc::new(AnsweredOutside));
    Ok(setup.resume(run, settings, model, &setup.servers, Some(&approver))?.running)
}

/// Prints the task result like `fusee task --json`.
fn print_result(outcome: Option<RunOutcome>) -> Result<(), CliError> {
    let result = task::result_of(outcome);
    stdio::print_json(&format!("{}\n", serde_json::to_string(&result).unwrap_or_default()))?;
    Ok(())
}

/// Earlier events that are still relevant: changed files, the call without a result, the question without an
/// answer.
fn past(journal: &Journal, run: &RunId) -> Result<Vec<EventRecord>, CliError> {
    let (mut changes, mut open, mut asked) = (Vec::new(), None, None);
    event_pages::for_each_event(journal, run, |event| {
        match &event.event {
            Event::FileChanged { .. } => changes.push(event),
            Event::ToolCall { .. } => open = Some(event),
            Event::ToolResult(_) => open = None,
            Event::ApprovalRequested { .. } => asked = Some(event),
            Event::ApprovalResolved { .. } => asked = None,
            _ => {}
        }
        Ok(())
    })?;
    changes.extend(open.into_iter().chain(asked));
    Ok(changes)
}

/// The settings the run started with, changed by this command's flags.
pub(super) fn changed(
    mut settings: RunSpec,
    model: &ModelFlags,
    approval: &ApprovalFlags,
    given: &LimitFlags,
    config: &Config,
    environment: &Environment,
) -> Result<(RunSpec, ResolvedModel), CliError> {
    let resolved = if let Some(name) = &model.model {
        model_selection::named(name, config, environment)?
    } else {
        settings.base_url = model.base_url.clone().or(settings.base_url);
        settings.wire = model.api.unwrap_or(settings.wire);
        model_selection::for_resume(&settings, config, environment)?
    };
    settings.set_connection(&resolved);
    settings.approve = approval.approve.unwrap_or(settings.approve);
    settings.sandbox = approval.sandbox.unwrap_or(settings.sandbox);
    if approval.allow_net {
        settings.sandbox_options.network = Network::Machine;
    }
    let limits = &mut settings.limits;
    limits.max_turns = given.max_turns.unwrap_or(limits.max_turns);
    limits.max_tokens = given.max_tokens.unwrap_or(limits.max_tokens);
    limits.budget_usd = given.budget_usd.or(limits.budget_usd);
    limits.task_timeout_s = given.timeout.or(limits.task_timeout_s);
    limits.patience_s = given.patience.or(limits.patience_s);
    Ok((settings, resolved))
}
