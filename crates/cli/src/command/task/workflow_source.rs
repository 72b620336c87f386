//! Finds the workflow given to `fusee task` and checks it.

use std::io::Read as _;
use std::sync::Arc;

use fusee::engine::lang::{CallableKind, Catalog, GET_CONTEXT, Program, compile};
use fusee::engine::run::WorkflowRun;
use fusee::engine::template::LoadedTemplates;
use fusee::engine::text::render::{self, Colour};
use fusee::engine::text::{Diagnostic, Source, suggest};
use fusee::engine::workflow::{MAX_BYTES, WorkflowLoader, catalog, standard_tools};
use serde_json::{Map, Value};

use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::{template_source, workflow_registry};

/// Name of a workflow without a file.
const UNNAMED: &str = "workflow";

/// A workflow that has passed all checks.
pub(super) struct CheckedWorkflow {
    pub(super) workflow: WorkflowRun,
    pub(super) program: Arc<Program>,
    warnings: SourceProblems,
}

/// Diagnostics and the sources they refer to.
pub(super) struct SourceProblems {
    pub(super) found: Vec<Diagnostic>,
    pub(super) sources: Vec<Source>,
}

impl SourceProblems {
    /// Renders them with their source lines.
    pub(super) fn rendered(&self) -> String {
        let source_of = |name: &str| self.sources.iter().find(|source| &**source.name() == name);
        render::terminal(&self.found, source_of, Colour::Never)
    }
}

impl CheckedWorkflow {
    /// Prints the warnings to stderr.
    pub(super) fn warn(&self) {
        if let Some(text) = self.rendered_warnings() {
            stdio::error(&text);
        }
    }

    /// Rendered warnings, if any.
    pub(super) fn rendered_warnings(&self) -> Option<String> {
        (!self.warnings.found.is_empty()).then(|| self.warnings.rendered())
    }
}

/// Whether the argument is a workflow: by its syntax, its file extension, or the name of a registered one.
pub(super) fn is_workflow(named: &str, project: &Project, process: &Process) -> bool {
    named == "-"
        || named.trim_start().starts_with(['(', ';', '\''])
        || named.ends_with(".fusee")
        || workflow_registry::workflows(project, &process.environment).iter().any(|known| known.name == named)
}

/// The names of all registered workflows.
pub(super) fn names(project: &Project, process: &Process) -> Vec<String> {
    workflow_registry::workflows(project, &process.environment)
        .into_iter()
        .map(|workflow| workflow.name)
        .collect()
}

/// Finds and checks the named workflow.
pub(super) fn checked(
    named: &str,
    project: &Project,
    loaded: &LoadedTemplates,
    process: &Process,
) -> Result<Result<CheckedWorkflow, SourceProblems>, CliError> {
    let here = process.environment.directory();
    let registered = workflow_registry::workflows(project, &process.environment);
    let (name, text) = if named == "-" {
        ("<stdin>".to_owned(), stdin()?)
    } else if named.trim_start().starts_with(['(', ';', '\'']) {
        (UNNAMED.to_owned(), named.to_owned())
    } else if named.ends_with(".fusee") {
        let text = WorkflowLoader::read(&here.join(named))
            .map_err(|why| CliError::usage(format!("cannot read the workflow {named}: {why}")))?;
        (named.to_owned(), text)
    } else {
        let found = registered.iter().find(|workflow| workflow.name == named);
        let found =
            found.ok_or_else(|| unknown(named, registered.iter().map(|other| other.name.as_str())))?;
        (found.file.clone(), found.text.clone())
    };
    let mut tasks: Vec<_> = template_source::callables(&loaded.registry);
    tasks.extend(registered.iter().map(workflow_registry::NamedWorkflow::callable));
    let catalog = catalog(standard_tools().definitions(), &tasks);
    let source = Source::new(name.as_str(), text.as_str());
    let mut loading = WorkflowLoader::from_disk(here);
    let compiled = compile(&source, &catalog, &mut loading);
    let problems = SourceProblems { found: compiled.diagnostics.into_sorted(), sources: compiled.sources };
    Ok(match compiled.program {
        None => Err(problems),
        Some(program) => {
            let used = used(&program, &catalog);
            let library = workflow_registry::library(&used, &registered, &tasks);
            let tasks = tasks.into_iter().filter(|task| used.contains(&task.name)).collect();
            let workflow =
                WorkflowRun { name, text, files: loading.files, inputs: Map::new(), tasks, library };
            Ok(CheckedWorkflow { workflow, program, warnings: problems })
        }
    })
}

/// The callees of a program; all registered tasks if it computes a name.
fn used(program: &Program, catalog: &Catalog) -> Vec<String> {
    if program.calls().any(|call| call.callee.is_none()) {
        return catalog.names().map(str::to_owned).collect();
    }
    program.calls().filter_map(|call| call.callee).map(str::to_owned).collect()
}

/// Whether a program, or a workflow it calls, may start a task that needs a model.
pub(super) fn asks_a_model(program: &Program, workflow: &WorkflowRun) -> bool {
    let asks = |program: &Program, catalog: &Catalog| {
        program.calls().any(|call| match call.callee {
            // The file index answers without a model.
            Some(GET_CONTEXT) => false,
            Some(name) if call.atom.is_none() => {
                let is_task = catalog.find(name).is_none_or(|callable| callable.kind == CallableKind::Task);
                is_task && !workflow.library.contains_key(name)
            }
            _ => true,
        })
    };
    let known = |workflow: &WorkflowRun| catalog(standard_tools().definitions(), &workflow.tasks);
    asks(program, &known(workflow))
        || workflow.library.values().any(|called| {
            let (source, catalog) = (Source::new(called.name.as_str(), called.text.as_str()), known(called));
            let compiled = compile(&source, &catalog, &mut WorkflowLoader::from_files(called.files.clone()));
            compiled.program.is_some_and(|program| asks(&program, &catalog))
        })
}

/// Parses `key=value` words by the program's parameter types.
pub(super) fn inputs(words: &[String], program: &Program) -> Result<Map<String, Value>, String> {
    let (mut inputs, mut problems) = (Map::new(), Vec::new());
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            problems.push(format!("`{word}` is not a parameter; expected KEY=VALUE"));
            continue;
        };
        let kind =
            program.params().find(|param| param.name == key).map(|param| param.kind).unwrap_or_default();
        match kind.parse(value) {
            Ok(value) if inputs.contains_key(key) => {
                problems.push(format!("parameter `{key}` is given twice, the second time as {value}"));
            }
            Ok(value) => {
                inputs.insert(key.to_owned(), value);
            }
            Err(why) => problems.push(format!("parameter `{key}`: {why}")),
        }
    }
    if problems.is_empty() { Ok(inputs) } else { Err(problems.join("; ")) }
}

fn unknown<'a>(named: &str, names: impl Iterator<Item = &'a str>) -> CliError {
    let failure = CliError::usage(format!("unknown workflow or template `{named}`"));
    failure.help(suggest::did_you_mean(named, names).unwrap_or_else(|| {
        "pass a workflow in parentheses, a .fusee file, or the name of one in .fusee/workflows".to_owned()
    }))
}

fn stdin() -> Result<String, CliError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| CliError::usage(format!("cannot read the workflow from stdin: {error}")))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(CliError::usage(format!("the workflow on stdin is larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(text)
}
