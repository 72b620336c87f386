//! `fusee check`: everything that is wrong with the texts a project gives to fusee, before anything is spent.

mod template;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fusee_engine::lang::{self, Callable};
use fusee_engine::run::Exit;
use fusee_engine::text::render::{self, Colour};
use fusee_engine::text::{Diagnostic, Diagnostics, Severity, Source};
use fusee_engine::workflow::{Loading, catalog, standard_tools};

use super::Process;
use crate::config;
use crate::failure::Failure;
use crate::project::Project;
use crate::{output, registered, sources, templates};

/// The kinds of file that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Workflow,
    Template,
    Config,
}

impl Kind {
    /// The kind of a file, by its name.
    fn of(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?;
        match (name, file.extension()?.to_str()?) {
            (_, "fusee") => Some(Self::Workflow),
            (_, "xml") => Some(Self::Template),
            ("fusee.toml" | "config.toml", _) => Some(Self::Config),
            _ => None,
        }
    }

    /// Whether a file that was found, and not named, is looked at: other programs have a config.toml and XML too.
    fn is_found(file: &Path) -> bool {
        match Self::of(file) {
            Some(Self::Template) => template::is_one(file),
            kind => kind.is_some() && !file.ends_with("config.toml"),
        }
    }
}

/// Find everything that is wrong with workflows, templates and configuration.
///
/// Nothing runs and nothing is spent. All problems are told at once, each with its source line; the exit code is 1
/// if any of them is an error. In a directory, all files of a known kind that are not ignored.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Files and directories
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// How to tell: text for people, json for editors
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Findings {
    problems: Diagnostics,
    sources: HashMap<String, Source>,
    /// The templates by name, with the file of each.
    templates: HashMap<String, String>,
}

impl Findings {
    fn add(&mut self, problems: Diagnostics, sources: impl IntoIterator<Item = Source>) {
        self.problems.extend(problems.into_sorted());
        self.sources.extend(sources.into_iter().map(|source| (source.name().to_string(), source)));
    }

    fn unreadable(&mut self, name: &str, why: &str) {
        let problem = Diagnostic::file_error("unreadable", name, format!("cannot read `{name}`: {why}"));
        self.problems.push(problem);
    }
}

/// Checks them.
pub(crate) fn check(args: &CheckArgs, process: &Process) -> Result<Exit, Failure> {
    let here = process.environment.directory();
    let files = sources::files(here, &args.paths, Kind::is_found);
    let mut findings = Findings::default();
    let tasks = tasks(process);
    for file in &files {
        one(file, here, &tasks, &mut findings);
    }
    let count = files.len();
    let mut problems = findings.problems.into_sorted();
    // A file that two others load is read with each of them.
    problems.dedup();
    let failed = problems.iter().any(|problem| problem.severity == Severity::Error);
    let text = match args.format {
        Format::Json => format!("{}\n", render::json(&problems)),
        Format::Text if problems.is_empty() => {
            format!("{count} {} checked, no problem found\n", if count == 1 { "file" } else { "files" })
        }
        Format::Text => {
            let sources = &findings.sources;
            render::terminal(&problems, |name| sources.get(name), Colour::Never)
        }
    };
    output::print(&text)?;
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

/// Checks one file by its kind.
fn one(file: &Path, here: &Path, tasks: &[Callable], findings: &mut Findings) {
    let name = file.display().to_string();
    let path = here.join(file);
    if let Err(error) = std::fs::metadata(&path) {
        return findings.unreadable(&name, &error.to_string());
    }
    match Kind::of(file) {
        Some(Kind::Workflow) => workflow(&name, &path, here, tasks, findings),
        Some(Kind::Template) => template::check(&name, &path, findings),
        Some(Kind::Config) => {
            let (problems, source) = config::check_file(&path, &name);
            findings.add(problems, source);
        }
        None => {
            let message = format!("`{name}` is of no kind that can be checked");
            let help =
                "workflows end in .fusee, templates in .xml; the configuration is fusee.toml or config.toml";
            findings.problems.push(Diagnostic::file_error("unknown-kind", name, message).help(help));
        }
    }
}

/// What a workflow may call here beside tools.
fn tasks(process: &Process) -> Vec<Callable> {
    let Ok(project) = Project::find(None, &process.environment) else { return Vec::new() };
    let mut tasks = templates::callables(&templates::gather(&project, &process.environment).registry);
    let workflows = registered::workflows(&project, &process.environment);
    tasks.extend(workflows.iter().map(registered::Registered::callable));
    tasks
}

fn workflow(name: &str, path: &Path, here: &Path, tasks: &[Callable], findings: &mut Findings) {
    let text = match Loading::read(path) {
        Ok(text) => text,
        Err(why) => return findings.unreadable(name, &why),
    };
    let source = Source::new(name, text);
    let catalog = catalog(standard_tools().definitions(), tasks);
    let compiled = lang::compile(&source, &catalog, &mut Loading::from_disk(here));
    findings.add(compiled.diagnostics, compiled.sources);
}
