//! `fusee run`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use fusee::engine::dispatch;
use fusee::engine::journal::RunId;
use fusee::engine::journal::event::TurnType;
use fusee::engine::model::Image;
use fusee::engine::review::CodeReview;
use fusee::engine::run::{self, ExitStatus, JsonOutput, PromptText, RunBuilder, RunSpec};
use fusee::engine::tools::{CallLimits, Workspace};

use super::run_setup::{RunSetup, RunTarget, StartedRun};
use super::task;
use super::unstarted_run::UnstartedRun;
use crate::command::run_session;
#[cfg(feature = "restate")]
use crate::config::flags::NewRunEngineFlags;
use crate::config::flags::{
    ApprovalFlags, DetachFlag, DirectoryFlag, FlowFlags, LimitFlags, ModelFlags, RunIdFlag,
};
use crate::config::{Config, McpEntry, Value};
use crate::model_selection;
use crate::process::Process;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::{piped_input, stdio};
use crate::project::Project;
use crate::project::file_mentions::{self, AttachedFiles};
use crate::project::find_run;
use crate::project::markdown_commands;
use crate::ui::UiOptions;
use crate::ui::benchmark;

/// Maximum size of a request; a longer one is a mistake, such as a file piped in by accident.
const REQUEST_BYTES: u64 = 1 << 20;

/// Run one task in this directory.
///
/// The model works with tools until it has an answer: it reads, searches, edits and runs commands. Every step
/// is journaled, so a killed run can be continued with `fusee resume`. The answer goes to stdout, everything
/// else to stderr.
///
/// Text on stdin becomes background for the task: `git diff | fusee run 'summarise this'`. In a loop that reads a pipe,
/// redirect stdin, as in `… | while read -r file; do fusee run … </dev/null; done`, or the first run consumes the rest of
/// the list.
#[derive(Args, Default)]
pub(crate) struct RunArgs {
    /// MCP servers that another front end brings along.
    #[arg(skip)]
    pub(super) mcp: Vec<McpEntry>,
    /// Reasoning effort that another front end has chosen.
    #[arg(skip)]
    pub(super) reasoning_effort: Option<String>,
    /// Images that the request names.
    #[arg(skip)]
    pub(super) images: Vec<Image>,
    /// The task, in one argument; `-` reads it from stdin. `@path` attaches a file, and piped text becomes background
    /// for the task
    #[arg(value_name = "REQUEST")]
    pub(crate) request: Option<String>,
    #[command(flatten)]
    pub(crate) directory: DirectoryFlag,
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
    /// Read-only review: tools that change something need approval or are refused
    #[arg(long)]
    pub(crate) review: bool,
    /// JSON Schema file for the answer; if the answer does not match, the model gets one more turn
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Run this template instead of a request
    #[arg(long, value_name = "NAME", conflicts_with = "request")]
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
    /// Open the web page of the run, where you can also answer its questions
    #[cfg(feature = "serve")]
    #[arg(long, conflicts_with = "detach")]
    pub(crate) serve: bool,
    #[command(flatten)]
    pub(crate) background_run: DetachFlag,
    #[command(flatten)]
    pub(crate) name: RunIdFlag,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    #[command(flatten)]
    pub(crate) flow: FlowFlags,
    #[command(flatten)]
    pub(crate) approval: ApprovalFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    pub(crate) engine: NewRunEngineFlags,
}

impl RunArgs {
    /// The words of a task: a named template with its inputs, or a request that begins with `/task` or a
    /// parenthesis. `None` for a request in plain words.
    fn task_words(&self, request: Option<&str>) -> Result<Option<Vec<String>>, CliError> {
        if let Some(name) = &self.template {
            return Ok(Some(std::iter::once(name).chain(&self.inputs).cloned().collect()));
        }
        let Some(request) = request.map(str::trim_start) else { return Ok(None) };
        if request.starts_with('(') {
            return Ok(Some(vec![request.to_owned()]));
        }
        match request.strip_prefix("/task") {
            Some(line) if line.trim_start().starts_with('(') => Ok(Some(vec![line.trim().to_owned()])),
            Some(line) if line.is_empty() || line.starts_with(char::is_whitespace) => {
                let words = dispatch::split(line);
                words.map(Some).map_err(|problem| CliError::usage(format!("`{request}`: {problem}")))
            }
            _ => Ok(None),
        }
    }

    /// The run as stdout shows it if it cannot start, if events or the benchmark line are asked for.
    fn unstarted(&self, environment: &Environment) -> Option<UnstartedRun> {
        let benchmark = self.flow.benchmark || benchmark::enabled_by(environment).is_some();
        let attempt = if self.continues.is_some() { 2 } else { 1 };
        (self.json || benchmark).then(|| UnstartedRun {
            benchmark_try: (!self.json).then_some(attempt),
            id: self.name.run_id.clone(),
            request: self.request.clone().or_else(|| self.template.clone()).unwrap_or_default(),
            model: self.model.model.clone().unwrap_or_default(),
            turn_type: if self.review { TurnType::Review } else { TurnType::User },
        })
    }

    /// Rejects flags and variables that mean nothing for a task, instead of ignoring them.
    fn check_for_task(&self, environment: &Environment) -> Result<(), CliError> {
        let own = "templates and workflows define";
        let in_words = "only a plain-text request can be benchmarked";
        let variable = benchmark::enabled_by(environment);
        let wrong = [
            (
                "--background",
                self.background.is_some(),
                format!("{own} their own inputs"),
                "pass it as an input",
            ),
            (
                "--prompt",
                self.prompt.is_some(),
                format!("{own} their own prompts"),
                "put it into the template",
            ),
            (
                "--output-schema",
                self.output_schema.is_some(),
                format!("{own} their own output"),
                "use <output_format> in the template",
            ),
            (
                "--flow",
                self.flow.flow.is_some(),
                format!("{own} their own flow"),
                "use <flow> in the template",
            ),
            (
                "--verify",
                self.flow.verify.is_some(),
                format!("{own} their own checks"),
                "call `shell` in the workflow",
            ),
            (
                "--benchmark",
                self.flow.benchmark,
                in_words.to_owned(),
                "pass the task as a plain-text request",
            ),
            (
                variable.unwrap_or_default(),
                variable.is_some(),
                in_words.to_owned(),
                "pass the task as a plain-text request, or unset the variable",
            ),
            #[cfg(feature = "serve")]
            (
                "--serve",
                self.serve,
                "the page shows one plain-text request only".to_owned(),
                "run `fusee serve` and start the task there",
            ),
        ];
        match wrong.into_iter().find(|(_, given, ..)| *given) {
            None => Ok(()),
            Some((flag, _, why, help)) => {
                Err(CliError::usage(format!("{flag} cannot be used with a task: {why}")).help(help))
            }
        }
    }
}

/// The earlier run of `--continue`, with the settings it was started with.
pub(crate) struct ContinuedRun {
    pub(super) run: RunId,
    pub(super) settings: RunSpec,
}

/// A run that is ready to start.
pub(super) struct PreparedRun<'p> {
    setup: RunSetup<'p>,
    pub(super) builder: RunBuilder,
    run: Option<RunId>,
    #[cfg(feature = "restate")]
    engine: Option<super::engine::OpenEngine>,
}

impl PreparedRun<'_> {
    /// Gives the run a script of its own, which continues after the lines that the runs before it used. Without
    /// this, the runs of a process share a script.
    pub(super) fn with_own_script(mut self) -> Result<Self, CliError> {
        if model_selection::is_script(&self.setup.resolved) {
            let model = model_selection::open(&self.setup.resolved, None)?;
            if let Some(earlier) = &self.builder.spec.continues {
                run::replay_replies(&self.setup.journal, earlier, &*model)?;
            }
            self.builder.deps.model = model;
        }
        Ok(self)
    }

    /// Starts the run.
    pub(super) async fn start(self) -> Result<Launched, CliError> {
        let ui_options = self.setup.ui_options.with_phases(self.builder.spec.flow.phase_log);
        #[cfg(feature = "restate")]
        if let Some(engine) = self.engine {
            let started = Box::pin(engine.start(&self.setup, self.builder.spec, self.run)).await?;
            return Ok(Launched { started, ui_options });
        }
        Ok(Launched { started: self.setup.start(self.builder, self.run).await?, ui_options })
    }
}

/// Who presents a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presentation {
    /// This command, which prints JSON in this form.
    Command(JsonOutput),
    /// Another front end.
    Elsewhere,
}

/// A started run and how it is displayed.
pub(crate) struct Launched {
    pub(crate) started: StartedRun,
    pub(crate) ui_options: UiOptions,
}

/// Runs the command. With `--json` or `--benchmark`, the end of a run is printed even if it could not start.
pub(crate) async fn run(args: RunArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let unstarted = args.unstarted(&process.environment);
    report_if_unstarted(unstarted, perform(args, process).await)
}

/// Prints the events of a run that could not start, if they are asked for.
pub(super) fn report_if_unstarted(
    unstarted: Option<UnstartedRun>,
    result: Result<ExitStatus, CliError>,
) -> Result<ExitStatus, CliError> {
    if let (Err(failure), Some(unstarted)) = (&result, unstarted)
        && !failure.run_started
    {
        unstarted.report(failure)?;
    }
    result
}

async fn perform(mut args: RunArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let (earlier, words) = resolve_continue(&args, &project)?;
    let words = words.map(str::to_owned);
    let words = words.as_deref();
    if let Some(words) = args.task_words(words)? {
        return Box::pin(task::of_run(args, words, earlier, project, process)).await;
    }
    let is_typed = words.is_some_and(|words| words != "-");
    let request = request(words, &process.environment)?;
    let request = markdown_commands::expand(&request, &project.directory).unwrap_or(request);
    let piped = if is_typed { piped_input::read(&process.environment)? } else { None };
    (args.background, args.images) = attachments(args.background.take(), &request, piped, &project);
    let target = RunTarget::Request(request);
    #[cfg(feature = "serve")]
    if args.serve {
        return Box::pin(run_beside_page(args, target, earlier, project, process)).await;
    }
    let Launched { started, ui_options } =
        Box::pin(launch(args, target, earlier, JsonOutput::Events, project, process)).await?;
    let (exit, _) = run_session::watch(started, &ui_options, &[]).await.map_err(CliError::after_start)?;
    Ok(exit)
}

/// Runs a request beside its web page.
#[cfg(feature = "serve")]
async fn run_beside_page(
    args: RunArgs,
    target: RunTarget,
    earlier: Option<ContinuedRun>,
    project: Project,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let (directory, journal) = (project.directory.clone(), project.journal.clone());
    let flags = super::launcher::LaunchFlags {
        model: args.model.clone(),
        approval: args.approval.clone(),
        limits: args.limits.clone(),
        agent: args.flow.agent.clone(),
    };
    let presentation = Presentation::Command(JsonOutput::Events);
    let mut prepared = prepare(args, target, earlier, presentation, project, process).await?;
    let terminals = process.environment.terminals();
    if !(terminals.stdin && terminals.stderr) {
        // Without a terminal the page is where somebody answers.
        prepared.builder.deps.approver = std::sync::Arc::new(fusee::engine::approval::AnsweredOutside);
    }
    let Launched { started, ui_options } = prepared.start().await?;
    let control = started.running.control();
    let page = super::serve::beside(control, &journal, &directory, flags, process);
    let page = page.map_err(CliError::after_start)?;
    let (exit, _) = run_session::watch(started, &ui_options, &[]).await.map_err(CliError::after_start)?;
    drop(page);
    Ok(exit)
}

/// The background of a request (what the user gave, the files that the request names with `@path`, and what was
/// piped in) and the images that it names.
fn attachments(
    given: Option<String>,
    request: &str,
    piped: Option<String>,
    project: &Project,
) -> (Option<String>, Vec<Image>) {
    let AttachedFiles { background, images, problems } = match Workspace::open(&project.directory) {
        Ok(workspace) => file_mentions::gather(request, &workspace, CallLimits::IMAGE_BYTES),
        Err(_) => AttachedFiles::default(),
    };
    problems.iter().for_each(|problem| stdio::error(&format!("warning: {problem}\n")));
    let parts: Vec<String> = [given, background, piped].into_iter().flatten().collect();
    ((!parts.is_empty()).then(|| parts.join("\n\n")), images)
}

/// Reviews code.
pub(super) async fn review(
    args: RunArgs,
    review: CodeReview,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let (earlier, words) = resolve_continue(&args, &project)?;
    let target = RunTarget::Review(Box::new(review), request(words, &process.environment)?);
    let Launched { started, ui_options } =
        Box::pin(launch(args, target, earlier, JsonOutput::Events, project, process)).await?;
    let (exit, _) = run_session::watch(started, &ui_options, &[]).await.map_err(CliError::after_start)?;
    Ok(exit)
}

/// Starts what a command line turned out to run.
pub(super) async fn launch(
    args: RunArgs,
    target: RunTarget,
    earlier: Option<ContinuedRun>,
    json_form: JsonOutput,
    project: Project,
    process: &Process,
) -> Result<Launched, CliError> {
    let presentation = Presentation::Command(json_form);
    prepare(args, target, earlier, presentation, project, process).await?.start().await
}

/// Prepares a run. Every flag applies to it or is rejected.
pub(super) async fn prepare<'p>(
    args: RunArgs,
    target: RunTarget,
    earlier: Option<ContinuedRun>,
    presentation: Presentation,
    project: Project,
    process: &'p Process,
) -> Result<PreparedRun<'p>, CliError> {
    let environment = &process.environment;
    #[cfg(feature = "restate")]
    let engine = super::engine::OpenEngine::of_run(&args, earlier.is_some(), process).await?;
    let config = configured(&args, &target, &project, environment)?;
    let benchmark = match &target {
        // A review changes no test, and its findings are what is printed.
        RunTarget::Task(_) | RunTarget::Review(..) => None,
        RunTarget::Request(_) => {
            benchmark::settings_of_run(args.flow.benchmark, earlier.is_some(), &config, environment)
        }
    };
    let ui_options = match presentation {
        Presentation::Command(JsonOutput::Events) => UiOptions::new(args.json, &config, environment),
        Presentation::Command(JsonOutput::Result) => UiOptions::for_result(args.json, &config, environment),
        Presentation::Elsewhere => UiOptions::silent(&config, environment),
    };
    let ui_options = ui_options.for_benchmark(benchmark).in_background(args.background_run.detached);
    ui_options.warn(&config);
    #[cfg(feature = "restate")]
    let can_wait = engine.is_some();
    #[cfg(not(feature = "restate"))]
    let can_wait = false;
    if !can_wait {
        ui_options.warn_if_nobody_can_be_asked(config.approve());
    }
    let resolved = match &earlier {
        Some(earlier) => model_selection::continued(&earlier.settings, &config, environment)?,
        None if needs_model(&target, &config) => model_selection::select(&config, environment).await?,
        None => model_selection::without_model(),
    };
    let takes_images = resolved.connection.traits.images;
    if !(takes_images || args.images.is_empty()) {
        stdio::error("warning: images not attached: this model does not accept images\n");
    }
    let in_words = !matches!(target, RunTarget::Task(_));
    let prompt = match args.prompt {
        Some(file) => Some(prompt_text(&environment.directory().join(file))?),
        None if !in_words => None,
        None => match earlier.as_ref().and_then(|earlier| earlier.settings.prompt.clone()) {
            None => config.prompt_file().map(|file| prompt_text(&file)).transpose()?,
            earlier => earlier,
        },
    };
    let output_schema = args.output_schema.map(|file| schema(&environment.directory().join(file)));
    let output_schema = output_schema.transpose()?;
    let record = args.record.map(|file| environment.directory().join(file));
    let setup = RunSetup::open(project, config, ui_options, resolved, record.as_deref(), process).await?;
    let mut builder = setup.builder(target)?;
    let spec = &mut builder.spec;
    if args.review {
        spec.review = Some(setup.config.restrictions());
    }
    spec.prompt = prompt;
    spec.output_schema = output_schema;
    spec.background = args.background;
    spec.images = if takes_images { args.images } else { Vec::new() };
    spec.continues = earlier.map(|earlier| earlier.run);
    spec.flow.benchmark = benchmark;
    if let Presentation::Command(json_form) = presentation {
        spec.json_form = json_form;
    }
    spec.record = record;
    Ok(PreparedRun {
        setup,
        builder,
        run: args.name.run_id,
        #[cfg(feature = "restate")]
        engine,
    })
}

/// The configuration of a run, with its flags.
pub(super) fn configured(
    args: &RunArgs,
    target: &RunTarget,
    project: &Project,
    environment: &Environment,
) -> Result<Config, CliError> {
    let mut flags =
        [args.model.values(), args.flow.values(), args.approval.values(), args.limits.values()].concat();
    flags.extend(args.reasoning_effort.clone().map(|effort| ("reasoning_effort", Value::Text(effort))));
    if let RunTarget::Task(task) = target {
        args.check_for_task(environment)?;
        if let (None, Some(model)) = (&args.model.model, &task.model) {
            // The template's own model, which a flag overrides.
            flags.push(("model", Value::Text(model.clone())));
        }
    }
    let agent = args.flow.agent.as_deref();
    let mut config = Config::gather_for(Some(&project.config_file()), agent, environment, flags)?;
    config.add_mcp(args.mcp.clone());
    config.check_tools()?;
    Ok(config)
}

/// Whether a new run needs a model. A workflow of tools and arithmetic does not, unless one is configured.
pub(super) fn needs_model(target: &RunTarget, config: &Config) -> bool {
    let asks = match target {
        RunTarget::Task(task) => task.asks_a_model,
        RunTarget::Request(_) | RunTarget::Review(..) => true,
    };
    asks || config.text("model").is_some()
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

/// The run to continue and the request. The value of `--continue` names a run if there is also a request or a
/// template, or such a run exists; otherwise it is the request.
fn resolve_continue<'a>(
    args: &'a RunArgs,
    project: &Project,
) -> Result<(Option<ContinuedRun>, Option<&'a str>), CliError> {
    let request = args.request.as_deref();
    let Some(word) = args.continues.as_deref() else { return Ok((None, request)) };
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let (run, request) = match (word, request) {
        ("", request) => (None, request),
        (name, Some(request)) => (Some(name), Some(request)),
        (word, None) if args.template.is_some() || find_run::named(&journal, word).is_ok() => {
            (Some(word), None)
        }
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
