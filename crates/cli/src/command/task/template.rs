//! `fusee task` for everything but workflows: a template, a tool, a request in plain words.

use std::sync::Arc;

use fusee::engine::dispatch::{self, Dispatcher, TaskRef};
use fusee::engine::journal::Clock as _;
use fusee::engine::model::tokens;
use fusee::engine::prompt;
use fusee::engine::run::{ExitStatus, RunKind, TemplateRun};
use fusee::engine::task_system::file_reader;
use fusee::engine::task_system::{
    ErrorType, ExecutionPath, Preview, Reason, ResourceMetrics, SubtaskRequest, TaskError, check_tools,
    preview, ready,
};
use fusee::engine::template::{LoadedTemplates, RegisteredTemplate, Template, TemplateMatch};
use fusee::engine::text::{Severity, Source, xml};
use fusee::engine::tools::Workspace;
use fusee::engine::workflow::standard_tools;
use fusee::system::SystemClock;
use serde_json::{Map, Value, json};

use super::tool;
use crate::command::templates::inputs_help;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::template_source;

/// A resolved TASK argument.
pub(crate) enum TemplateInvocation {
    /// A workflow, as text.
    Workflow(String),
    /// A tool, by name.
    Tool(String),
    /// A template with these words.
    Template {
        found: Arc<RegisteredTemplate>,
        words: Vec<String>,
        /// Whether it was matched from a plain-text request rather than named.
        guessed: bool,
    },
}

/// Why a task cannot run.
pub(crate) struct TaskRejection {
    error: TaskError,
    named: String,
    path: ExecutionPath,
}

impl TaskRejection {
    /// Prints the error and returns the exit code.
    pub(super) fn print_error(&self, json: bool) -> Result<ExitStatus, CliError> {
        refuse(json, &self.error, &self.named, self.path)
    }
}

impl From<TaskRejection> for CliError {
    fn from(refusal: TaskRejection) -> Self {
        rejected(&refusal.error)
    }
}

/// The notice about a template that was matched rather than named.
pub(super) fn guess(found: &RegisteredTemplate) -> String {
    format!("using template `{}`", found.template.name)
}

/// Resolves the argument to a workflow, template or tool.
pub(super) fn asked(
    named: &str,
    inputs: &[String],
    loaded: &LoadedTemplates,
    workflows: &[String],
) -> Result<TemplateInvocation, TaskRejection> {
    let plain: Vec<&str> = std::iter::once(named)
        .chain(inputs.iter().map(String::as_str).filter(|word| !word.contains('=')))
        .collect();
    let sentence = plain.join(" ");
    let given = || inputs.iter().filter(|word| word.contains('=')).cloned().collect::<Vec<_>>();
    let tools = standard_tools();
    if let Some(error) = broken(named, loaded) {
        return Err(TaskRejection { error, named: named.to_owned(), path: ExecutionPath::Template });
    }
    let dispatcher = Dispatcher { registry: &loaded.registry, tools: &tools };
    match dispatcher.resolve(named, &sentence) {
        TaskRef::Workflow => Ok(TemplateInvocation::Workflow(named.to_owned())),
        TaskRef::Template(found) => {
            Ok(TemplateInvocation::Template { found, words: inputs.to_vec(), guessed: false })
        }
        TaskRef::Tool(name) => Ok(TemplateInvocation::Tool(name)),
        TaskRef::Ambiguous(several) => {
            let error = TaskError::failure(Reason::TemplateNotFound, several);
            Err(TaskRejection { error, named: named.to_owned(), path: ExecutionPath::Template })
        }
        // A single word is a name, and nothing has this name.
        TaskRef::Words(found) if !sentence.contains(char::is_whitespace) => {
            let templates = loaded.registry.all().into_iter().map(|found| found.template.name.as_str());
            let known = templates
                .chain(workflows.iter().map(String::as_str))
                .chain(tools.definitions().map(|tool| tool.name.as_ref()));
            let near =
                fusee::engine::text::suggest::did_you_mean(named, known).map(|near| format!("; {near}"));
            let message = format!("unknown template, workflow or tool `{named}`{}", near.unwrap_or_default());
            Err(not_found(named, message, &found))
        }
        TaskRef::Words(found) => match dispatch::clear(&found) {
            Some(best) => {
                Ok(TemplateInvocation::Template { found: Arc::clone(best), words: given(), guessed: true })
            }
            None => {
                let message = format!("no template clearly matches `{sentence}`");
                Err(not_found(&sentence, message, &found))
            }
        },
    }
}

/// The errors of a skipped template with this name; it must not be replaced by another template of the same
/// name.
fn broken(named: &str, loaded: &LoadedTemplates) -> Option<TaskError> {
    let calls_itself = |source: &&Source| {
        let (document, _) = xml::read(source);
        let root = document.root().map(|root| document.element(root));
        let own = root.and_then(|task| task.attribute("name")).map(|name| name.value.trim());
        let file = std::path::Path::new(&**source.name()).file_stem().and_then(|stem| stem.to_str());
        own.map_or(file == Some(named), |own| own == named)
    };
    let source = loaded.sources.iter().find(calls_itself)?;
    let known = loaded.registry.find_template(named);
    if known.is_ok_and(|known| known.text.file == **source.name()) {
        // It keeps the version before the edit that broke it.
        return None;
    }
    let problems: Vec<String> = (loaded.problems.iter())
        .filter(|problem| problem.file == *source.name() && problem.severity == Severity::Error)
        .map(|problem| format!("{}:{}: {}", problem.file, problem.start, problem.message))
        .collect();
    let error = TaskError::invalid(Reason::XmlValidationFailure, problems.join("; "));
    let kind = if xml::read(source).1.has_errors() { ErrorType::XmlParseError } else { error.kind };
    (!problems.is_empty()).then_some(TaskError { kind, ..error })
}

/// A tool call as a workflow with one form.
pub(super) fn tool_call(name: &str, inputs: &[String]) -> Result<String, TaskRejection> {
    tool::call(name, inputs, &standard_tools()).map_err(|problem| TaskRejection {
        error: TaskError::failure(Reason::InputValidationFailure, problem),
        named: name.to_owned(),
        path: ExecutionPath::Tool,
    })
}

fn not_found(named: &str, message: String, near: &[TemplateMatch]) -> TaskRejection {
    let listed: Vec<String> = near
        .iter()
        .map(|found| {
            let template = &found.registered.template;
            let needed = template.inputs.iter().filter(|input| input.default.is_none());
            let needed: Vec<String> = needed.map(|input| format!("{}=…", input.name)).collect();
            let words: Vec<String> = std::iter::once(template.name.clone()).chain(needed).collect();
            format!("{} ({:.2})", words.join(" "), found.score)
        })
        .collect();
    let message = match listed.as_slice() {
        [] => message,
        _ if message.ends_with('?') => message,
        listed => format!("{message}; similar templates: {}", listed.join(", ")),
    };
    let error = TaskError::failure(Reason::TemplateNotFound, message);
    TaskRejection { error, named: named.to_owned(), path: ExecutionPath::Template }
}

/// What to do about a task that cannot run: a command where one helps.
fn next_step(error: &TaskError) -> &'static str {
    match error.reason {
        Some(Reason::XmlValidationFailure) => {
            "run `fusee check` to see every problem of the template with its position"
        }
        Some(Reason::TemplateNotFound) => "run `fusee templates` to list the available templates",
        _ => error.recovery(),
    }
}

/// Prints the error, also as JSON if requested, and returns the exit code.
pub(crate) fn refuse(
    json: bool,
    error: &TaskError,
    named: &str,
    path: ExecutionPath,
) -> Result<ExitStatus, CliError> {
    if !json {
        return Err(rejected(error));
    }
    stdio::error(&format!("error: {}\n  help: {}\n", error.message, next_step(error)));
    print_refusal(error, named, path)?;
    Ok(ExitStatus::of_error(error))
}

fn rejected(error: &TaskError) -> CliError {
    let reason = error.reason.map(Reason::as_str);
    let rejected = CliError::usage(error.message.clone()).help(next_step(error));
    CliError { exit: ExitStatus::of_error(error), reason, ..rejected }
}

/// Prints the result of a task that could not start as JSON.
pub(super) fn print_refusal(error: &TaskError, named: &str, path: ExecutionPath) -> Result<(), CliError> {
    let metrics = ResourceMetrics::default();
    let mut result = error.clone().measured(metrics).to_result("");
    result.note("template_used", named);
    result.note("context_source", "none");
    result.note("context_files_count", 0);
    result.note("execution_path", path);
    metrics.note_in(&mut result);
    stdio::print_json(&format!("{}\n", serde_json::to_string(&result).unwrap_or_default()))
}

/// Prints the usage of a template.
pub(super) fn help(found: &RegisteredTemplate) -> Result<ExitStatus, CliError> {
    let template = &found.template;
    let words = template.inputs.iter().map(|input| match input.default {
        None => format!(" {}=…", input.name),
        Some(_) => format!(" [{}=…]", input.name),
    });
    let usage: String = words.collect();
    let inputs =
        if template.inputs.is_empty() { "  none\n".to_owned() } else { inputs_help(&template.inputs) };
    stdio::print(&format!(
        "{}\n\nUsage: fusee task {}{usage}\n\nInputs:\n{inputs}\nFrom {} ({})\n",
        template.description,
        template.name,
        found.text.file,
        found.layer.as_str()
    ))?;
    Ok(ExitStatus::Completed)
}

/// The work of a run with this template, or why it cannot run.
pub(crate) fn work(found: &RegisteredTemplate, words: &[String]) -> Result<RunKind, TaskRejection> {
    let name = &found.template.name;
    let (inputs, problems) = dispatch::inputs(words, &found.template);
    let request = SubtaskRequest::named(name.as_str(), inputs);
    let checked = match ready(&found.template, &request) {
        Ok(_) if problems.is_empty() => check_tools(&standard_tools(), &found.template).map(|()| request),
        Ok(_) => {
            let message = format!("invalid inputs for `{name}`: {}", problems.join("; "));
            Err(TaskError::failure(Reason::InputValidationFailure, message))
        }
        Err(error) if error.reason == Some(Reason::InputValidationFailure) && !problems.is_empty() => {
            Err(TaskError { message: format!("{}; {}", error.message, problems.join("; ")), ..error })
        }
        Err(error) => Err(error),
    };
    match checked {
        Err(error) => Err(TaskRejection { error, named: name.clone(), path: ExecutionPath::Template }),
        Ok(request) => Ok(RunKind::Template(Box::new(TemplateRun {
            name: name.clone(),
            file: found.text.file.clone(),
            text: found.text.text.clone(),
            inputs: request.inputs,
            limits: None,
        }))),
    }
}

/// Tokens of the first prompt of a template with these inputs, as far as it is known before a run; `None` if there is
/// no such template or it cannot be rendered.
pub(super) async fn prompt_tokens(
    name: &str,
    inputs: &Map<String, Value>,
    loaded: &LoadedTemplates,
    project: &Project,
) -> Option<usize> {
    let found = loaded.registry.find_template(name).ok()?;
    let request = SubtaskRequest::named(name, inputs.clone());
    let shown = render(&found.template, &request, project).await.ok()?.ok()?;
    Some(count_tokens(shown.composed.system.text()) + count_tokens(&shown.composed.request))
}

/// The prompt of a template as a run in this project would send it.
async fn render(
    template: &Template,
    request: &SubtaskRequest,
    project: &Project,
) -> Result<Result<Preview, TaskError>, CliError> {
    let workspace =
        Workspace::open(&project.directory).map_err(|error| CliError::usage(error.to_string()))?;
    let workspace = Arc::new(workspace);
    let memory = file_reader::memory(&workspace, None);
    let environment = prompt::EnvironmentSnapshot::capture(&project.directory, SystemClock.now_ms());
    Ok(preview(template, request, &workspace, &memory, &environment).await)
}

fn count_tokens(text: &str) -> usize {
    tokens::exact_count(text).unwrap_or(text.len() / 4)
}

/// The system prompt and the request that the model of a template would get.
pub(super) async fn first_request(
    found: &RegisteredTemplate,
    inputs: &Map<String, Value>,
    project: &Project,
) -> Result<(String, String), CliError> {
    let request = SubtaskRequest::named(found.template.name.as_str(), inputs.clone());
    let shown = render(&found.template, &request, project).await?;
    let shown = shown.map_err(|error| CliError::usage(error.message))?;
    Ok((shown.composed.system.text().to_owned(), shown.composed.request))
}

/// Prints the prompt a model would get, without running anything.
pub(super) async fn dry_run(
    found: &RegisteredTemplate,
    work: &RunKind,
    json: bool,
    project: &Project,
) -> Result<ExitStatus, CliError> {
    let RunKind::Template(task) = work else { return Ok(ExitStatus::Completed) };
    let request = SubtaskRequest::named(task.name.as_str(), task.inputs.clone());
    let shown = match render(&found.template, &request, project).await? {
        Ok(shown) => shown,
        Err(error) => return refuse(json, &error, &task.name, ExecutionPath::Template),
    };
    let (system, asked) = (shown.composed.system.text(), &shown.composed.request);
    let (system_tokens, asked_tokens) = (count_tokens(system), count_tokens(asked));
    let text = if json {
        let plan = json!({
            "template": task.name,
            "system": system,
            "request": asked,
            "tokens": { "system": system_tokens, "request": asked_tokens },
            "context_source": shown.prepared.source(),
            "files": shown.prepared.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            "left_out": shown.left_out,
        });
        format!("{plan}\n")
    } else {
        let left: String =
            shown.left_out.iter().map(|what| format!("\n[known only during a run: {what}]\n")).collect();
        format!(
            "template {} ({})\n\n--- system, {system_tokens} tokens ---\n{system}\n\n--- request, {asked_tokens} tokens \
             ---\n{asked}\n{left}",
            task.name, task.file
        )
    };
    stdio::print_as(json, &text)?;
    Ok(ExitStatus::Completed)
}

/// Loads the templates and warns about invalid ones.
pub(super) fn gather(project: &Project, process: &Process) -> LoadedTemplates {
    let loaded = template_source::gather(project, &process.environment);
    template_source::warn(&loaded);
    loaded
}

/// The model a template requests, in the form `--model` takes.
pub(crate) fn model(template: &fusee::engine::template::Template) -> Option<String> {
    let model = template.model.as_ref()?;
    Some(match &template.provider {
        Some(provider) if !model.contains(':') => format!("{provider}:{model}"),
        _ => model.clone(),
    })
}
