//! `fusee task`: runs a template, a workflow, a tool, or the template that matches a request in plain words.

mod plan;
mod ready;
mod source;
pub(crate) mod template;
mod told;
mod tool;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fusee_engine::lang::{Limits, Machine};
use fusee_engine::run::{self, Exit, JsonForm, RunOutcome, Settings, Work, Workflow};
use fusee_engine::task_system::{ExecutionPath, Reason, TaskError, TaskResult};
use fusee_engine::template::{Loaded, Registered};
use fusee_engine::workflow::standard_tools;
use serde_json::Value as Json;

use super::Process;
use super::run::RunArgs;
use crate::arguments::shared::{GateFlags, LimitFlags, ModelFlags, NewRun, Place};
use crate::choice::Choice;
use crate::config::{Config, Value};
use crate::face::{Plan, Show};
use crate::failure::Failure;
use crate::mcp;
use crate::project::Project;
use crate::work::{self, Confinement};
use crate::{clock, output, templates};

pub(crate) use ready::{Ready, ready};

/// Run a template, a workflow or a tool.
///
/// TASK is the name of a template, a workflow in parentheses, the path of a `.fusee` file, the name of a
/// registered workflow, a tool, a request in plain words that clearly matches one template, or `-` for stdin.
/// It is checked completely before anything is spent. Every task and tool call is a step in the journal, so a
/// killed or cancelled workflow can be continued with `fusee resume`. The result goes to stdout, everything
/// else to stderr. After TASK, `--help` shows its parameters.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct TaskArgs {
    /// Template, workflow or tool to run
    #[arg(value_name = "TASK")]
    task: Option<String>,
    /// Parameters of the task
    #[arg(value_name = "KEY=VALUE")]
    inputs: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Print the task result as one JSON object
    #[arg(long)]
    json: bool,
    /// Run nothing; print every call the task contains, with the size of each known prompt
    #[arg(long)]
    dry_run: bool,
    /// Log every effect to stderr as it happens, with its source position
    #[arg(long)]
    trace: bool,
    /// Whether to print events like `fusee run --json` instead of the result
    #[arg(skip)]
    events: bool,
    /// Whether the task came from `fusee run`
    #[arg(skip)]
    of_run: bool,
    /// Cassette to record into, as for `fusee run --record`
    #[arg(skip)]
    record: Option<PathBuf>,
    /// Whether the workflow text was generated for a named tool
    #[arg(skip)]
    direct_tool: bool,
    /// Print help; after TASK, print its parameters
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

impl TaskArgs {
    /// The task that a `fusee run` command line resolved to: the first word names it.
    pub(crate) fn of_run(args: RunArgs, words: Vec<String>) -> Self {
        let (flags, words): (Vec<String>, Vec<String>) =
            words.into_iter().partition(|word| ["--help", "-h", "--dry-run"].contains(&word.as_str()));
        let mut words = words.into_iter();
        Self {
            task: words.next(),
            inputs: words.collect(),
            place: args.place,
            json: false,
            dry_run: flags.iter().any(|flag| flag == "--dry-run"),
            trace: false,
            events: args.json,
            of_run: true,
            record: args.record,
            direct_tool: false,
            help: flags.iter().any(|flag| flag != "--dry-run"),
            name: args.name,
            model: args.model,
            gates: args.gates,
            limits: args.limits,
        }
    }
}

/// Runs the command. With `--json` a result is printed even if the task could not start.
pub(crate) async fn task(args: TaskArgs, process: &Process) -> Result<Exit, Failure> {
    let (json, named) = (args.json, args.task.clone().unwrap_or_default());
    let done = begun(args, process).await;
    if let (Err(failure), true) = (&done, json) {
        let reason = match failure.exit {
            Exit::Usage => Reason::ConfigurationError,
            _ => Reason::UnexpectedError,
        };
        let error = TaskError::invalid(reason, failure.message.trim_end());
        template::print_refusal(&error, &named, ExecutionPath::Template)?;
    }
    done
}

async fn begun(args: TaskArgs, process: &Process) -> Result<Exit, Failure> {
    let Some(named) = args.task.clone() else {
        return told::own_help(args.help);
    };
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let mut args = args;
    let loaded = template::gather(&project, process);
    if !source::is_workflow(&named, &project, process) {
        match template::asked(&named, &args.inputs, &loaded, &source::names(&project, process)) {
            Ok(template::Asked::Workflow(text)) => args.task = Some(text),
            Ok(template::Asked::Tool(name)) => {
                if let Some(tool) = standard_tools().find(&name).filter(|_| args.help) {
                    return tool::help(tool.definition());
                }
                match template::tool_call(&name, &args.inputs) {
                    Ok(text) => args.task = Some(text),
                    Err(refusal) => return refusal.tell(args.json),
                }
                args.direct_tool = true;
                args.inputs.clear();
            }
            Ok(template::Asked::Template { found, words, guessed }) => {
                if guessed {
                    output::error(&format!("{}\n", template::guess(&found)));
                }
                return run_template(args, &project, &found, &words, loaded, process).await;
            }
            Err(refusal) => return refusal.tell(args.json),
        }
    }
    let named = args.task.as_deref().unwrap_or_default();
    let checked = match source::checked(named, &project, &loaded, process)? {
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
    let asks = source::asks_a_model(&checked.program, &work);
    run_work(args, &project, Work::Workflow(Box::new(work)), asks, None, loaded, process).await
}

async fn run_template(
    args: TaskArgs,
    project: &Project,
    found: &Registered,
    words: &[String],
    loaded: Loaded,
    process: &Process,
) -> Result<Exit, Failure> {
    if args.help {
        return template::help(found);
    }
    let work = match template::work(found, words) {
        Ok(work) => work,
        Err(refusal) => return refusal.tell(args.json),
    };
    if args.dry_run {
        return template::dry_run(found, &work, args.json, project).await;
    }
    let model = template::model(&found.template);
    run_work(args, project, work, true, model, loaded, process).await
}

async fn run_work(
    args: TaskArgs,
    project: &Project,
    work: Work,
    asks_a_model: bool,
    model: Option<String>,
    loaded: Loaded,
    process: &Process,
) -> Result<Exit, Failure> {
    let environment = &process.environment;
    let mut flags = [args.model.values(), args.gates.values(), args.limits.values()].concat();
    if let (None, Some(model)) = (&args.model.model, model) {
        // The template's own model, which a flag overrides.
        flags.push(("model", Value::Text(model)));
    }
    let config = Config::gather(Some(&project.config_file()), environment, flags)?;
    let show = match args.events {
        true => Show::new(true, &config, environment),
        false => Show::for_result(args.json, &config, environment),
    };
    show.warn(&config);
    let mut work = work;
    if let Work::Template(task) = &mut work {
        task.limits = config.given_limits();
    }
    // A workflow of tools and arithmetic needs no model.
    let choice = if config.text("model").is_some() || asks_a_model {
        Choice::make(&config, environment).await?
    } else {
        Choice::nobody()
    };
    let confine = config.confine(environment);
    let confinement = Confinement::of(config.sandbox(), &confine, &project.directory, process).await;
    let servers = mcp::connect(&config, &project.directory, process).await;
    let settings = Settings {
        mcp: servers.offered.clone(),
        work,
        json_form: if args.of_run { JsonForm::Events } else { JsonForm::Result },
        record: args.record.as_ref().map(|file| environment.directory().join(file)),
        ..confinement.settings(request(&args), &choice, &config, confine, &project.directory)
    };
    let model = choice.open(settings.record.as_deref())?;
    let journal = project.open_journal(config.journal())?;
    let mut resources = servers.given_to(work::resources(journal, model, &confinement, &show, process));
    resources.templates = templates::for_run(loaded, project);
    if args.trace {
        resources.trace = Some(Arc::new(|line| output::error(&format!("{line}\n"))));
    }
    let id = args.name.run_id.map_or_else(clock::new_run_id, Ok)?;
    confinement.warn(&show);
    let plan = Plan::of(&settings);
    let running = run::start(&id, settings, resources).await?;
    let (exit, outcome) = work::see_to_its_end(running, &show, plan, &[]).await?;
    if args.json {
        let mut result = result_of(outcome);
        if args.direct_tool {
            result.note("execution_path", ExecutionPath::Tool);
        }
        for (name, absent) in [
            ("template_used", Json::Null),
            ("context_source", "none".into()),
            ("context_files_count", 0.into()),
        ] {
            result.notes.entry(name).or_insert(absent);
        }
        output::print(&format!("{}\n", serde_json::to_string(&result).unwrap_or_default()))?;
    }
    if exit == Exit::Cancelled {
        output::error(&format!("run `fusee resume {id}` to continue it\n"));
    }
    Ok(exit)
}

/// The title of the run in listings: the task and parameters as typed.
fn request(args: &TaskArgs) -> String {
    let words = args.task.iter().chain(&args.inputs).map(String::as_str);
    words.collect::<Vec<_>>().join(" ")
}

/// The task result of a run.
pub(super) fn result_of(outcome: Option<RunOutcome>) -> TaskResult {
    let failed =
        |message: String| TaskResult::failed(&TaskError::failure(Reason::UnexpectedError, message), "");
    match outcome {
        Some(RunOutcome::Ended(ended)) => match ended.result {
            Some(result) => *result,
            None => TaskResult::complete(ended.answer),
        },
        Some(RunOutcome::Stopped(stop)) => failed(stop.to_string()),
        Some(RunOutcome::Lost(cause)) => failed(cause),
        None => failed("the workflow was interrupted before it ended".to_owned()),
    }
}
