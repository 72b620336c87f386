//! `fusee prompt`: what a model would see.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use fusee_engine::model::tokens;
use fusee_engine::prompt::{AnyTask, Bound, FileProblem, PromptFile, RenderProblem, Rendered, open_sections};
use fusee_engine::run::Exit;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;

/// Show what a model would see.
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

/// Render a prompt file to exactly the bytes a model would get.
///
/// With --open, the prompt of the next cycle: as if the model had called open_sections with these keys.
#[derive(Args)]
struct RenderArgs {
    /// The prompt file, TOML or JSON
    file: PathBuf,
    /// The task, a JSON object with a `request`; its fields fill the placeholders
    #[arg(long, value_name = "JSON")]
    task: Option<String>,
    /// Open a closed section; may be given several times
    #[arg(long, value_name = "KEY")]
    open: Vec<String>,
    /// Why the sections are opened
    #[arg(long, value_name = "TEXT", default_value = "requested on the command line")]
    reason: String,
    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// A prompt that cannot be shown, in the words of the output format.
struct Trouble {
    code: &'static str,
    message: String,
    section_path: Option<String>,
}

impl From<RenderProblem> for Trouble {
    fn from(problem: RenderProblem) -> Self {
        let message = problem.to_string();
        Self { code: problem.code, message, section_path: problem.section_path }
    }
}

/// Does it.
pub(crate) fn prompt(args: &PromptArgs) -> Result<Exit, Failure> {
    let PromptCommand::Render(args) = &args.command;
    match render(args) {
        Ok(rendered) => {
            let text = match args.format {
                Format::Text => format!("{}\n", rendered.text),
                Format::Json => format!("{}\n", described(&rendered)),
            };
            output::print(&text).map(|()| Exit::Completed)
        }
        Err(trouble) if args.format == Format::Json => {
            let Trouble { code, message, section_path } = trouble;
            let error =
                json!({ "error": { "code": code, "message": message, "section_path": section_path } });
            output::print(&format!("{error}\n")).map(|()| Exit::Failed)
        }
        Err(trouble) => Err(Failure::failed(trouble.message)),
    }
}

fn render(args: &RenderArgs) -> Result<Rendered, Trouble> {
    let file = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|error| Trouble {
        code: "unreadable_file",
        message: format!("cannot read {file}: {error}"),
        section_path: None,
    })?;
    let prompt =
        PromptFile::parse(&text).map_err(|problem| in_file(&args.file.to_string_lossy(), problem))?;
    let task: AnyTask = match &args.task {
        None => AnyTask::default(),
        Some(task) => serde_json::from_str(task).map_err(|error| Trouble {
            code: "invalid_task",
            message: format!("--task is not a JSON object: {error}"),
            section_path: None,
        })?,
    };
    if prompt.has_task_section() && args.task.is_none() {
        let message = "the prompt shows a task: give it with --task '{\"request\": \"…\"}'".to_owned();
        return Err(Trouble { code: "missing_request", message, section_path: None });
    }
    let bound = prompt.bind(&task)?;
    let closed = BTreeSet::new();
    if args.open.is_empty() {
        return Ok(bound.render(&closed)?);
    }
    opened(bound, &closed, args)
}

fn opened(bound: Bound<'_>, closed: &BTreeSet<String>, args: &RenderArgs) -> Result<Rendered, Trouble> {
    let required = open_sections(&bound, closed, &args.open, &args.reason).map_err(|problem| Trouble {
        code: problem.code,
        message: problem.message,
        section_path: problem.section_path,
    })?;
    Ok(bound.expanded(required.expansion_instructions).render(&required.requested_overrides)?)
}

fn in_file(file: &str, problem: FileProblem) -> Trouble {
    match problem {
        FileProblem::Syntax(message) => {
            Trouble { code: "invalid_file", message: format!("{file}: {message}"), section_path: None }
        }
        FileProblem::Content(problems) => {
            let lines: Vec<_> = problems.iter().map(|problem| format!("{file}: {problem}")).collect();
            let first = problems.into_iter().next();
            Trouble {
                code: first.as_ref().map_or("invalid_file", |problem| problem.code),
                message: lines.join("\n"),
                section_path: first.and_then(|problem| problem.at),
            }
        }
    }
}

fn described(rendered: &Rendered) -> Value {
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
