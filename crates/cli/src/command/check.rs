//! `fusee check`: reports all errors in the files a project gives to fusee, before anything is spent.

mod template;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fusee::engine::lang::{self, Callable};
use fusee::engine::prompt::PromptFile;
use fusee::engine::run::ExitStatus;
use fusee::engine::text::render::{self, Colour};
use fusee::engine::text::{Diagnostic, Diagnostics, Severity, Source};
use fusee::engine::workflow::{WorkflowLoader, catalog, standard_tools};

use crate::config::{self, FileOwner};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::{source_files, template_source, workflow_registry};

/// Larger files are not examined for being blank.
const BLANK_BYTES: u64 = 64 * 1024;

/// The kinds of files that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckedKind {
    Workflow,
    Template,
    Config,
    Agent,
    Prompt,
    Hooks,
}

impl CheckedKind {
    /// The kind of a file, by its name.
    fn from_path(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?;
        match (name, file.extension()?.to_str()?) {
            (_, "fusee") => Some(Self::Workflow),
            (_, "xml") => Some(Self::Template),
            ("fusee.toml" | "config.toml", _) => Some(Self::Config),
            ("hooks.json", _) => Some(Self::Hooks),
            (_, "toml" | "json") => Some(if has_sections(file) { Self::Prompt } else { Self::Agent }),
            _ => None,
        }
    }

    /// Whether a file found in a directory is checked: other programs have config.toml and XML files too.
    fn is_found(file: &Path) -> bool {
        match Self::from_path(file) {
            Some(Self::Template) => template::is_one(file),
            Some(Self::Agent | Self::Prompt) => {
                let folder = file.parent().and_then(Path::file_name);
                folder.is_some_and(|folder| folder == "agents" || folder == "prompts")
            }
            Some(Self::Hooks) => file.parent().and_then(Path::file_name).is_some_and(|it| it == ".fusee"),
            kind => kind.is_some() && !file.ends_with("config.toml"),
        }
    }
}

/// Whether a TOML or JSON file is a prompt: only prompts have `sections`.
fn has_sections(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let json =
        || serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|it| it.get("sections").is_some());
    text.lines().any(|line| line.starts_with("[[sections]]") || line.starts_with("sections")) || json()
}

/// Check workflows, templates, agents, prompts, hooks and configuration for errors.
///
/// Nothing is run and nothing is spent. All problems are reported at once, each with its source line; the
/// exit code is 1 if any of them is an error. In a directory, all files of a known kind that are not ignored
/// are checked; agents and prompts must be in folders named agents and prompts.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Files and directories to check
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Output format: text, or json for editors
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Problems found, and the sources they refer to.
#[derive(Default)]
pub(crate) struct CheckFindings {
    problems: Diagnostics,
    sources: HashMap<String, Source>,
    /// File of each template, by template name.
    templates: HashMap<String, String>,
    /// File of each default template, by subtype.
    defaults: HashMap<String, String>,
}

impl CheckFindings {
    fn add(&mut self, problems: Diagnostics, sources: impl IntoIterator<Item = Source>) {
        self.problems.extend(problems.into_sorted());
        self.sources.extend(sources.into_iter().map(|source| (source.name().to_string(), source)));
    }

    fn unreadable(&mut self, name: &str, why: &str) {
        let problem = Diagnostic::file_error("unreadable", name, format!("cannot read `{name}`: {why}"));
        self.problems.push(problem);
    }
}

/// Runs the command.
pub(crate) fn check(args: &CheckArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let here = process.environment.directory();
    let files = source_files::files(here, &args.paths, CheckedKind::is_found);
    let mut findings = CheckFindings::default();
    let tasks = tasks(process);
    for file in &files {
        one(file, here, &tasks, &mut findings);
    }
    let count = files.len();
    let mut problems = findings.problems.into_sorted();
    // A file loaded by two others is reported with each of them.
    problems.dedup();
    let failed = problems.iter().any(|problem| problem.severity == Severity::Error);
    let text = match args.format {
        Format::Json => format!("{}\n", render::json(&problems)),
        Format::Text if problems.is_empty() => {
            format!("{count} {} checked, no problems found\n", if count == 1 { "file" } else { "files" })
        }
        Format::Text => {
            let sources = &findings.sources;
            render::terminal(&problems, |name| sources.get(name), Colour::Never)
        }
    };
    stdio::print_as(args.format == Format::Json, &text)?;
    Ok(if failed { ExitStatus::Failed } else { ExitStatus::Completed })
}

/// Checks one file by its kind.
fn one(file: &Path, here: &Path, tasks: &[Callable], findings: &mut CheckFindings) {
    let name = file.display().to_string();
    let path = here.join(file);
    match std::fs::metadata(&path) {
        Err(error) => return findings.unreadable(&name, &error.to_string()),
        Ok(status) if status.is_file() && is_blank(&path, status.len()) => {
            let message = format!("`{name}` is empty");
            return findings.problems.push(Diagnostic::file_error("empty-file", name, message));
        }
        Ok(_) => {}
    }
    match CheckedKind::from_path(file) {
        Some(CheckedKind::Workflow) => workflow(&name, &path, here, tasks, findings),
        Some(CheckedKind::Template) => template::check(&name, &path, here, findings),
        Some(kind @ (CheckedKind::Config | CheckedKind::Agent)) => {
            // A file named like the user's own may set what a project's may not.
            let whose = match kind {
                CheckedKind::Agent => FileOwner::Agent,
                _ if path.ends_with("fusee.toml") => FileOwner::Project,
                _ => FileOwner::User,
            };
            let (problems, source) = config::check_file(&path, &name, whose);
            findings.add(problems, source);
        }
        Some(CheckedKind::Prompt) => match std::fs::read_to_string(&path) {
            Err(error) => findings.unreadable(&name, &error.to_string()),
            Ok(text) => {
                let source = Source::new(name, text);
                findings.add(PromptFile::check(&source), [source]);
            }
        },
        Some(CheckedKind::Hooks) => {
            let mut problems = Diagnostics::new();
            let source = config::hooks::read(&path, &name, true, &mut problems).map(|(source, _)| source);
            findings.add(problems, source);
        }
        None => {
            let message = format!("`{name}` is not a kind of file that can be checked");
            let help = "workflows end in .fusee, templates in .xml, agents and prompts in .toml or .json; the \
                 configuration is fusee.toml or config.toml, hooks are in hooks.json";
            findings.problems.push(Diagnostic::file_error("unknown-kind", name, message).help(help));
        }
    }
}

/// Whether a file has no content but white space.
fn is_blank(path: &Path, size: u64) -> bool {
    size <= BLANK_BYTES && std::fs::read(path).is_ok_and(|bytes| bytes.trim_ascii().is_empty())
}

/// The templates and workflows that a workflow can call here.
fn tasks(process: &Process) -> Vec<Callable> {
    let Ok(project) = Project::find(None, &process.environment) else { return Vec::new() };
    let mut tasks =
        template_source::callables(&template_source::gather(&project, &process.environment).registry);
    let workflows = workflow_registry::workflows(&project, &process.environment);
    tasks.extend(workflows.iter().map(workflow_registry::NamedWorkflow::callable));
    tasks
}

fn workflow(name: &str, path: &Path, here: &Path, tasks: &[Callable], findings: &mut CheckFindings) {
    let text = match WorkflowLoader::read(path) {
        Ok(text) => text,
        Err(why) => return findings.unreadable(name, &why),
    };
    let source = Source::new(name, text);
    let catalog = catalog(standard_tools().definitions(), tasks);
    let compiled = lang::compile(&source, &catalog, &mut WorkflowLoader::from_disk(here));
    findings.add(compiled.diagnostics, compiled.sources);
}
