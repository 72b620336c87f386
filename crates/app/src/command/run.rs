//! `fusee run`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use fusee_engine::agent::Restrictions;
use fusee_engine::dispatch;
use fusee_engine::flow::FlowSettings;
use fusee_engine::journal::RunId;
use fusee_engine::review::CodeReview;
use fusee_engine::run::{self, Exit, PromptText, Resources, Settings};

use super::Process;
use super::task::{self, TaskArgs};
use crate::arguments::shared::{FlowFlags, GateFlags, LimitFlags, ModelFlags, NewRun, Place};
use crate::benchmark;
use crate::choice::{self, Choice};
use crate::clock;
use crate::config::Config;
use crate::environment::Environment;
use crate::face::{Plan, Show};
use crate::failure::Failure;
use crate::mcp;
use crate::project::Project;
use crate::selection;
use crate::templates;
use crate::work::{self, Confinement};

/// A request longer than this is a mistake, such as a file piped in by accident.
const REQUEST_BYTES: u64 = 1 << 20;

/// Give a model one task in this directory.
///
/// The model works through tools until it has an answer: it reads, searches, edits, runs commands. Every step is
/// written to the journal, so a run that is killed goes on with `fusee resume`. The answer goes to stdout,
/// everything else to stderr.
#[derive(Args, Default)]
pub(crate) struct RunArgs {
    /// What is to be done; `-` reads it from stdin
    #[arg(value_name = "REQUEST")]
    pub(crate) request: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// What is good to know for it
    #[arg(long, value_name = "TEXT")]
    pub(crate) background: Option<String>,
    /// Go on with the conversation of an earlier run: the newest that has ended here, or the one named. Its model is
    /// taken unless another is named
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub(crate) continues: Option<String>,
    /// The prompt that drives the task: a file of sections, some closed until the model opens them (`fusee prompt
    /// render` shows it). A continued run keeps the prompt it began with
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,
    /// Look and explain, change nothing: tools that would change something are asked about or refused
    #[arg(long)]
    pub(crate) review: bool,
    /// A JSON Schema that the answer must fit; one that does not is asked for once more
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Run the task of this template instead of a request
    #[arg(long, value_name = "NAME", conflicts_with_all = ["request", "background", "continues", "prompt"])]
    pub(crate) template: Option<String>,
    /// An input of the template; may be given several times
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

/// What of it is a task: a template that was named, or a request that begins with `/task` or a parenthesis.
fn dispatched(args: RunArgs) -> Result<Result<TaskArgs, RunArgs>, Failure> {
    let words = match (&args.template, args.request.as_deref().map(str::trim_start)) {
        (Some(name), _) => std::iter::once(name).chain(&args.inputs).cloned().collect(),
        (None, Some(request)) if request.starts_with('(') => vec![request.to_owned()],
        (None, Some(request)) => match request.strip_prefix("/task") {
            Some(line) if line.trim_start().starts_with('(') => vec![line.trim().to_owned()],
            Some(line) if line.is_empty() || line.starts_with(char::is_whitespace) => {
                dispatch::split(line).map_err(|problem| Failure::usage(format!("`{request}`: {problem}")))?
            }
            _ => return Ok(Err(args)),
        },
        (None, None) => return Ok(Err(args)),
    };
    Ok(Ok(TaskArgs::of_run(args, words)))
}

/// The run that is continued.
struct Earlier {
    run: RunId,
    settings: Settings,
}

/// Runs a task.
pub(crate) async fn run(args: RunArgs, process: &Process) -> Result<Exit, Failure> {
    let args = match dispatched(args)? {
        Ok(task) => return task::task(task, process).await,
        Err(args) => args,
    };
    run_as(args, None, process).await
}

/// Runs a task, as the code reviewer if there is something to review.
pub(crate) async fn run_as(
    args: RunArgs,
    code_review: Option<CodeReview>,
    process: &Process,
) -> Result<Exit, Failure> {
    let environment = &process.environment;
    let project = Project::find(args.place.directory.as_deref(), environment)?;
    let (continues, words) = continues(args.continues.as_deref(), args.request.as_deref(), &project)?;
    let request = request(words, environment)?;
    let flags = [args.model.values(), args.flow.values(), args.gates.values(), args.limits.values()].concat();
    let agent = args.flow.agent.as_deref();
    let config = Config::gather_for(Some(&project.config_file()), agent, environment, flags)?;
    config.check_tools()?;
    let benchmark = benchmark::asked(args.flow.benchmark, continues.is_some(), &config, environment);
    let show = Show::new(args.json, &config, environment).for_benchmark(benchmark);
    show.warn(&config);
    let choice = match &continues {
        Some(earlier) => Choice::continued(&earlier.settings, &config, environment)?,
        None => Choice::make(&config, environment).await?,
    };
    let confine = config.confine(environment);
    let confinement = Confinement::of(config.sandbox(), &confine, &project.directory, process).await;
    let prompt = match args.prompt {
        Some(file) => Some(prompt_text(&environment.directory().join(file))?),
        None => match continues.as_ref().and_then(|earlier| earlier.settings.prompt.clone()) {
            None => config.prompt_file().map(|file| prompt_text(&file)).transpose()?,
            earlier => earlier,
        },
    };
    let output_schema = args.output_schema.map(|file| schema(&environment.directory().join(file)));
    let servers = mcp::connect(&config, &project.directory, process).await;
    let settings = Settings {
        mcp: servers.offered.clone(),
        prompt,
        review: match &code_review {
            // Nobody is to be asked whether a reviewer may change something.
            Some(_) => Some(Restrictions { require_approval: false, ..Restrictions::default() }),
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
    let others = choice::of_stages(&settings, &config, environment)?;
    let resources = Resources { others, ..work::resources(journal, model, &confinement, &show, process) };
    let templates = templates::needed(&settings, &project, environment);
    let resources = Resources { templates, ..servers.given_to(resources) };
    let id = args.name.run_id.map_or_else(clock::new_run_id, Ok)?;
    confinement.warn(&show);
    let plan = Plan::of(&settings);
    let show = show.with_phases(settings.flow.phase_log);
    let running = run::start(&id, settings, resources).await?;
    work::see_through(running, &show, plan).await
}

fn schema(file: &Path) -> Result<serde_json::Value, Failure> {
    let wrong = |cause: &dyn std::fmt::Display| {
        Failure::usage(format!("the output schema {} cannot be used: {cause}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    serde_json::from_str(&text).map_err(|error| wrong(&error))
}

/// A prompt file as it is now.
pub(crate) fn prompt_text(file: &Path) -> Result<PromptText, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("the prompt {} cannot be read: {error}", file.display())))?;
    Ok(PromptText {
        file: file.display().to_string(),
        text,
        fields: Default::default(),
        opened: Default::default(),
    })
}

/// The run to continue and the words of the request. A word after `--continue` names a run if there is a request
/// beside it, and else is the request.
fn continues<'a>(
    continued: Option<&'a str>,
    request: Option<&'a str>,
    project: &Project,
) -> Result<(Option<Earlier>, Option<&'a str>), Failure> {
    let Some(word) = continued else { return Ok((None, request)) };
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let (run, request) = match (word, request) {
        ("", request) => (None, request),
        (name, Some(request)) => (Some(name), Some(request)),
        (word, None) if selection::named(&journal, word).is_ok() => (Some(word), None),
        (word, None) => (None, Some(word)),
    };
    let row = match run {
        Some(name) => selection::named(&journal, name)?,
        None => selection::newest_ended(&journal, &project.directory, |_| true)?,
    };
    let settings = run::settings_of(&journal, &row.id)?;
    Ok((Some(Earlier { run: row.id, settings }), request))
}

fn request(typed: Option<&str>, environment: &Environment) -> Result<String, Failure> {
    let text = match typed {
        Some("-") => stdin()?,
        Some(words) => words.to_owned(),
        None => {
            let failure = Failure::usage("there is no request: what is to be done?");
            return Err(failure.help(if environment.terminals().stdin {
                "say it in one argument: fusee run 'fix the failing test'"
            } else {
                "say it in one argument: fusee run 'fix the failing test'; or read it from stdin: fusee run -"
            }));
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the request is empty"));
    }
    Ok(text)
}

fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(REQUEST_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("cannot read the request from stdin: {error}")))?;
    if text.len() as u64 > REQUEST_BYTES {
        return Err(Failure::usage("the request on stdin is longer than 1 MiB")
            .help("put the material into a file of the project and name it in the request"));
    }
    Ok(text)
}
