//! `fusee task`: runs a template, a workflow, a tool, or the template that matches a request in plain words.

mod dry_run;
mod forecast;
mod messages;
mod slash_task;
pub(crate) mod template;
mod tool;
mod workflow_source;

use clap::{Args, ValueEnum};
use fusee::engine::lang::{EvaluationLimits, Machine};
use fusee::engine::run::{ExitStatus, JsonOutput, RunKind, RunOutcome, WorkflowRun};
use fusee::engine::task_system::{ExecutionPath, Reason, TaskError, TaskResult};
use fusee::engine::workflow::standard_tools;
use serde_json::Value as Json;

use super::run::{self, ContinuedRun, Launched, RunArgs};
use super::run_setup::RunTarget;
use crate::command::run_session;
use crate::config::flags::{ApprovalFlags, DetachFlag, DirectoryFlag, LimitFlags, ModelFlags, RunIdFlag};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;

pub(crate) use slash_task::{ReadyTask, TaskPreview, preview, ready, resolve};

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
    directory: DirectoryFlag,
    /// Print the task result as one JSON object: status, content, notes
    #[arg(long)]
    json: bool,
    /// How to print a workflow's value or a template's answer: `text` (strings bare, everything else as S-expressions)
    /// or `json`, for programs
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ContentFormat::Text, conflicts_with = "json")]
    format: ContentFormat,
    /// Run nothing; print every call the task contains, with the size of each known prompt
    #[arg(long)]
    dry_run: bool,
    /// Log every effect to stderr as it happens, with its source position
    #[arg(long)]
    trace: bool,
    /// Print help; after TASK, print its parameters
    #[arg(short, long)]
    help: bool,
    #[command(flatten)]
    pub(crate) background_run: DetachFlag,
    #[command(flatten)]
    name: RunIdFlag,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    approval: ApprovalFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    engine: crate::config::flags::NewRunEngineFlags,
}

/// How the content of a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ContentFormat {
    /// As a person reads it.
    #[default]
    Text,
    /// As one JSON value.
    Json,
}

/// A task as typed, and how its result is printed.
struct TaskLine {
    task: Option<String>,
    inputs: Vec<String>,
    dry_run: bool,
    trace: bool,
    help: bool,
    /// Events of `fusee run`, or the result of `fusee task`.
    form: JsonOutput,
    format: ContentFormat,
    /// Whether the workflow text was generated for a named tool.
    direct_tool: bool,
}

/// Runs the command. With `--json` a result is printed even if the task could not start.
pub(crate) async fn task(args: TaskArgs, process: &Process) -> Result<ExitStatus, CliError> {
    #[cfg(feature = "restate")]
    let engine = args.engine;
    let TaskArgs {
        task,
        inputs,
        directory,
        json,
        format,
        dry_run,
        trace,
        help,
        background_run,
        name,
        model,
        approval,
        limits,
        ..
    } = args;
    let named = task.clone().unwrap_or_default();
    let (form, direct_tool) = (JsonOutput::Result, false);
    let line = TaskLine { task, inputs, dry_run, trace, help, form, format, direct_tool };
    let run = RunArgs {
        directory,
        json,
        background_run,
        name,
        model,
        approval,
        limits,
        #[cfg(feature = "restate")]
        engine,
        ..RunArgs::default()
    };
    let done = match Project::find(run.directory.directory.as_deref(), &process.environment) {
        Ok(project) => begun(line, run, None, project, process).await,
        Err(failure) => Err(failure),
    };
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

/// Runs the task that a `fusee run` command line resolved to: the first word names it.
pub(super) async fn of_run(
    args: RunArgs,
    words: Vec<String>,
    earlier: Option<ContinuedRun>,
    project: Project,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let (flags, words): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|word| ["--help", "-h", "--dry-run"].contains(&word.as_str()));
    let mut words = words.into_iter();
    let line = TaskLine {
        task: words.next(),
        inputs: words.collect(),
        dry_run: flags.iter().any(|flag| flag == "--dry-run"),
        trace: false,
        help: flags.iter().any(|flag| flag != "--dry-run"),
        form: JsonOutput::Events,
        format: ContentFormat::Text,
        direct_tool: false,
    };
    begun(line, args, earlier, project, process).await
}

async fn begun(
    mut line: TaskLine,
    run: RunArgs,
    earlier: Option<ContinuedRun>,
    project: Project,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    // Refusals are JSON only where the result is.
    let json = run.json && line.form == JsonOutput::Result;
    let Some(named) = line.task.clone() else {
        return messages::own_help(line.help);
    };
    let loaded = template::gather(&project, process);
    if !workflow_source::is_workflow(&named, &project, process) {
        match template::asked(&named, &line.inputs, &loaded, &workflow_source::names(&project, process)) {
            Ok(template::TemplateInvocation::Workflow(text)) => line.task = Some(text),
            Ok(template::TemplateInvocation::Tool(name)) => {
                if let Some(tool) = standard_tools().find(&name).filter(|_| line.help) {
                    return tool::help(tool.definition());
                }
                match template::tool_call(&name, &line.inputs) {
                    Ok(text) => line.task = Some(text),
                    Err(refusal) => return refusal.print_error(json),
                }
                line.direct_tool = true;
                line.inputs.clear();
            }
            Ok(template::TemplateInvocation::Template { found, words, guessed }) => {
                if guessed {
                    stdio::error(&format!("{}\n", template::guess(&found)));
                }
                if line.help {
                    return template::help(&found);
                }
                let work = match template::work(&found, &words) {
                    Ok(work) => work,
                    Err(refusal) => return refusal.print_error(json),
                };
                if line.dry_run {
                    return template::dry_run(&found, &work, json, &project).await;
                }
                let task = ReadyTask {
                    title: line.title(),
                    work,
                    model: template::model(&found.template),
                    asks_a_model: true,
                    trace: line.trace,
                    loaded,
                    notes: Vec::new(),
                };
                return Box::pin(run_task(&line, run, task, earlier, project, process)).await;
            }
            Err(refusal) => return refusal.print_error(json),
        }
    }
    let named = line.task.as_deref().unwrap_or_default();
    let checked = match workflow_source::checked(named, &project, &loaded, process)? {
        Ok(checked) => checked,
        Err(problems) => return messages::refused(json, &problems),
    };
    checked.warn();
    if line.help {
        return messages::parameters(&checked);
    }
    let inputs = match workflow_source::inputs(&line.inputs, &checked.program) {
        Ok(inputs) => inputs,
        Err(message) => return messages::wrong_inputs(json, &message),
    };
    if line.dry_run {
        return dry_run::show(&checked, &inputs, json, &loaded, &project).await;
    }
    if let Err(problems) = Machine::start(&checked.program, &inputs, EvaluationLimits::default()) {
        let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        return messages::wrong_inputs(json, &messages.join("; "));
    }
    let work = WorkflowRun { inputs, ..checked.workflow.clone() };
    let task = ReadyTask {
        title: line.title(),
        asks_a_model: workflow_source::asks_a_model(&checked.program, &work),
        work: RunKind::Workflow(Box::new(work)),
        model: None,
        trace: line.trace,
        loaded,
        notes: Vec::new(),
    };
    Box::pin(run_task(&line, run, task, earlier, project, process)).await
}

impl TaskLine {
    /// The title of the run in listings: the task and parameters as typed.
    fn title(&self) -> String {
        let words = self.task.iter().chain(&self.inputs).map(String::as_str);
        words.collect::<Vec<_>>().join(" ")
    }
}

async fn run_task(
    line: &TaskLine,
    mut args: RunArgs,
    task: ReadyTask,
    earlier: Option<ContinuedRun>,
    project: Project,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let json = args.json && line.form == JsonOutput::Result;
    // Stdout carries nothing but the value.
    args.json |= line.format == ContentFormat::Json;
    let target = RunTarget::Task(Box::new(task));
    let Launched { started, ui_options } =
        Box::pin(run::launch(args, target, earlier, line.form, project, process)).await?;
    let id = started.running.id().clone();
    let watched = run_session::watch(started, &ui_options, &[]).await;
    let (exit, outcome) = watched.map_err(CliError::after_start)?;
    if json {
        let mut result = result_of(outcome);
        if line.direct_tool {
            result.note("execution_path", ExecutionPath::Tool);
        }
        print_result(result)?;
    } else if line.format == ContentFormat::Json && exit == ExitStatus::Completed {
        let result = result_of(outcome);
        let value = result.parsed_content.unwrap_or(Json::String(result.content));
        stdio::print_json(&format!("{value:#}\n"))?;
    }
    if exit == ExitStatus::Cancelled {
        stdio::error(&format!("run `fusee resume {id}` to continue it\n"));
    }
    Ok(exit)
}

/// Prints a result as JSON, with all notes that a result always has.
fn print_result(mut result: TaskResult) -> Result<(), CliError> {
    let absent =
        [("template_used", Json::Null), ("context_source", "none".into()), ("context_files_count", 0.into())];
    for (name, value) in absent {
        result.notes.entry(name).or_insert(value);
    }
    stdio::print_json(&format!("{}\n", serde_json::to_string(&result).unwrap_or_default()))
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
