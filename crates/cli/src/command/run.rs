//! `fusee run`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use fusee_engine::agent::ReviewPolicy;
use fusee_engine::agent::flow::FlowSettings;
use fusee_engine::dispatch;
use fusee_engine::journal::RunId;
use fusee_engine::review::CodeReview;
use fusee_engine::run::{self, ExitStatus, PromptText, RunDeps, RunSpec};

use super::Process;
use super::task::{self, TaskArgs};
use crate::cli::clock;
use crate::cli::environment::Environment;
use crate::cli::error::CliError;
use crate::cli::flags::{DirectoryFlag, FlowFlags, GateFlags, LimitFlags, ModelFlags, NewRun};
use crate::command::run_session::{self, ActiveSandbox};
use crate::config::Config;
use crate::model_selection::{self, ModelSelection};
use crate::project::Project;
use crate::project::find_run;
use crate::project::mcp_servers;
use crate::project::template_loading;
use crate::ui::benchmark;
use crate::ui::{RunHeader, UiOptions};

/// Maximum size of a request; a longer one is a mistake, such as a file piped in by accident.
const REQUEST_BYTES: u64 = 1 << 20;

/// Run one task in this directory.
///
/// The model works with tools until it has an answer: it reads, searches, edits and runs commands. Every step
/// is journaled, so a killed run can be continued with `fusee resume`. The answer goes to stdout, everything
/// else to stderr.
#[derive(Args, Default)]
pub(crate) struct RunArgs {
    /// The task, in one argument; `-` reads it from stdin
    #[arg(value_name = "REQUEST")]
    pub(crate) request: Option<String>,
    #[command(flatten)]
    pub(crate) place: DirectoryFlag,
    /// Additional context for the task
    #[arg(long, value_name = "TEXT")]
    pub(crate) background: Option<String>,
    /// Continue the conversation of an earlier run, with its model unless another is named [default: the
    /// newest finished run in this directory]
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub(crate) continues: Option<String>,
    /// Prompt file for the task: sections, some closed until the model opens them (see `fusee prompt
    /// render`); a continued run keeps its prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,
    /// Read-only review: tools that would change something need approval or are refused
    #[arg(long)]
    pub(crate) review: bool,
    /// JSON Schema file for the answer; an answer that does not match is requested once more
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Run this template instead of a request
    #[arg(long, value_name = "NAME", conflicts_with_all = ["request", "background", "continues", "prompt"])]
    pub(crate) template: Option<String>,
    /// Set a template input; can be repeated
    #[arg(short, long = "input", value_name = "KEY=VALUE", requires = "template")]
    pub(crate) inputs: Vec<String>,
    /// Print events as JSON Lines instead of the answer
    #[arg(long)]
    pub(crate) json: bool,
    /// Record the model's replies into a cassette, for `--model replay:FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) name: NewRun,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    #[command(flatten)]
    pub(crate) flow: FlowFlags,
    #[command(flatten)]
    pub(crate) gates: GateFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// Detects runs that are tasks: a named template, or a request that begins with `/task` or a parenthesis.
fn task_args(args: RunArgs) -> Result<Result<TaskArgs, RunArgs>, CliError> {
    let words = match (&args.template, args.request.as_deref().map(str::trim_start)) {
        (Some(name), _) => std::iter::once(name).chain(&args.inputs).cloned().collect(),
        (None, Some(request)) if request.starts_with('(') => vec![request.to_owned()],
        (None, Some(request)) => match request.strip_prefix("/task") {
            Some(line) if line.trim_start().starts_with('(') => vec![line.trim().to_owned()],
            Some(line) if line.is_empty() || line.starts_with(char::is_whitespace) => {
                dispatch::split(line).map_err(|problem| CliError::usage(format!("`{request}`: {problem}")))?
            }
            _ => return Ok(Err(args)),
        },
        (None, None) => return Ok(Err(args)),
    };
    Ok(Ok(TaskArgs::of_run(args, words)))
}

/// The run that is continued.
struct ContinuedRun {
    run: RunId,
    settings: RunSpec,
}

/// Runs the command.
pub(crate) async fn run(args: RunArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let args = match task_args(args)? {
        Ok(task) => return task::task(task, process).await,
        Err(args) => args,
    };
    run_as(args, None, process).await
}

/// Runs a task, as the code reviewer if `code_review` is given.
pub(crate) async fn run_as(
    args: RunArgs,
    code_review: Option<CodeReview>,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let project = Project::find(args.place.directory.as_deref(), environment)?;
    let (continues, words) = continues(args.continues.as_deref(), args.request.as_deref(), &project)?;
    let request = request(words, environment)?;
    let flags = [args.model.values(), args.flow.values(), args.gates.values(), args.limits.values()].concat();
    let agent = args.flow.agent.as_deref();
    let config = Config::gather_for(Some(&project.config_file()), agent, environment, flags)?;
    config.check_tools()?;
    let benchmark = benchmark::asked(args.flow.benchmark, continues.is_some(), &config, environment);
    let show = UiOptions::new(args.json, &config, environment).for_benchmark(benchmark);
    show.warn(&config);
    let choice = match &continues {
        Some(earlier) => ModelSelection::continued(&earlier.settings, &config, environment)?,
        None => ModelSelection::make(&config, environment).await?,
    };
    let confine = config.confine(environment);
    let confinement = ActiveSandbox::of(config.sandbox(), &confine, &project.directory, process).await;
    let prompt = match args.prompt {
        Some(file) => Some(prompt_text(&environment.directory().join(file))?),
        None => match continues.as_ref().and_then(|earlier| earlier.settings.prompt.clone()) {
            None => config.prompt_file().map(|file| prompt_text(&file)).transpose()?,
            earlier => earlier,
        },
    };
    let output_schema = args.output_schema.map(|file| schema(&environment.directory().join(file)));
    let servers = mcp_servers::connect(&config, &project.directory, process).await;
    let settings = RunSpec {
        mcp: servers.offered.clone(),
        prompt,
        review: match &code_review {
            // A reviewer never changes anything, so there is nothing to approve.
            Some(_) => Some(ReviewPolicy { require_approval: false, ..ReviewPolicy::default() }),
            None => args.review.then(|| config.restrictions()),
        },
        code_review,
        output_schema: output_schema.transpose()?,
        background: args.background,
        continues: continues.map(|earlier| earlier.run),
        flow: FlowSettings { benchmark, ..config.flow()? },
        record: args.record.map(|file| environment.directory().join(file)),
        ..confinement.settings(request, &choice, &config, confine, &project.directory)
    };
    let model = choice.open(settings.record.as_deref())?;
    let journal = project.open_journal(config.journal())?;
    let others = model_selection::stage_models(&settings, &config, environment)?;
    let resources =
        RunDeps { others, ..run_session::resources(journal, model, &confinement, &show, process) };
    let templates = template_loading::needed(&settings, &project, environment);
    let resources = RunDeps { templates, ..servers.attach_to(resources) };
    let id = args.name.run_id.map_or_else(clock::new_run_id, Ok)?;
    confinement.warn(&show);
    let plan = RunHeader::of(&settings);
    let show = show.with_phases(settings.flow.phase_log);
    let running = run::start(&id, settings, resources).await?;
    run_session::watch_run(running, &show, plan).await
}

fn schema(file: &Path) -> Result<serde_json::Value, CliError> {
    let wrong = |cause: &dyn std::fmt::Display| {
        CliError::usage(format!("cannot use output schema {}: {cause}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    serde_json::from_str(&text).map_err(|error| wrong(&error))
}

/// Reads a prompt file.
pub(crate) fn prompt_text(file: &Path) -> Result<PromptText, CliError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("cannot read prompt file {}: {error}", file.display())))?;
    Ok(PromptText {
        file: file.display().to_string(),
        text,
        fields: Default::default(),
        opened: Default::default(),
    })
}

/// The run to continue and the request. The value of `--continue` names a run if there is also a request or
/// such a run exists; otherwise it is the request.
fn continues<'a>(
    continued: Option<&'a str>,
    request: Option<&'a str>,
    project: &Project,
) -> Result<(Option<ContinuedRun>, Option<&'a str>), CliError> {
    let Some(word) = continued else { return Ok((None, request)) };
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let (run, request) = match (word, request) {
        ("", request) => (None, request),
        (name, Some(request)) => (Some(name), Some(request)),
        (word, None) if find_run::named(&journal, word).is_ok() => (Some(word), None),
        (word, None) => (None, Some(word)),
    };
    let row = match run {
        Some(name) => find_run::named(&journal, name)?,
        None => find_run::newest_ended(&journal, &project.directory, |_| true)?,
    };
    let settings = run::settings_of(&journal, &row.id)?;
    Ok((Some(ContinuedRun { run: row.id, settings }), request))
}

fn request(typed: Option<&str>, environment: &Environment) -> Result<String, CliError> {
    let text = match typed {
        Some("-") => stdin()?,
        Some(words) => words.to_owned(),
        None => {
            let failure = CliError::usage("missing REQUEST");
            return Err(failure.help(if environment.terminals().stdin {
                "pass it as one argument: fusee run 'fix the failing test'"
            } else {
                "pass it as one argument: fusee run 'fix the failing test'; or read it from stdin: fusee run -"
            }));
        }
    };
    if text.trim().is_empty() {
        return Err(CliError::usage("the request is empty"));
    }
    Ok(text)
}

fn stdin() -> Result<String, CliError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(REQUEST_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| CliError::usage(format!("cannot read the request from stdin: {error}")))?;
    if text.len() as u64 > REQUEST_BYTES {
        return Err(CliError::usage("the request on stdin is longer than 1 MiB")
            .help("put the content in a file of the project and name it in the request"));
    }
    Ok(text)
}
