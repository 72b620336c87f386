//! Resolves and checks the task after `/task` in the chat, like `fusee task` but without printing anything.

use fusee::engine::dispatch;
use fusee::engine::lang::{EvaluationLimits, Machine};
use fusee::engine::run::{RunKind, WorkflowRun};
use fusee::engine::template::LoadedTemplates;

use super::template::{self, TemplateInvocation};
use super::{dry_run, messages, workflow_source};
use crate::process::Process;
use crate::process::error::CliError;
use crate::project::Project;
use crate::project::template_source::ReloadingTemplates;

/// A checked task.
pub(crate) struct ReadyTask {
    /// The title of its run in listings.
    pub(crate) title: String,
    pub(crate) work: RunKind,
    /// The model its template requests.
    pub(crate) model: Option<String>,
    /// Whether it may start a task that needs a model.
    pub(crate) asks_a_model: bool,
    /// Whether every effect is logged.
    pub(crate) trace: bool,
    /// The templates as loaded for it.
    pub(crate) loaded: LoadedTemplates,
    /// Warnings that do not prevent the run.
    pub(crate) notes: Vec<String>,
}

/// Resolves a line to a task and checks it completely.
pub(crate) fn ready(
    line: &str,
    templates: &mut ReloadingTemplates,
    project: &Project,
    process: &Process,
) -> Result<ReadyTask, CliError> {
    let line = line.trim();
    let title = |line: &str| if line.starts_with('(') { line.to_owned() } else { format!("/task {line}") };
    let words = match line.starts_with('(') {
        true => vec![line.to_owned()],
        false => {
            dispatch::split(line).map_err(|problem| CliError::usage(format!("`/task {line}`: {problem}")))?
        }
    };
    let Some((named, inputs)) = words.split_first() else {
        return Err(CliError::usage("missing task")
            .help("name a template or workflow and its inputs: /task NAME key=value, or /task (+ 1 2)"));
    };
    if named == "-" {
        return Err(CliError::usage("stdin is used by the chat").help("name a .fusee file"));
    }
    let (loaded, said) = templates.gather(project, &process.environment);
    let notes: Vec<String> = said.into_iter().collect();
    resolve(title(line), named, inputs, loaded, notes, project, process)
}

/// Resolves a name and `key=value` words to a task and checks it completely.
pub(crate) fn resolve(
    title: String,
    named: &str,
    inputs: &[String],
    loaded: LoadedTemplates,
    notes: Vec<String>,
    project: &Project,
    process: &Process,
) -> Result<ReadyTask, CliError> {
    if workflow_source::is_workflow(named, project, process) {
        return workflow(title, named, inputs, loaded, notes, project, process);
    }
    match template::asked(named, inputs, &loaded, &workflow_source::names(project, process))? {
        TemplateInvocation::Workflow(text) => workflow(title, &text, &[], loaded, notes, project, process),
        TemplateInvocation::Tool(name) => {
            workflow(title, &template::tool_call(&name, inputs)?, &[], loaded, notes, project, process)
        }
        TemplateInvocation::Template { found, words, guessed } => {
            let mut notes = notes;
            notes.extend(guessed.then(|| template::guess(&found)));
            let work = template::work(&found, &words)?;
            let model = template::model(&found.template);
            Ok(ReadyTask { title, work, model, asks_a_model: true, trace: false, loaded, notes })
        }
    }
}

fn workflow(
    title: String,
    named: &str,
    words: &[String],
    loaded: LoadedTemplates,
    mut notes: Vec<String>,
    project: &Project,
    process: &Process,
) -> Result<ReadyTask, CliError> {
    let checked = workflow_source::checked(named, project, &loaded, process)?;
    let checked = checked.map_err(|problems| CliError::rendered(problems.rendered()))?;
    notes.extend(checked.rendered_warnings());
    let wrong = |message: String| CliError::usage(message).help(messages::INPUTS_HELP);
    let inputs = workflow_source::inputs(words, &checked.program).map_err(wrong)?;
    if let Err(problems) = Machine::start(&checked.program, &inputs, EvaluationLimits::default()) {
        let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        return Err(wrong(messages.join("; ")));
    }
    let work = WorkflowRun { inputs, ..checked.workflow };
    let asks_a_model = workflow_source::asks_a_model(&checked.program, &work);
    let work = RunKind::Workflow(Box::new(work));
    Ok(ReadyTask { title, work, model: None, asks_a_model, trace: false, loaded, notes })
}

/// What a task would do: the first request of a template, or the calls of a workflow as text.
pub(crate) enum TaskPreview {
    /// System prompt and request.
    Template(String, String),
    /// The plan of `fusee task --dry-run`.
    Workflow(String),
}

/// Describes a checked task without running it.
pub(crate) async fn preview(
    task: &ReadyTask,
    project: &Project,
    process: &Process,
) -> Result<TaskPreview, CliError> {
    match &task.work {
        RunKind::Template(template) => {
            let found = task.loaded.registry.find_template(&template.name);
            let found =
                found.map_err(|_| CliError::usage(format!("unknown template `{}`", template.name)))?;
            let (system, request) = template::first_request(found, &template.inputs, project).await?;
            Ok(TaskPreview::Template(system, request))
        }
        RunKind::Workflow(workflow) => {
            let checked = workflow_source::checked(&workflow.text, project, &task.loaded, process)?;
            let checked = checked.map_err(|problems| CliError::rendered(problems.rendered()))?;
            let text = dry_run::describe(&checked, &workflow.inputs, &task.loaded, project).await;
            Ok(TaskPreview::Workflow(text))
        }
        RunKind::Request => Err(CliError::failed("a request is no task")),
    }
}
