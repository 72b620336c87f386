//! An agent: a model, its tools, a workspace and a journal, from which runs are started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee_engine::agent::{JsonAnswer, Limits, ReviewPolicy};
use fusee_engine::approval::{AnsweredOutside, ApprovalMode, Approver, NonInteractive};
use fusee_engine::journal::event::TaskStatus;
use fusee_engine::journal::{Journal, JournalOptions, RunId};
use fusee_engine::model::{
    Connection, ConnectionOverrides, Dialect, Model, Models, RequestOptions, ResolvedModel, Secret, Wire,
};
use fusee_engine::run::{
    self, ActiveSandbox, RunBuilder, SandboxMode, SandboxOptions, StartError, TemplateSource,
};
use fusee_engine::template::{RegisteredTemplate, TemplateLayer, TemplateRegistry, TemplateText};
use fusee_engine::tools::tool::computer::DisplayNumber;
use fusee_engine::tools::{CommandEnvironment, CommandSettings, ForkServer, Secrets, Tool, Toolbox};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use crate::run::{Run, ended};
use crate::system::{SystemClock, jitter, new_run_id, now};
use crate::task::{Task, UNNAMED, parse};
use crate::tool::schema_of;
use crate::{AgentTask, Error, EventEmitter, Outcome, Session, TurnContext};

/// A model with its tools, a workspace and a journal. Cheap to clone; clones share all of them.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
}

struct Shared {
    resolved: ResolvedModel,
    model: Arc<dyn Model>,
    journal: Journal,
    workspace: PathBuf,
    tools: Vec<Arc<dyn Tool>>,
    templates: TemplateSource,
    context: TurnContext,
    approver: Option<Arc<dyn Approver>>,
    sandbox_mode: SandboxMode,
    sandbox_options: SandboxOptions,
    commands: CommandSettings,
    /// Set up at the first run, because it probes the system.
    sandbox: OnceCell<ActiveSandbox>,
}

impl Agent {
    /// An agent with the model of this name: `openai:gpt-5`, `anthropic:…`, `ollama:…`, `script:FILE`, or a plain
    /// name together with [`AgentBuilder::base_url`].
    pub fn builder(model: impl Into<String>) -> AgentBuilder {
        AgentBuilder::new(ModelSource::Name(model.into()))
    }

    /// An agent with a model of your own.
    pub fn with_model(model: impl Model + 'static) -> AgentBuilder {
        AgentBuilder::new(ModelSource::Own(Arc::new(model)))
    }

    /// Starts a run: a request in plain words, or any [`Task`].
    pub async fn start(&self, task: impl Into<Task>) -> Result<Run, Error> {
        self.start_with(task.into(), None, self.turn_context()).await
    }

    /// Runs a task to its end and returns its answer as a value of type `T`. The model is told the JSON Schema of
    /// the type; the model gets one more try if its answer does not match.
    pub async fn ask<T: DeserializeOwned + JsonSchema>(&self, task: impl Into<Task>) -> Result<T, Error> {
        let schema = schema_of::<T>();
        let check = JsonAnswer::new(&schema)
            .map_err(|problem| Error::WrongAnswer { answer: String::new(), problem })?;
        let outcome =
            self.start_with(task.into(), Some(schema), self.turn_context()).await?.outcome().await?;
        if outcome.status != TaskStatus::Completed {
            return Err(Error::NoAnswer(Box::new(outcome)));
        }
        let value = check
            .read(&outcome.answer)
            .and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()));
        value.map_err(|problem| Error::WrongAnswer { answer: outcome.answer, problem })
    }

    /// A task with listeners, in a session of its own. It starts with [`AgentTask::run`].
    pub fn task(&self, task: impl Into<Task>) -> Result<AgentTask, Error> {
        let task = task.into();
        let id = task.run_id.clone().map_or_else(new_run_id, Ok).map_err(Error::RunId)?;
        Ok(AgentTask::from_parts(Session::new(self.clone()), id, task, EventEmitter::new()))
    }

    /// What the turns of the agent's tasks are asked with.
    pub fn turn_context(&self) -> &TurnContext {
        &self.shared.context
    }

    /// The directory that the tools work in.
    pub fn workspace(&self) -> &Path {
        &self.shared.workspace
    }

    /// Resumes a run after its last journaled step, with the settings it was started with and this agent's model,
    /// tools and approval mode. A run that has ended returns its result again.
    pub async fn resume(&self, run: &RunId) -> Result<Run, Error> {
        let Shared { journal, model, .. } = &*self.shared;
        let spec = run::settings_of(journal, run)?;
        let builder = RunBuilder::new(spec, journal.clone(), Arc::clone(model));
        let builder = self.add_agent_parts(builder, self.turn_context().approval).await;
        Ok(Run::new(builder.resume(run)?))
    }

    /// Replays a run from its journal alone, without the model and without any effect, and returns its outcome.
    /// A run that would go differently now is [`Error::Stopped`].
    pub async fn replay(&self, run: &RunId) -> Result<Outcome, Error> {
        let mut recorded = RunBuilder::recorded(&self.shared.journal, run)?;
        recorded.deps.extra_tools.clone_from(&self.shared.tools);
        ended(recorded.replay(run).await?)
    }

    /// The journal, for other agents to share, and to list runs and read their events.
    pub fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    pub(crate) async fn start_with(
        &self,
        task: Task,
        schema: Option<serde_json::Value>,
        context: &TurnContext,
    ) -> Result<Run, Error> {
        let Shared { resolved, model, journal, workspace, .. } = &*self.shared;
        let TurnContext { limits, options, approval, review } = context;
        let (journal, model) = (journal.clone(), Arc::clone(model));
        let builder = RunBuilder::resolved(workspace, resolved, *limits, options.clone(), journal, model);
        let mut builder = self.add_agent_parts(builder, *approval).await;
        builder.spec.review = task.review.then(|| review.clone());
        builder.spec.output_schema = schema;
        let run = task.run_id.clone().map_or_else(new_run_id, Ok).map_err(Error::RunId)?;
        task.add_to(&mut builder)?;
        Ok(Run::new(builder.start(&run).await?))
    }

    /// Adds what the agent contributes to every run.
    async fn add_agent_parts(&self, builder: RunBuilder, approval: ApprovalMode) -> RunBuilder {
        let Shared { tools, templates, approver, commands, .. } = &*self.shared;
        let sandbox = self.shared.sandbox.get_or_init(|| {
            let Shared { sandbox_mode, sandbox_options, workspace, .. } = &*self.shared;
            ActiveSandbox::activate(*sandbox_mode, sandbox_options.clone(), workspace, commands.clone(), &[])
        });
        let mut builder = builder.with_sandbox(sandbox.await);
        builder.spec.approve = approval;
        builder.deps.extra_tools.clone_from(tools);
        builder.deps.templates.clone_from(templates);
        builder.deps.jitter = jitter;
        builder.deps.approver = match approver {
            Some(approver) => Arc::clone(approver),
            None if approval == ApprovalMode::Never => Arc::new(NonInteractive),
            None => Arc::new(AnsweredOutside),
        };
        builder
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Agent").field("model", &self.shared.resolved.name).finish_non_exhaustive()
    }
}

enum ModelSource {
    Name(String),
    Own(Arc<dyn Model>),
}

/// Looks up a variable by name.
type Variables = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Configures an [`Agent`].
pub struct AgentBuilder {
    model: ModelSource,
    overrides: ConnectionOverrides,
    variables: Variables,
    workspace: PathBuf,
    journal: Option<Journal>,
    journal_file: Option<PathBuf>,
    tools: Vec<Arc<dyn Tool>>,
    display: Option<String>,
    templates: Vec<String>,
    context: TurnContext,
    approver: Option<Arc<dyn Approver>>,
    sandbox_mode: SandboxMode,
    sandbox_options: SandboxOptions,
    commands: CommandSettings,
}

impl AgentBuilder {
    fn new(model: ModelSource) -> Self {
        Self {
            model,
            overrides: ConnectionOverrides::default(),
            variables: Box::new(|_| None),
            workspace: PathBuf::from("."),
            journal: None,
            journal_file: None,
            tools: Vec::new(),
            display: None,
            templates: Vec::new(),
            context: TurnContext::default(),
            approver: None,
            sandbox_mode: SandboxMode::default(),
            sandbox_options: SandboxOptions::default(),
            commands: CommandSettings::default(),
        }
    }

    /// Sets the API key of a hosted model. It is redacted from the output of commands and never journaled.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.overrides.api_key = Some(Secret::new(key));
        self
    }

    /// Sets the base URL of the model's server, including the version path [default: the provider's].
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.overrides.base_url = Some(url.into());
        self
    }

    /// Sets the wire format of the model's server [default: the provider's].
    #[must_use]
    pub fn wire(mut self, wire: Wire) -> Self {
        self.overrides.wire = Some(wire);
        self
    }

    /// Sets everything that may be said about a model: context size, price, tool format, catalogs.
    #[must_use]
    pub fn connection(mut self, overrides: ConnectionOverrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// Looks up keys, addresses and proxies by the names of their usual variables (`OPENAI_API_KEY`,
    /// `OLLAMA_BASE_URL`, `HTTPS_PROXY`); `|name| std::env::var_os(name)` takes them from the environment.
    #[must_use]
    pub fn variables(mut self, look_up: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        self.variables = Box::new(look_up);
        self
    }

    /// Sets the directory that the tools work in [default: the current directory].
    #[must_use]
    pub fn workspace(mut self, directory: impl AsRef<Path>) -> Self {
        self.workspace = directory.as_ref().to_owned();
        self
    }

    /// Shares the journal of another agent.
    #[must_use]
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Sets the file of the journal [default: `.fusee/journal.db` in the workspace].
    #[must_use]
    pub fn journal_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.journal_file = Some(file.into());
        self
    }

    /// Adds a tool to the standard ones, which read, search, edit and run commands.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds a template, from its XML text, that workflows can call and prompts can delegate to.
    #[must_use]
    pub fn template(mut self, text: impl Into<String>) -> Self {
        self.templates.push(text.into());
        self
    }

    /// Offers Anthropic's models that know it the computer use tool, for this local X11 display (`:99`) [default:
    /// no such tool]. Commands get the display too, as
    /// `DISPLAY`. The file of its cookie is what [`Self::variables`] says of `XAUTHORITY`.
    #[must_use]
    pub fn computer(mut self, display: impl Into<String>) -> Self {
        self.display = Some(display.into());
        self
    }

    /// Sets the limits on turns, tokens, cost and time.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.context.limits = limits;
        self
    }

    /// Sets temperature and other options of each model request [default: from the model's profile].
    #[must_use]
    pub fn options(mut self, options: RequestOptions) -> Self {
        self.context.options = options;
        self
    }

    /// Sets when a call waits for [`Run::approve`] or [`Run::deny`] [default: never; what would need approval is
    /// refused]. Without an answer the call is refused after [`Limits::approval_timeout_s`].
    #[must_use]
    pub fn approval(mut self, mode: ApprovalMode) -> Self {
        self.context.approval = mode;
        self
    }

    /// Sets the restrictions of tasks in review mode [default: calls that change nothing are allowed, others need
    /// approval, 100 calls].
    #[must_use]
    pub fn review(mut self, restrictions: ReviewPolicy) -> Self {
        self.context.review = restrictions;
        self
    }

    /// Answers approval questions, instead of [`Run::approve`] and [`Run::deny`].
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Lets the model run commands. The fork server comes from [`init`](crate::init), called first thing in
    /// `main`; `variables` is the environment of commands (`std::env::vars_os()`), without what looks like a
    /// secret.
    #[must_use]
    pub fn commands(
        mut self,
        fork_server: ForkServer,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.commands.fork_server = Some(fork_server);
        self.commands.environment = CommandEnvironment::allowed(variables);
        self
    }

    /// Sets whether commands are sandboxed, and their additional permissions [default: on, none].
    #[must_use]
    pub fn sandbox(mut self, mode: SandboxMode, options: SandboxOptions) -> Self {
        (self.sandbox_mode, self.sandbox_options) = (mode, options);
        self
    }

    /// Resolves the model, checks tools and templates, and opens the journal. Sends nothing.
    pub fn build(self) -> Result<Agent, Error> {
        let display = self.display.as_deref().map(str::parse::<DisplayNumber>);
        let display = display.transpose().map_err(Error::Display)?;
        let authority = (self.variables)("XAUTHORITY").map(PathBuf::from).filter(|_| display.is_some());
        let (resolved, model) = match self.model {
            ModelSource::Own(model) => {
                let Dialect { wire, traits } = model.dialect();
                let connection = Connection { wire, traits, ..Connection::default() };
                let mut resolved = ResolvedModel::new(model.name(), connection);
                (resolved.context_tokens, resolved.price) =
                    (self.overrides.context_tokens, self.overrides.price);
                (resolved, model)
            }
            ModelSource::Name(name) => {
                let mut resolved = Connection::resolve(&name, &self.overrides, &self.variables)?;
                if let Some(display) = display {
                    run::offer_display(&mut resolved, display, authority.as_deref())
                        .map_err(Error::Display)?;
                }
                let model = Models::new(now).open(&resolved.name, &resolved.connection)?;
                (resolved, model)
            }
        };
        check_tools(&self.tools)?;
        // The path is journaled, and a run may be resumed from another directory.
        let workspace = self.workspace.canonicalize().map_err(|error| {
            StartError::Workspace(format!("cannot use workspace {}: {error}", self.workspace.display()))
        })?;
        let file = self.journal_file.unwrap_or_else(|| workspace.join(".fusee/journal.db"));
        let journal = match self.journal {
            Some(journal) => journal,
            None => Journal::open(&file, JournalOptions::default(), Arc::new(SystemClock))?,
        };
        let templates = TemplateSource {
            registry: Arc::new(registry(self.templates)?),
            memory_file: Some(journal.path().with_file_name("memory.idx")),
        };
        let (mut commands, mut sandbox_options) = (self.commands, self.sandbox_options);
        commands.secrets = Secrets::new(resolved.connection.api_key.iter().map(Secret::reveal));
        if let Some(display) = display {
            commands.environment = commands.environment.with([("DISPLAY".to_owned(), display.to_string())]);
            sandbox_options.read.push(display.socket());
        }
        if let Some(file) = authority {
            let variable = ("XAUTHORITY".to_owned(), file.display().to_string());
            commands.environment = commands.environment.with([variable]);
            sandbox_options.read.push(file);
        }
        Ok(Agent {
            shared: Arc::new(Shared {
                resolved,
                model,
                journal,
                workspace,
                tools: self.tools,
                templates,
                context: self.context,
                approver: self.approver,
                sandbox_mode: self.sandbox_mode,
                sandbox_options,
                commands,
                sandbox: OnceCell::new(),
            }),
        })
    }
}

/// Checks that every tool can be offered: a valid and free name, and an object as argument.
fn check_tools(tools: &[Arc<dyn Tool>]) -> Result<(), Error> {
    let mut toolbox = Toolbox::standard(CommandSettings::default());
    for tool in tools {
        let definition = tool.definition();
        let name = &definition.name;
        let invalid = |problem: &str| Error::Tool { name: name.to_string(), problem: problem.to_owned() };
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 64 || !name.chars().all(valid) {
            return Err(invalid("a name is 1 to 64 of A-Z a-z 0-9 _ -"));
        }
        if definition.parameters["type"] != "object" {
            return Err(invalid("its argument must be a struct or another JSON object"));
        }
        toolbox.insert(Arc::clone(tool)).map_err(|_| invalid("another tool has this name"))?;
    }
    Ok(())
}

fn registry(texts: Vec<String>) -> Result<TemplateRegistry, Error> {
    let mut registry = TemplateRegistry::new();
    for text in texts {
        let (template, _) = parse(&text)?;
        let text = TemplateText { file: UNNAMED.to_owned(), text };
        let registered = RegisteredTemplate { template, text, layer: TemplateLayer::Value };
        registry.register(registered).map_err(|error| Error::Template(error.to_string()))?;
    }
    Ok(registry)
}
