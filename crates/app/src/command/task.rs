//! `fusee task`: a workflow, given as text, as a file or by its name.

mod plan;
mod source;
mod told;

use std::sync::Arc;

use clap::Args;
use fusee_engine::lang::{Limits, Machine, Program};
use fusee_engine::run::{self, Exit, RunOutcome, Settings, Work, Workflow};
use fusee_engine::task_system::{Reason, TaskError, TaskResult};

use super::Process;
use crate::arguments::shared::{GateFlags, LimitFlags, ModelFlags, NewRun, Place};
use crate::choice::Choice;
use crate::config::Config;
use crate::face::{Plan, Show};
use crate::failure::Failure;
use crate::mcp;
use crate::project::Project;
use crate::work::{self, Confinement};
use crate::{clock, output};

/// Run a workflow: a program of tasks.
///
/// TASK is a workflow in parentheses, the path of a `.fusee` file, the name of a registered workflow, or `-` for
/// stdin. It is checked as a whole before anything is spent; every task and tool call is a step of the journal, so a
/// workflow that is killed or cancelled goes on with `fusee resume`. Its value goes to stdout, everything else to
/// stderr. With TASK, `--help` shows its parameters.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct TaskArgs {
    /// The workflow
    #[arg(value_name = "TASK")]
    task: Option<String>,
    /// Its parameters
    #[arg(value_name = "KEY=VALUE")]
    inputs: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Print the task result as one JSON object
    #[arg(long)]
    json: bool,
    /// Run nothing: show every call it makes, with the size of each prompt that is known
    #[arg(long)]
    dry_run: bool,
    /// Tell of every effect on stderr as it happens, with its place in the text
    #[arg(long)]
    trace: bool,
    /// Show this help; after TASK, its parameters
    #[arg(short, long)]
    help: bool,
    #[command(flatten)]
    name: NewRun,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    gates: GateFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs a task.
pub(crate) async fn task(args: TaskArgs, process: &Process) -> Result<Exit, Failure> {
    let Some(named) = args.task.as_deref() else {
        return told::own_help(args.help);
    };
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let checked = match source::checked(named, &project, process)? {
        Ok(checked) => checked,
        Err(problems) => return told::refused(args.json, &problems),
    };
    checked.warn();
    if args.help {
        return told::parameters(&checked);
    }
    let inputs = match source::inputs(&args.inputs, &checked.program) {
        Ok(inputs) => inputs,
        Err(message) => return told::wrong_inputs(args.json, &message),
    };
    if args.dry_run {
        return plan::show(&checked, &inputs, args.json);
    }
    if let Err(problems) = Machine::start(&checked.program, &inputs, Limits::default()) {
        let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        return told::wrong_inputs(args.json, &messages.join("; "));
    }
    let work = Workflow { inputs, ..checked.workflow.clone() };
    run_workflow(args, &project, &checked.program, work, process).await
}

async fn run_workflow(
    args: TaskArgs,
    project: &Project,
    program: &Arc<Program>,
    work: Workflow,
    process: &Process,
) -> Result<Exit, Failure> {
    let environment = &process.environment;
    let flags = [args.model.values(), args.gates.values(), args.limits.values()].concat();
    let config = Config::gather(Some(&project.config_file()), environment, flags)?;
    let show = Show::for_result(args.json, &config, environment);
    show.warn(&config);
    // A workflow of tools and arithmetic needs nobody to answer.
    let choice = if config.text("model").is_some() || source::asks_a_model(program, &work) {
        Choice::make(&config, environment).await?
    } else {
        Choice::nobody()
    };
    let confine = config.confine(environment);
    let confinement = Confinement::of(config.sandbox(), &confine, &project.directory, process).await;
    let servers = mcp::connect(&config, &project.directory, process).await;
    let settings = Settings {
        mcp: servers.offered.clone(),
        base_url: choice.settings.base_url.clone(),
        wire: choice.settings.wire,
        traits: choice.settings.traits,
        price: choice.price,
        options: choice.options(&config),
        limits: choice.limits(&config),
        approve: config.approve(),
        rules: confinement.rules(&config),
        sandbox: config.sandbox(),
        confine,
        sandbox_state: confinement.state.to_owned(),
        commands_settled: confinement.settled,
        work: Work::Workflow(Box::new(work)),
        ..Settings::new(request(&args), choice.name.clone(), &project.directory)
    };
    let model = choice.open(None)?;
    let journal = project.open_journal(config.journal())?;
    let mut resources = servers.given_to(work::resources(journal, model, &confinement, &show, process));
    if args.trace {
        resources.trace = Some(Arc::new(|line| output::error(&format!("{line}\n"))));
    }
    let id = args.name.run_id.map_or_else(clock::new_run_id, Ok)?;
    confinement.warn(&show);
    let plan = Plan::of(&settings);
    let running = run::start(&id, settings, resources).await?;
    let (exit, outcome) = work::see_to_its_end(running, &show, plan, &[]).await?;
    if args.json {
        output::print(&format!("{}\n", serde_json::to_string(&result_of(outcome)).unwrap_or_default()))?;
    }
    if exit == Exit::Cancelled {
        output::error(&format!("`fusee resume {id}` goes on with it\n"));
    }
    Ok(exit)
}

/// What the run is called in listings: what was typed.
fn request(args: &TaskArgs) -> String {
    let words = args.task.iter().chain(&args.inputs).map(String::as_str);
    words.collect::<Vec<_>>().join(" ")
}

fn result_of(outcome: Option<RunOutcome>) -> TaskResult {
    let failed =
        |message: String| TaskResult::failed(&TaskError::failure(Reason::UnexpectedError, message), "");
    match outcome {
        Some(RunOutcome::Ended(ended)) => match ended.result {
            Some(result) => *result,
            None => TaskResult::complete(ended.answer),
        },
        Some(RunOutcome::Stopped(stop)) => failed(stop.to_string()),
        Some(RunOutcome::Lost(cause)) => failed(cause),
        None => failed("the workflow was left before its end".to_owned()),
    }
}
