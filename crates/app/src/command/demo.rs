//! `fusee demo`. The project and the recording are [`crate::demo`]'s; the run is `fusee run`'s own, by its own
//! command line, and so is `fusee resume` where the run is killed on the way ([`kill`]).

mod kill;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use fusee_engine::journal::RunId;
use fusee_engine::journal::event::{Event, TaskReport};
use fusee_engine::run::Exit;
use fusee_engine::tools::CommandSettings;

use super::Process;
use crate::arguments::shared::{GateFlags, ModelFlags};
use crate::demo::change::changes;
use crate::demo::summary::{Next, Summary, Work, heading, paint, row};
use crate::demo::{self, Unpacked, check};
use crate::environment::Environment;
use crate::face::line::{Line, Style};
use crate::failure::Failure;
use crate::project::Project;
use crate::{arguments, clock, output};

/// The name of the demo's run, in a journal that holds no other.
const RUN: &str = "demo";

/// More events than any demo has.
const MOST_EVENTS: usize = 100_000;

/// See a whole task: a small project with a bug, a recorded model, real tools.
///
/// A small Python project with failing tests is unpacked into a temporary directory, and a model is asked to fix it. The
/// model is a recording, so this needs no key, no network and no configuration; all else is real: the tools,
/// the edits, the test runs, the journal. With -m, the same is asked of your own model. In the end the tests
/// are run once more, and the exit code is 0 only if they pass.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// What to see: the task, or a review of the same project
    #[arg(value_enum, default_value_t = What::Task)]
    what: What,
    /// Do not wait where the recorded model would; without a terminal it never does
    #[arg(long)]
    fast: bool,
    /// Keep the project and its journal, and say where they are
    #[arg(long)]
    keep: bool,
    /// Kill the run with kill -9 while a command runs, and resume it
    #[arg(long, conflicts_with_all = ["json", "model"])]
    kill: bool,
    /// Print the events of the run as JSON Lines; the rest goes to stderr
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    gates: GateFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// A bug is found and fixed
    Task,
    /// The project is reviewed
    Review,
}

/// Shows it.
pub(crate) async fn demo(args: DemoArgs, process: &Process) -> Result<Exit, Failure> {
    let environment = &process.environment;
    let unpacked = unpack(&args, environment)?;
    if args.what == What::Review {
        return review(&args, &unpacked, process).await;
    }
    let project = unpacked.project();
    let before = check::run(&project, commands(process)).await?;
    let colour_errors = colour(environment, environment.terminals().stderr);
    output::error(&paint(&introduction(&args, &project, before), colour_errors));

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
    if exit == Exit::Cancelled {
        return Ok(exit);
    }

    let after = check::run(&project, commands(process)).await?;
    let (report, work) = look_back(&project, wall, environment)?;
    let changed = changes(&project, &report.map(|report| report.files_changed).unwrap_or_default());
    let own_model = args.model.model.as_deref();
    let summary = Summary { own_model, before, after, work, killed, changes: &changed };
    let fusee = own_name();
    let next = Next { fusee: &fusee, run: RUN, kept: args.keep.then_some(project.as_path()) };
    let lines = [vec![Line::new()], summary.lines(), next.lines()].concat();
    match args.json {
        true => output::error(&paint(&lines, colour_errors)),
        false => output::print(&paint(&lines, colour(environment, environment.terminals().stdout)))?,
    }
    Ok(match exit {
        Exit::Completed if !after.pass => Exit::Failed,
        exit => exit,
    })
}

/// A review of the project as it is unpacked, and how to go on with it.
async fn review(args: &DemoArgs, unpacked: &Unpacked, process: &Process) -> Result<Exit, Failure> {
    let colour = colour(&process.environment, process.environment.terminals().stderr);
    let plain = |text: &str| Line::of(Style::Plain, text);
    let model = args.model.model.as_deref().unwrap_or("a recording: no key, no network");
    let about = format!("{}, in {}", demo::NAME, unpacked.project().display());
    let lines = [
        heading("fusee demo review"),
        row("project", plain(&about)),
        row("model", plain(model)),
        Line::new(),
    ];
    output::error(&paint(&lines, colour));
    perform(run_line(args, unpacked), process).await
}

fn unpack(args: &DemoArgs, environment: &Environment) -> Result<Unpacked, Failure> {
    let live = environment.terminals().stderr && !args.fast && !args.json;
    let longest_wait_ms = match (live, args.kill) {
        (true, _) => u64::MAX,
        // So that there is a run left to be killed, however slow the killer is.
        (false, true) => 200,
        (false, false) => 0,
    };
    let temporary = environment.variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    // The last part of an id is chance, which is all that a new directory's name needs.
    let id = clock::new_run_id()?;
    let directory = demo::new_directory(&temporary, id.as_str().rsplit('-').next().unwrap_or_default());
    Unpacked::make(directory.clone(), longest_wait_ms, args.keep).map_err(|error| {
        Failure::failed(format!("cannot unpack the demo into {}: {error}", directory.display()))
            .help("name another place with TMPDIR")
    })
}

/// Our own commands run free; the summary and the events say so.
fn commands(process: &Process) -> CommandSettings {
    let variables = process.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
    CommandSettings {
        keeper: process.keeper.clone(),
        environment: fusee_engine::tools::Environment::allowed(variables),
        ..CommandSettings::default()
    }
}

fn introduction(args: &DemoArgs, project: &Path, before: check::Tests) -> Vec<Line> {
    let plain = |text: &str| Line::of(Style::Plain, text);
    let model = match &args.model.model {
        Some(name) => name,
        None => "a recording: no key, no network; sandbox off, since every command in it is ours",
    };
    let tests = Line::of(Style::Bad, &before.is()).and(Style::Plain, &format!(" ({})", check::COMMAND));
    vec![
        heading("fusee demo"),
        row("project", plain(&format!("{}, in {}", demo::NAME, project.display()))),
        row("tests", tests),
        row("model", plain(model)),
        Line::new(),
    ]
}

/// What a user would type for this run.
fn run_line(args: &DemoArgs, unpacked: &Unpacked) -> Vec<OsString> {
    let command = if args.what == What::Review { "review" } else { "run" };
    let mut line: Vec<OsString> = vec![command.into(), "-C".into(), unpacked.project().into()];
    let mut flag =
        |name: &str, value: Option<OsString>| line.extend(value.into_iter().flat_map(|it| [name.into(), it]));
    flag("--run-id", Some(RUN.into()));
    match &args.model.model {
        Some(model) => {
            flag("-m", Some(model.into()));
            flag("--base-url", args.model.base_url.as_ref().map(Into::into));
            flag("--api", args.model.api.and_then(word));
            flag("--approve", args.gates.approve.and_then(word));
            flag("--sandbox", args.gates.sandbox.and_then(word));
        }
        None => {
            let mut model = OsString::from("script:");
            model.push(if args.what == What::Review { unpacked.review() } else { unpacked.recording() });
            flag("-m", Some(model));
            // All that the recording needs is said here, so that no configuration of the user's changes it.
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
    if args.what == What::Task {
        line.push("--".into());
        line.push(demo::REQUEST.into());
    }
    line
}

fn word(value: impl ValueEnum) -> Option<OsString> {
    value.to_possible_value().map(|value| value.get_name().into())
}

/// Does what this command line says, in this process.
async fn perform(line: Vec<OsString>, process: &Process) -> Result<Exit, Failure> {
    let typed = arguments::read(std::iter::once("fusee".into()).chain(line));
    let typed = typed.map_err(|_| Failure::failed("the demo's own command line was not understood"))?;
    Box::pin(super::perform(typed, process)).await
}

/// What the journal says of the run.
fn look_back(
    project: &Path,
    wall: Duration,
    environment: &Environment,
) -> Result<(Option<TaskReport>, Work), Failure> {
    let journal = Project::find(Some(project), environment)?.journal_with_runs()?;
    let (mut report, mut work) = (None, Work { wall, ..Work::default() });
    for stamped in journal.events(&run_id()?, 0, u64::MAX, MOST_EVENTS)? {
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

fn run_id() -> Result<RunId, Failure> {
    RUN.parse().map_err(Failure::failed)
}

/// How the user called us, so that what we print can be typed.
fn own_name() -> String {
    let name = std::env::args_os().next().map(|name| name.to_string_lossy().into_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "fusee".to_owned())
}

fn colour(environment: &Environment, terminal: bool) -> bool {
    terminal && environment.text("TERM") != Some("dumb") && environment.variable("NO_COLOR").is_none()
}
