//! The work of a run: a request, a workflow or a template.

use std::collections::BTreeMap;

use fusee_engine::journal::RunId;
use fusee_engine::lang::compile;
use fusee_engine::model::Message;
use fusee_engine::prompt::{Prompt, RenderProblem, TaskFields};
use fusee_engine::run::{PromptText, RunBuilder, RunKind, RunSpec, TemplateRun, WorkflowRun, callable};
use fusee_engine::task_system::{SubtaskRequest, ready};
use fusee_engine::template::{Template, TemplateRegistry};
use fusee_engine::text::render::{self, Colour};
use fusee_engine::text::{Diagnostic, Source};
use fusee_engine::tools::Tool;
use fusee_engine::workflow::{WorkflowLoader, catalog, standard_tools};
use serde_json::{Map, Value};

use crate::Error;

/// A task for an [`Agent`](crate::Agent). Text converts into a request.
#[derive(Clone, Debug)]
pub struct Task {
    kind: TaskKind,
    inputs: Map<String, Value>,
    background: Option<String>,
    /// Messages that precede the request.
    conversation: Vec<Message>,
    prompt: Option<PromptText>,
    pub(crate) continues: Option<RunId>,
    pub(crate) review: bool,
    pub(crate) run_id: Option<RunId>,
}

#[derive(Clone, Debug)]
enum TaskKind {
    Request(String),
    Workflow(String),
    Template(String),
}

impl Task {
    /// A request in plain words.
    pub fn request(text: impl Into<String>) -> Self {
        Self::new(TaskKind::Request(text.into()))
    }

    /// A request at the end of a conversation: the last item is the user's message.
    pub fn conversation(mut items: Vec<Message>) -> Self {
        let request = match items.pop() {
            Some(Message::User { text, .. }) => text,
            other => {
                items.extend(other);
                String::new()
            }
        };
        Self { conversation: items, ..Self::request(request) }
    }

    /// A workflow from its text: a program of tasks and tool calls. It may call the agent's templates.
    pub fn workflow(text: impl Into<String>) -> Self {
        Self::new(TaskKind::Workflow(text.into()))
    }

    /// The task of a template, from its XML text.
    pub fn template(text: impl Into<String>) -> Self {
        Self::new(TaskKind::Template(text.into()))
    }

    /// A task of your own type with a prompt built for it. Its fields `request` and `background` are the request
    /// and its context; the others fill the placeholders of the prompt's sections.
    pub fn prompted<T: TaskFields>(prompt: &Prompt<T>, task: &T) -> Result<Self, RenderProblem> {
        let RunSpec { request, background, prompt, .. } =
            RunSpec::prompted(prompt, task, "", std::path::Path::new(""))?;
        Ok(Self { background, prompt, ..Self::request(request) })
    }

    fn new(kind: TaskKind) -> Self {
        Self {
            kind,
            inputs: Map::new(),
            background: None,
            conversation: Vec::new(),
            prompt: None,
            continues: None,
            review: false,
            run_id: None,
        }
    }

    /// Sets an input of a template or a parameter of a workflow.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.inputs.insert(name.into(), value.into());
        self
    }

    /// Adds context to a request.
    #[must_use]
    pub fn background(mut self, text: impl Into<String>) -> Self {
        self.background = Some(text.into());
        self
    }

    /// Puts the task in review mode: it reads and explains, and every other call needs approval.
    #[must_use]
    pub fn review(mut self) -> Self {
        self.review = true;
        self
    }

    /// Continues the conversation of an earlier run that has ended.
    #[must_use]
    pub fn continues(mut self, run: &RunId) -> Self {
        self.continues = Some(run.clone());
        self
    }

    /// Sets the id of the run [default: a new UUID].
    #[must_use]
    pub fn run_id(mut self, run: RunId) -> Self {
        self.run_id = Some(run);
        self
    }

    /// Adds the task to a run, checking workflows and templates completely.
    pub(crate) fn add_to(self, builder: &mut RunBuilder) -> Result<(), Error> {
        builder.spec.background = self.background;
        builder.spec.input = self.conversation;
        builder.spec.prompt = self.prompt;
        builder.spec.continues = self.continues;
        match self.kind {
            TaskKind::Request(text) if text.trim().is_empty() => return Err(Error::NoRequest),
            TaskKind::Request(text) => builder.spec.request = text,
            TaskKind::Workflow(text) => {
                let work = workflow(&text, self.inputs, builder)?;
                builder.spec.request = text;
                builder.spec.work = RunKind::Workflow(Box::new(work));
            }
            TaskKind::Template(text) => {
                let (template, _) = parse(&text)?;
                let request = SubtaskRequest::named(template.name.as_str(), self.inputs);
                ready(&template, &request).map_err(|error| Error::Template(error.message))?;
                builder.spec.request = template.name.clone();
                builder.spec.work = RunKind::Template(Box::new(TemplateRun {
                    name: template.name,
                    file: UNNAMED.to_owned(),
                    text,
                    inputs: request.inputs,
                    limits: None,
                }));
            }
        }
        Ok(())
    }
}

impl<T: Into<String>> From<T> for Task {
    fn from(text: T) -> Self {
        Self::request(text)
    }
}

/// Stands in for a file name.
pub(crate) const UNNAMED: &str = "text";

fn workflow(text: &str, inputs: Map<String, Value>, builder: &RunBuilder) -> Result<WorkflowRun, Error> {
    let registry: &TemplateRegistry = &builder.deps.templates.registry;
    let tasks: Vec<_> = registry.all().into_iter().map(|known| callable(&known.template)).collect();
    let standard = standard_tools();
    let own = builder.deps.extra_tools.iter().map(|tool| Tool::definition(&**tool));
    let catalog = catalog(standard.definitions().chain(own), &tasks);
    let source = Source::new(UNNAMED, text);
    let compiled = compile(&source, &catalog, &mut WorkflowLoader::from_files(BTreeMap::new()));
    if compiled.program.is_none() {
        return Err(Error::Workflow(rendered(&compiled.diagnostics.into_sorted(), &source)));
    }
    Ok(WorkflowRun {
        name: UNNAMED.to_owned(),
        text: text.to_owned(),
        inputs,
        tasks,
        ..WorkflowRun::default()
    })
}

/// Parses a template; its mistakes are reported with their source lines.
pub(crate) fn parse(text: &str) -> Result<(Template, Source), Error> {
    let source = Source::new(UNNAMED, text);
    match Template::read(&source) {
        (Some(template), _) => Ok((template, source)),
        (None, problems) => Err(Error::Template(rendered(&problems.into_sorted(), &source))),
    }
}

fn rendered(problems: &[Diagnostic], source: &Source) -> String {
    render::terminal(problems, |_| Some(source), Colour::Never)
}
