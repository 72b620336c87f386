//! Minimal API for programs that embed the engine: a task, a model name, and custom tools.
//!
//! It only leaves out flags, configuration files and interactive approval. The run is journaled as usual, and
//! can be resumed and replayed through [`crate::run`].

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fusee_journal::{Clock, EventRecord, Journal, JournalOptions};
use fusee_model::Models;
use fusee_tools::{
    Access, CallContext, CommandSettings, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::agent::{Limits, TaskOutcome};
use crate::approval::{ApprovalMode, NonInteractive};
use crate::prompt::{Prompt, RenderProblem, TaskFields};
use crate::run::{self, RunDeps, RunOutcome, RunSpec};

/// Result of a custom tool.
pub type ToolAnswer = ToolOutput;

/// A tool backed by a function. It may be called again after a crash, so it must be read-only; a tool with
/// effects implements [`Tool`] and defines how an interrupted call is settled.
pub struct SimpleTool {
    definition: ToolDefinition,
    answer: Box<dyn Fn(&Value) -> ToolAnswer + Send + Sync>,
}

impl SimpleTool {
    /// Creates a tool from its name, its description for the model, and the JSON Schema of its arguments.
    pub fn new(
        name: &'static str,
        description: &'static str,
        parameters: Value,
        answer: impl Fn(&Value) -> ToolAnswer + Send + Sync + 'static,
    ) -> Self {
        let definition = ToolDefinition {
            name: name.into(),
            description: description.into(),
            parameters,
            category: Access::Read,
            aliases: &[],
            parameter_aliases: &[],
        };
        Self { definition, answer: Box::new(answer) }
    }
}

impl Tool for SimpleTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Harmless
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async { Ok(PreparedCall::new(Value::Null, arguments)) })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, _context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match prepared.into_plan::<Value>() {
                Ok(arguments) => (self.answer)(&arguments),
                Err(answer) => answer,
            }
        })
    }
}

/// Error that prevented a task from finishing.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The run could not be started.
    #[error(transparent)]
    Start(#[from] run::StartError),
    /// The model name could not be resolved.
    #[error(transparent)]
    Model(#[from] fusee_model::OpenError),
    /// The journal could not be opened or read.
    #[error(transparent)]
    Journal(#[from] fusee_journal::JournalError),
    /// The run stopped before its task ended.
    #[error("{0}")]
    Stopped(String),
}

/// A task to be run, configured builder-style.
pub struct Task {
    settings: RunSpec,
    tools: Vec<Arc<dyn Tool>>,
}

impl Task {
    /// Creates a task from a request. The journal is `.fusee/journal.db` inside the workspace.
    pub fn new(request: &str, model: &str, workspace: &Path) -> Self {
        Self { settings: RunSpec::new(request, model, workspace), tools: Vec::new() }
    }

    /// Creates a task of a custom type with a prompt built for that type. A closed section costs only its
    /// summary until the model opens it.
    ///
    /// ```
    /// use fusee_engine::embed;
    /// use fusee_engine::prompt::{Prompt, Section};
    ///
    /// #[derive(serde::Serialize, schemars::JsonSchema)]
    /// struct Translation {
    ///     /// Text to translate.
    ///     request: String,
    ///     /// Target language.
    ///     language: String,
    /// }
    ///
    /// let prompt = Prompt::builder()
    ///     .section(Section::text("guidance", "Guidance", "Translate into $language. Keep the tone."))
    ///     .section(Section::literal("glossary", "Glossary", "A fusee is a cone in a clock.").summarised("Our terms."))
    ///     .section(Section::task())
    ///     .build()
    ///     .map_err(|problems| format!("{problems:?}"))?;
    /// let task = Translation { request: "The fusee turns.".into(), language: "German".into() };
    /// let task = embed::Task::prompted(&prompt, &task, "llama.cpp:qwen", std::path::Path::new("."))?;
    /// # drop(task);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prompted<T: TaskFields>(
        prompt: &Prompt<T>,
        task: &T,
        model: &str,
        workspace: &Path,
    ) -> Result<Self, RenderProblem> {
        Ok(Self { settings: RunSpec::prompted(prompt, task, model, workspace)?, tools: Vec::new() })
    }

    /// Sets the base URL of the model server.
    #[must_use]
    pub fn base_url(mut self, url: &str) -> Self {
        self.settings.base_url = Some(url.to_owned());
        self
    }

    /// Sets the limits on turns, tokens, cost and time.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Adds a custom tool to the built-in file tools.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Runs the task to its end and passes every event to `watch`.
    pub async fn run(self, mut watch: impl FnMut(&EventRecord)) -> Result<TaskOutcome, EmbedError> {
        let path = self.settings.workspace.join(".fusee/journal.db");
        let journal = Journal::open(&path, JournalOptions::default(), Arc::new(SystemClock))?;
        let base_url = self.settings.base_url.clone();
        let served = fusee_model::Connection { base_url, ..fusee_model::Connection::default() };
        let model = Models::new(now).open(&self.settings.model, &served)?;
        let id = format!("run-{}", SystemClock.now_ms());
        let run = id.parse().map_err(EmbedError::Stopped)?;
        let settings = RunSpec {
            approve: ApprovalMode::Never,
            sandbox_state: "no commands".to_owned(),
            ..self.settings
        };
        let resources = RunDeps {
            journal,
            model,
            others: Default::default(),
            commands: CommandSettings::default(),
            extra_tools: self.tools,
            commands_settled: false,
            approver: Arc::new(NonInteractive),
            jitter: || 0.0,
            trace: None,
            templates: run::TemplateSource::default(),
        };
        let running = run::start(&run, settings, resources).await?;
        let mut events = running.events();
        while let Some(event) = events.next().await? {
            watch(&event);
        }
        match running.outcome().await {
            RunOutcome::Ended(outcome) => Ok(outcome),
            RunOutcome::Stopped(stop) => Err(EmbedError::Stopped(stop.to_string())),
            RunOutcome::Lost(cause) => Err(EmbedError::Stopped(cause)),
        }
    }
}

/// System clock for embedders that bring none; the only place in this crate that reads it.
struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "the embedder's clock, handed in from here")]
fn now() -> SystemTime {
    SystemTime::now()
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
