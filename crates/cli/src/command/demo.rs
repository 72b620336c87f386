//! `fusee demo`. The project and the recording are in [`crate::command::demo::sample`]; the demo runs the command line of
//! `fusee run` in this process, and of `fusee resume` if the run is killed ([`kill`]).

mod kill;
pub(crate) mod sample;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use fusee::engine::journal::RunId;
use fusee::engine::journal::event::{Event, TaskReport};
use fusee::engine::run::ExitStatus;
use fusee::engine::tools::CommandSettings;
use fusee::system;

use crate::cli;
use crate::command::demo::sample::change::changes;
use crate::command::demo::sample::summary::{DemoSummary, NextCommands, RunTotals, heading, paint, row};
use crate::command::demo::sample::{UnpackedDemo, check};
use crate::config::flags::{ApprovalFlags, ModelFlags, name_of};
use crate::process::Process;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::line::{Style, StyledLine};

/// Id of the demo's run, in a journal that holds no other.
const RUN: &str = "demo";

/// Maximum number of events read.
const MAX_EVENTS: usize = 100_000;

/// Watch a complete task: a small project with a bug, a recorded model, real tools.
///
/// Unpacks a small Python project with failing tests into a temporary directory and asks a model to fix it.
/// The model's replies are recorded, so no key, network or configuration is needed; everything else is real:
/// tools, edits, test runs, journal. With -m, your own model gets the same task. The tests run again at the
/// end, and the exit code is 0 only if they pass.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Demo to show: the task, or a review of the same project
    #[arg(value_enum, default_value_t = DemoKind::Task)]
    what: DemoKind,
    /// Skip the delays of the recorded model [always skipped without a terminal]
    #[arg(long)]
    fast: bool,
    /// Keep the project and its journal, and print where they are
    #[arg(long)]
    keep: bool,
    /// Kill the run with kill -9 while a command runs, then resume it
    #[arg(long, conflicts_with_all = ["json", "model"])]
    kill: bool,
    /// Print the run's events as JSON Lines; other output goes to stderr
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    approval: ApprovalFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DemoKind {
    /// Find and fix a bug
    Task,
    /// Review the project
    Review,
}

/// Runs the command.
pub(crate) async fn demo(args: DemoArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let unpacked = unpack(&args, environment)?;
    if args.what == DemoKind::Review {
        return review(&args, &unpacked, process).await;
    }
    let project = unpacked.project();
    let before = check::run(&project, commands(process)).await?;
    let colour_errors = colour(environment, environment.terminals().stderr);
    stdio::error_styled(&paint(&introduction(&args, &project, before), colour_errors));

    let begun = Instant::now();
    let line = run_line(&args, &unpacked);
    let (exit, killed) = match args.kill {
        true => {
            let (exit, killed) = kill::killed_and_resumed(line, &project, process, colour_errors).await?;
            (exit, Some(killed))
        }
        false => (perform(line, process).await?, None),
    };
    let wall = begun.elapsed();
    if exit == ExitStatus::Cancelled {
        return Ok(exit);
    }

    let after = check::run(&project, commands(process)).await?;
    let (report, work) = load_totals(&project, wall, environment)?;
    let changed = changes(&project, &report.map(|report| report.files_changed).unwrap_or_default());
    let own_model = args.model.model.as_deref();
    let summary = DemoSummary { own_model, before, after, work, killed, changes: &changed };
    let fusee = own_name();
    let next = NextCommands { fusee: &fusee, run: RUN, kept: args.keep.then_some(project.as_path()) };
    let lines = [vec![StyledLine::new()], summary.lines(), next.lines()].concat();
    match args.json {
        true => stdio::error_styled(&paint(&lines, colour_errors)),
        false => stdio::print_styled(&paint(&lines, colour(environment, environment.terminals().stdout)))?,
    }
    Ok(match exit {
        ExitStatus::Completed if !after.pass => ExitStatus::Failed,
        exit => exit,
    })
}

/// Reviews the project as unpacked.
async fn review(args: &DemoArgs, unpacked: &UnpackedDemo, process: &Process) -> Result<ExitStatus, CliError> {
    let colour = colour(&process.environment, process.environment.terminals().stderr);
    let plain = |text: &str| StyledLine::styled(Style::Plain, text);
    let model = args.model.model.as_deref().unwrap_or("a recording: no key, no network");
    let about = format!("{}, in {}", sample::NAME, unpacked.project().display());
    let lines = [
        heading("fusee demo review"),
        row("project", plain(&about)),
        row("model", plain(model)),
        StyledLine::new(),
    ];
    stdio::error_styled(&paint(&lines, colour));
    perform(run_line(args, unpacked), process).await
}

fn unpack(args: &DemoArgs, environment: &Environment) -> Result<UnpackedDemo, CliError> {
    let live = environment.terminals().stderr && !args.fast && !args.json;
    let longest_wait_ms = match (live, args.kill) {
        (true, _) => u64::MAX,
        // Leaves enough time to kill the run even on a slow machine.
        (false, true) => 200,
        (false, false) => 0,
    };
    let temporary = environment.variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    // The last part of an id is random, which makes the directory name unique.
    let id = system::new_run_id().map_err(CliError::failed)?;
    let directory = sample::new_directory(&temporary, id.as_str().rsplit('-').next().unwrap_or_default());
    UnpackedDemo::make(directory.clone(), longest_wait_ms, args.keep).map_err(|error| {
        CliError::failed(format!("cannot unpack the demo into {}: {error}", directory.display()))
            .help("set TMPDIR to another directory")
    })
}

/// Commands of the demo itself run unsandboxed; the output says so.
fn commands(process: &Process) -> CommandSettings {
    let variables = process.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
    CommandSettings {
        fork_server: process.fork_server.clone(),
        environment: fusee::engine::tools::CommandEnvironment::allowed(variables),
        ..CommandSettings::default()
    }
}

fn introduction(args: &DemoArgs, project: &Path, before: check::TestResults) -> Vec<StyledLine> {
    let plain = |text: &str| StyledLine::styled(Style::Plain, text);
    let model = match &args.model.model {
        Some(name) => name,
        None => "a recording: no key, no network; sandbox off, since its commands are known",
    };
    let tests =
        StyledLine::styled(Style::Bad, &before.is()).and(Style::Plain, &format!(" ({})", check::COMMAND));
    vec![
        heading("fusee demo"),
        row("project", plain(&format!("{}, in {}", sample::NAME, project.display()))),
        row("tests", tests),
        row("model", plain(model)),
        StyledLine::new(),
    ]
}

/// The equivalent command line of this run.
fn run_line(args: &DemoArgs, unpacked: &UnpackedDemo) -> Vec<OsString> {
    let command = if args.what == DemoKind::Review { "review" } else { "run" };
    let mut line: Vec<OsString> = vec![command.into(), "-C".into(), unpacked.project().into()];
    let mut flag =
        |name: &str, value: Option<OsString>| line.extend(value.into_iter().flat_map(|it| [name.into(), it]));
    flag("--run-id", Some(RUN.into()));
    match &args.model.model {
        Some(model) => {
            flag("-m", Some(model.into()));
            flag("--base-url", args.model.base_url.as_ref().map(Into::into));
            flag("--api", args.model.api.map(|value| name_of(value).into()));
            flag("--approve", args.approval.approve.map(|value| name_of(value).into()));
            flag("--sandbox", args.approval.sandbox.map(|value| name_of(value).into()));
        }
        None => {
            let mut model = OsString::from("script:");
            model.push(if args.what == DemoKind::Review { unpacked.review() } else { unpacked.recording() });
            flag("-m", Some(model));
            // Fix every setting the recording depends on, so that the user's configuration cannot change it.
            let fixed = [
                ("--approve", "auto"),
                ("--sandbox", "off"),
                ("--max-turns", "50"),
                ("--max-tokens", "100000"),
            ];
            for (name, value) in fixed {
                flag(name, Some(value.into()));
            }
        }
    }
    if args.json {
        line.push("--json".into());
    }
    if args.what == DemoKind::Task {
        line.push("--".into());
        line.push(sample::REQUEST.into());
    }
    line
}

/// Runs this command line in the current process.
async fn perform(line: Vec<OsString>, process: &Process) -> Result<ExitStatus, CliError> {
    let typed = cli::read(std::iter::once("fusee".into()).chain(line));
    let typed =
        typed.map_err(|_| CliError::failed("internal error: cannot parse the demo's command line"))?;
    Box::pin(typed.perform(process)).await
}

/// The run's report and totals, from the journal.
fn load_totals(
    project: &Path,
    wall: Duration,
    environment: &Environment,
) -> Result<(Option<TaskReport>, RunTotals), CliError> {
    let journal = Project::find(Some(project), environment)?.journal_with_runs()?;
    let (mut report, mut work) = (None, RunTotals { wall, ..RunTotals::default() });
    for stamped in journal.events(&run_id()?, 0, u64::MAX, MAX_EVENTS)? {
        match stamped.event {
            Event::TaskReport(it) => {
                work.calls = it.tool_calls_total;
                report = Some(it);
            }
            Event::TaskComplete(end) => (work.turns, work.tokens) = (end.total_turns, end.total_tokens),
            _ => {}
        }
    }
    Ok((report, work))
}

fn run_id() -> Result<RunId, CliError> {
    RUN.parse().map_err(CliError::failed)
}

/// How the user invoked us, so that printed commands can be pasted.
fn own_name() -> String {
    let name = std::env::args_os().next().map(|name| name.to_string_lossy().into_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "fusee".to_owned())
}

fn colour(environment: &Environment, terminal: bool) -> bool {
    terminal && environment.text("TERM") != Some("dumb") && environment.variable("NO_COLOR").is_none()
}
