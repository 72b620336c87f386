//! `fusee prompt`: renders the prompt a model would get. `tree.rs` renders the tree view.

mod tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use fusee::engine::journal::Clock;
use fusee::engine::model::tokens;
use fusee::engine::prompt::{
    AnyTask, BoundPrompt, DefaultPrompt, EnvironmentSnapshot, FileProblem, Outlined, Prompt, PromptFile,
    PromptKind, RenderProblem, RenderedText, open_sections, overridable, override_file,
};
use fusee::engine::run::ExitStatus;
use fusee::engine::text::suggest;
use fusee::system::SystemClock;
use serde_json::{Value, json};

use crate::config::Config;
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;

/// Show the prompt that would be sent to a model.
///
/// A prompt file (TOML or JSON) is a list of sections; some may be closed until the model opens them.
#[derive(Args)]
pub(crate) struct PromptArgs {
    #[command(subcommand)]
    command: PromptCommand,
}

#[derive(Subcommand)]
enum PromptCommand {
    Render(RenderArgs),
}

/// Render a prompt to the exact bytes that would be sent to a model.
///
/// Without FILE, this is the prompt of `fusee run` in this directory: the built-in text with the overrides of
/// .fusee/prompts, AGENTS.md and the skills of .fusee/skills. With --open, it is the prompt of the next turn,
/// as if the model had called open_sections with these keys.
#[derive(Args)]
struct RenderArgs {
    /// Prompt file, TOML or JSON
    file: Option<PathBuf>,
    /// Task as a JSON object with a `request`; its fields fill the placeholders
    #[arg(long, value_name = "JSON")]
    task: Option<String>,
    /// Open a closed section; can be repeated
    #[arg(long, value_name = "KEY")]
    open: Vec<String>,
    /// Reason for opening the sections
    #[arg(long, value_name = "TEXT", default_value = "requested on the command line")]
    reason: String,
    /// Output format: the text, JSON, or a tree with the tokens of each section
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print the built-in text of this section, to edit and save as .fusee/prompts/KEY.md
    #[arg(long, value_name = "KEY", conflicts_with_all = ["file", "task", "open"])]
    original: Option<String>,
    #[command(flatten)]
    directory: DirectoryFlag,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Tree,
}

/// A rendered prompt and its outline.
struct PromptView {
    rendered: RenderedText,
    outline: Vec<Outlined>,
}

/// An error, with the fields of the JSON output.
struct PromptError {
    code: &'static str,
    message: String,
    section_path: Option<String>,
}

impl From<RenderProblem> for PromptError {
    fn from(problem: RenderProblem) -> Self {
        let message = problem.to_string();
        Self { code: problem.code, message, section_path: problem.section_path }
    }
}

/// Runs the command.
pub(crate) fn prompt(args: &PromptArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let PromptCommand::Render(args) = &args.command;
    if let Some(key) = &args.original {
        return original(key);
    }
    let view = match &args.file {
        Some(file) => {
            let environment = environment_snapshot(args, process)?;
            read(file, &environment).and_then(|prompt| render(&prompt, args))
        }
        None => {
            let DefaultPrompt { prompt, notices } = defaults(args, process)?;
            for notice in notices {
                stdio::error(&format!("warning: {notice}\n"));
            }
            render(&prompt, args)
        }
    };
    match view {
        Ok(PromptView { rendered, outline }) => {
            let text = match args.format {
                Format::Text => format!("{}\n", rendered.text),
                Format::Json => format!("{}\n", described(&rendered)),
                Format::Tree => tree::tree(&outline, &rendered.text, &rendered.tools),
            };
            stdio::print_as(args.format == Format::Json, &text).map(|()| ExitStatus::Completed)
        }
        Err(trouble) if args.format == Format::Json => {
            let PromptError { code, message, section_path } = trouble;
            let error =
                json!({ "error": { "code": code, "message": message, "section_path": section_path } });
            stdio::print_json(&format!("{error}\n")).map(|()| ExitStatus::Failed)
        }
        Err(trouble) => Err(CliError::failed(trouble.message)),
    }
}

/// Prints an override file with the built-in text.
fn original(key: &str) -> Result<ExitStatus, CliError> {
    let text = override_file(key).ok_or_else(|| {
        let keys: Vec<&str> = overridable().collect();
        let near = suggest::did_you_mean(key, keys.iter().copied());
        CliError::usage(format!("no prompt section `{key}` can be overridden"))
            .help(near.unwrap_or_else(|| format!("available sections: {}", keys.join(", "))))
    })?;
    stdio::print(&text).map(|()| ExitStatus::Completed)
}

/// The prompt of a plain run in this directory.
fn defaults(args: &RenderArgs, process: &Process) -> Result<DefaultPrompt, CliError> {
    let environment = environment_snapshot(args, process)?;
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let config = Config::gather(Some(&project.config_file()), &process.environment, Vec::new())?;
    default_prompt(&environment, &config)
}

fn default_prompt(environment: &EnvironmentSnapshot, config: &Config) -> Result<DefaultPrompt, CliError> {
    let flow = config.flow()?;
    let kind = PromptKind { review: false, planning: flow.planning, direct: flow.is_direct() };
    DefaultPrompt::new(environment, kind).map_err(|problems| {
        CliError::failed(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// The sections of the prompt that a request in this project gets.
pub(super) fn of_request(
    request: &str,
    project: &Project,
    config: &Config,
) -> Result<Vec<Outlined>, CliError> {
    let environment = EnvironmentSnapshot::capture(&project.directory, SystemClock.now_ms());
    let failed = |problem: PromptError| CliError::failed(problem.message);
    let prompt = match config.prompt_file() {
        Some(file) => read(&file, &environment).map_err(failed)?,
        None => default_prompt(&environment, config)?.prompt,
    };
    let task: AnyTask = serde_json::from_value(json!({ "request": request }))
        .map_err(|error| CliError::failed(error.to_string()))?;
    let bound = prompt.bind(&task).map_err(|problem| failed(problem.into()))?;
    bound.outline(&BTreeSet::new()).map_err(|problem| failed(problem.into()))
}

/// The environment of the project, as a run would see it.
fn environment_snapshot(args: &RenderArgs, process: &Process) -> Result<EnvironmentSnapshot, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    Ok(EnvironmentSnapshot::capture(&project.directory, SystemClock.now_ms()))
}

/// Reads a prompt file.
fn read(file: &Path, environment: &EnvironmentSnapshot) -> Result<Prompt, PromptError> {
    let text = std::fs::read_to_string(file).map_err(|error| PromptError {
        code: "unreadable_file",
        message: format!("cannot read {}: {error}", file.display()),
        section_path: None,
    })?;
    let environment = match PromptFile::wants_digest(&text) {
        true => environment.clone().with_digest(Path::new(&environment.directory), None),
        false => environment.clone(),
    };
    PromptFile::parse_for(&text, &environment).map_err(|problem| in_file(&file.to_string_lossy(), problem))
}

fn render(prompt: &Prompt, args: &RenderArgs) -> Result<PromptView, PromptError> {
    let task: AnyTask = match &args.task {
        None => AnyTask::default(),
        Some(task) => serde_json::from_str(task).map_err(|error| PromptError {
            code: "invalid_task",
            message: format!("--task is not a JSON object: {error}"),
            section_path: None,
        })?,
    };
    if prompt.has_task_section() && args.task.is_none() {
        let message = "the prompt contains a task; pass it with --task '{\"request\": \"…\"}'".to_owned();
        return Err(PromptError { code: "missing_request", message, section_path: None });
    }
    let bound = prompt.bind(&task)?;
    if args.open.is_empty() {
        return view(&bound, &BTreeSet::new());
    }
    opened(bound, args)
}

fn opened(bound: BoundPrompt<'_>, args: &RenderArgs) -> Result<PromptView, PromptError> {
    let required = open_sections(&bound, &BTreeSet::new(), &args.open, &args.reason).map_err(|problem| {
        PromptError { code: problem.code, message: problem.message, section_path: problem.section_path }
    })?;
    let open = required.applied_to(&BTreeSet::new());
    view(&bound.expanded(required.expansion_instructions), &open)
}

fn view(bound: &BoundPrompt<'_>, open: &BTreeSet<String>) -> Result<PromptView, PromptError> {
    Ok(PromptView { rendered: bound.render(open)?, outline: bound.outline(open)? })
}

fn in_file(file: &str, problem: FileProblem) -> PromptError {
    match problem {
        FileProblem::Syntax(message) => {
            PromptError { code: "invalid_file", message: format!("{file}: {message}"), section_path: None }
        }
        FileProblem::Content(problems) => {
            let lines: Vec<_> = problems.iter().map(|problem| format!("{file}: {problem}")).collect();
            let first = problems.into_iter().next();
            PromptError {
                code: first.as_ref().map_or("invalid_file", |problem| problem.code),
                message: lines.join("\n"),
                section_path: first.and_then(|problem| problem.at),
            }
        }
    }
}

fn described(rendered: &RenderedText) -> Value {
    let sections: Vec<Value> = rendered
        .sections
        .iter()
        .map(|section| {
            json!({
                "path": section.path,
                "number": section.number,
                "visibility": section.shown,
                "tokens": tokens::exact_count(&section.text),
            })
        })
        .collect();
    json!({ "text": rendered.text, "tools": rendered.tools, "sections": sections, "closed": rendered.closed })
}
