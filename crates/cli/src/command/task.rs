//! `fusee task`: runs a template, a workflow, a tool, or the template that matches a request in plain words.

mod dry_run;
mod messages;
mod slash_task;
pub(crate) mod template;
mod tool;
mod workflow_source;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fusee_engine::lang::{EvaluationLimits, Machine};
use fusee_engine::run::{self, ExitStatus, JsonOutput, RunKind, RunOutcome, RunSpec, WorkflowRun};
use fusee_engine::task_system::{ExecutionPath, Reason, TaskError, TaskResult};
use fusee_engine::template::{LoadedTemplates, RegisteredTemplate};
use fusee_engine::workflow::standard_tools;
use serde_json::Value as Json;

use super::Process;
use super::run::RunArgs;
use crate::cli::clock;
use crate::cli::error::CliError;
use crate::cli::flags::{DirectoryFlag, GateFlags, LimitFlags, ModelFlags, NewRun};
use crate::command::run_session::{self, ActiveSandbox};
use crate::config::{Config, Value};
use crate::model_selection::ModelSelection;
use crate::project::Project;
use crate::project::mcp_servers;
use crate::project::template_loading;
use crate::ui::stdio;
use crate::ui::{RunHeader, UiOptions};

pub(crate) use slash_task::{ReadyTask, ready};

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
    place: DirectoryFlag,
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
pub(crate) async fn task(args: TaskArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let (json, named) = (args.json, args.task.clone().unwrap_or_default());
    let done = begun(args, process).await;
    if let (Err(failure), true) = (&done, json) {
        let reason = match failure.exit {
            ExitStatus::Usage => Reason::ConfigurationError,
            _ => Reason::UnexpectedError,
        };
        let error = TaskError::invalid(reason, failure.message.trim_end());
        template::print_refusal(&error, &named, ExecutionPath::Template)?;
    }
    done
}

async fn begun(args: TaskArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let Some(named) = args.task.clone() else {
        return messages::own_help(args.help);
    };
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let mut args = args;
    let loaded = template::gather(&project, process);
    if !workflow_source::is_workflow(&named, &project, process) {
        match template::asked(&named, &args.inputs, &loaded, &workflow_source::names(&project, process)) {
            Ok(template::TemplateInvocation::Workflow(text)) => args.task = Some(text),
            Ok(template::TemplateInvocation::Tool(name)) => {
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
            Ok(template::TemplateInvocation::Template { found, words, guessed }) => {
                if guessed {
                    stdio::error(&format!("{}\n", template::guess(&found)));
                }
                return run_template(args, &project, &found, &words, loaded, process).await;
            }
            Err(refusal) => return refusal.tell(args.json),
        }
    }
    let named = args.task.as_deref().unwrap_or_default();
    let checked = match workflow_source::checked(named, &project, &loaded, process)? {
        Ok(checked) => checked,
        Err(problems) => return messages::refused(args.json, &problems),
    };
    checked.warn();
    if args.help {
        return messages::parameters(&checked);
    }
    let inputs = match workflow_source::inputs(&args.inputs, &checked.program) {
        Ok(inputs) => inputs,
        Err(message) => return messages::wrong_inputs(args.json, &message),
    };
    if args.dry_run {
        return dry_run::show(&checked, &inputs, args.json);
    }
    if let Err(problems) = Machine::start(&checked.program, &inputs, EvaluationLimits::default()) {
        let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        return messages::wrong_inputs(args.json, &messages.join("; "));
    }
    let work = WorkflowRun { inputs, ..checked.workflow.clone() };
    let asks = workflow_source::asks_a_model(&checked.program, &work);
    run_work(args, &project, RunKind::Workflow(Box::new(work)), asks, None, loaded, process).await
}

async fn run_template(
    args: TaskArgs,
    project: &Project,
    found: &RegisteredTemplate,
    words: &[String],
    loaded: LoadedTemplates,
    process: &Process,
) -> Result<ExitStatus, CliError> {
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
    work: RunKind,
    asks_a_model: bool,
    model: Option<String>,
    loaded: LoadedTemplates,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let mut flags = [args.model.values(), args.gates.values(), args.limits.values()].concat();
    if let (None, Some(model)) = (&args.model.model, model) {
        // The template's own model, which a flag overrides.
        flags.push(("model", Value::Text(model)));
    }
    let config = Config::gather(Some(&project.config_file()), environment, flags)?;
    let show = match args.events {
        true => UiOptions::new(true, &config, environment),
        false => UiOptions::for_result(args.json, &config, environment),
    };
    show.warn(&config);
    let mut work = work;
    if let RunKind::Template(task) = &mut work {
        task.limits = config.given_limits();
    }
    // A workflow of tools and arithmetic needs no model.
    let choice = if config.text("model").is_some() || asks_a_model {
        ModelSelection::make(&config, environment).await?
    } else {
        ModelSelection::nobody()
    };
    let confine = config.confine(environment);
    let confinement = ActiveSandbox::of(config.sandbox(), &confine, &project.directory, process).await;
    let servers = mcp_servers::connect(&config, &project.directory, process).await;
    let settings = RunSpec {
        mcp: servers.offered.clone(),
        work,
        json_form: if args.of_run { JsonOutput::Events } else { JsonOutput::Result },
        record: args.record.as_ref().map(|file| environment.directory().join(file)),
        ..confinement.settings(request(&args), &choice, &config, confine, &project.directory)
    };
    let model = choice.open(settings.record.as_deref())?;
    let journal = project.open_journal(config.journal())?;
    let mut resources =
        servers.attach_to(run_session::resources(journal, model, &confinement, &show, process));
    resources.templates = template_loading::for_run(loaded, project);
    if args.trace {
        resources.trace = Some(Arc::new(|line| stdio::error(&format!("{line}\n"))));
    }
    let id = args.name.run_id.map_or_else(clock::new_run_id, Ok)?;
    confinement.warn(&show);
    let plan = RunHeader::of(&settings);
    let running = run::start(&id, settings, resources).await?;
    let (exit, outcome) = run_session::watch_to_end(running, &show, plan, &[]).await?;
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
        stdio::print(&format!("{}\n", serde_json::to_string(&result).unwrap_or_default()))?;
    }
    if exit == ExitStatus::Cancelled {
        stdio::error(&format!("run `fusee resume {id}` to continue it\n"));
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
    let failed = |message: String| TaskError::failure(Reason::UnexpectedError, message).to_result("");
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
