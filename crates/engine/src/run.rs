//! Life cycle of a run: start, resume, replay. User interfaces (terminal, JSON, web) send commands here and
//! read events.

mod absent;
mod amended;
mod continued;
mod delegated;
mod outcome;
mod outlook;
mod prompted;
mod reviewed;
mod settings;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fusee_journal::event::{Event, TaskComplete, TaskError, TaskStatus, TurnType};
use fusee_journal::{
    Body, BoxFuture, Branch, Call, Embedded, Engine, Events, Journal, JournalError, Kind, RunId, RunStatus,
    StepKey, Stop,
};
use fusee_model::{CancellationToken, Model};
use fusee_tools::mcp::Remote;
use fusee_tools::{CommandSettings, Tool, Toolbox, Workspace};
use serde_json::Value;

use crate::agent::{AgentTask, Amendment, Progress, Session, TaskOutcome, Terms, TurnStop, remember};
use crate::approval::{Approver, Gatekeeper, Nobody};
use crate::memory::Memory;
use crate::prompt::{self, Environment, PromptFile};
use crate::task_system::{self, SubtaskRequest, TaskSystem};
use crate::template::{Registry, TemplateText};
use crate::workflow::{self, Left, Trace};

pub use absent::{NO_MODEL, no_model};
pub use outcome::{Exit, RunOutcome};
pub use outlook::{Share, Shorter, conversation, shorter, window};
pub use prompted::{open_section, sections};
pub use settings::{Carry, Confine, PromptText, SandboxMode, Settings};
pub use work::{JsonForm, TemplateTask, Work, Workflow};

/// Dependencies that the process provides for a run.
pub struct Resources {
    /// Journal the run is written to.
    pub journal: Journal,
    /// Main model.
    pub model: Arc<dyn Model>,
    /// Models of the stages that name another one, by name.
    pub others: std::collections::BTreeMap<String, Arc<dyn Model>>,
    /// Settings for running commands.
    pub commands: CommandSettings,
    /// Tools beyond the standard ones.
    pub extra_tools: Vec<Arc<dyn Tool>>,
    /// Whether commands may run without approval, because they are sandboxed or the user said so.
    pub commands_settled: bool,
    /// Answers approval requests.
    pub approver: Arc<dyn Approver>,
    /// Random number from -1 to 1, for backoff.
    pub jitter: fn() -> f64,
    /// Templates and the file index.
    pub templates: Templates,
    /// Called for every effect of a workflow, if set.
    pub trace: Option<Trace>,
}

/// Templates and the location of the file index.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    /// Registered templates.
    pub registry: Arc<Registry>,
    /// Where the file index of the workspace is stored.
    pub memory_file: Option<PathBuf>,
}

/// Error while starting, resuming or replaying a run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The workspace cannot be opened.
    #[error("{0}")]
    Workspace(String),
    /// The journal has no settings for the run.
    #[error("run {run} has no settings in the journal: it was killed before it started; start a new run")]
    NoSettings {
        /// Id of the run.
        run: RunId,
    },
    /// The prompt or the output schema is invalid.
    #[error("{0}")]
    Prompt(String),
    /// The run to be continued is still open.
    #[error("run {run} has not ended and cannot be continued yet; run `fusee resume {run}` first")]
    NotEnded {
        /// The run to be continued.
        run: RunId,
    },
    /// The settings cannot be decoded, for example because another version wrote them.
    #[error("cannot read the settings of run {run}: {cause}")]
    Unreadable {
        /// Id of the run.
        run: RunId,
        /// The decoding error.
        cause: String,
    },
}

/// A run in progress.
pub struct Running {
    embedded: Arc<Embedded>,
    cancel: CancellationToken,
    progress: Arc<Progress>,
    work: tokio::task::JoinHandle<Result<TaskOutcome, Stop>>,
}

impl Running {
    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        self.embedded.run()
    }

    /// Subscribes to the events from now on. All subscribers see the same events.
    pub fn events(&self) -> Events {
        self.embedded.events()
    }

    /// Cancels the run.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns the token that cancels the run.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Returns the handle that interrupts single turns: the current work ends, and the user is asked what to
    /// do next.
    pub fn turn_stop(&self) -> TurnStop {
        self.progress.turn_stop.clone()
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Waits for the run to end.
    pub async fn outcome(self) -> RunOutcome {
        match self.work.await {
            Ok(Ok(outcome)) => RunOutcome::Ended(outcome),
            Ok(Err(stop)) => RunOutcome::Stopped(stop),
            Err(lost) => RunOutcome::Lost(lost.to_string()),
        }
    }
}

/// Starts a run.
pub async fn start(run: &RunId, settings: Settings, resources: Resources) -> Result<Running, StartError> {
    let workspace = open_workspace(&settings)?;
    prompted::check(&settings)?;
    if let Some(earlier) = &settings.continues {
        continued::check(&resources.journal, earlier)?;
    }
    let embedded = Embedded::begin(&resources.journal, run, &settings.title(), None).await?;
    workspace.keep_first_look(first_look(&resources.journal, run));
    Ok(spawn(embedded, settings, resources, workspace, Past::default()))
}

/// Returns the settings a run was started with, updated by its resumes.
pub fn settings_of(journal: &Journal, run: &RunId) -> Result<Settings, StartError> {
    let key = StepKey { branch: Branch::main(), n: 0 };
    let first = journal.step(run, &key)?.filter(|step| step.kind == Kind::Settings);
    let first = first.and_then(|step| step.result);
    let value = first.ok_or_else(|| StartError::NoSettings { run: run.clone() })?;
    let mut settings: Settings = serde_json::from_value(value)
        .map_err(|error| StartError::Unreadable { run: run.clone(), cause: error.to_string() })?;
    if let Some(last) = amended::read(journal, run)?.pop() {
        settings.set_terms(last.terms);
    }
    Ok(settings)
}

/// Resumes a run. A run that has ended returns its result again.
pub fn resume(run: &RunId, settings: Settings, resources: Resources) -> Result<Running, StartError> {
    let workspace = open_workspace(&settings)?;
    let open = resources.journal.run(run.as_str())?.status == RunStatus::Open;
    let in_force = settings_of(&resources.journal, run)?.terms();
    let mut amendments = amended::read(&resources.journal, run)?;
    let embedded = Embedded::resume(&resources.journal, run, None)?;
    if open {
        let terms = Terms { commands_settled: resources.commands_settled, ..settings.terms() };
        let new = (terms != in_force).then(|| amended::from_here(&embedded, terms));
        let (from_seq, amended) = (embedded.resumed_from(), new.as_ref().map(amended::written));
        embedded.note(&Branch::main(), Event::TaskResumed { from_seq, amended });
        amendments.extend(new);
        workspace.keep_first_look(first_look(&resources.journal, run));
    }
    Ok(spawn(embedded, settings, resources, workspace, Past { resumed: true, amendments }))
}

/// Replays a run from the journal alone: no model is called, no workspace is read, and no tool runs.
/// `extra_tools` are the tools the run had beyond the standard ones; only their names are used.
pub async fn replay(
    journal: &Journal,
    run: &RunId,
    settings: Settings,
    extra_tools: Vec<Arc<dyn Tool>>,
) -> Result<RunOutcome, StartError> {
    let embedded = Embedded::replay(journal, run, None)?;
    // The directory is never read, because no tool runs in a replay.
    let workspace = Workspace::open(std::path::Path::new("/"));
    let workspace = workspace.map_err(|error| StartError::Workspace(error.to_string()))?;
    let resources = Resources {
        journal: journal.clone(),
        model: Arc::new(absent::Absent::new(&settings)),
        others: absent::others(&settings),
        commands: CommandSettings::default(),
        extra_tools,
        commands_settled: settings.commands_settled,
        approver: Arc::new(Nobody),
        jitter: || 0.0,
        templates: Templates::default(),
        trace: None,
    };
    let past = Past { resumed: false, amendments: amended::read(journal, run)? };
    Ok(spawn(embedded, settings, resources, Arc::new(workspace), past).outcome().await)
}

/// State left by earlier processes.
#[derive(Default)]
struct Past {
    /// Whether another process worked on the run before, so that files may have changed.
    resumed: bool,
    /// Policy changes made by resumes.
    amendments: Vec<Amendment>,
}

/// Path of the workspace snapshot taken before the run's first command: next to the journal, until the run
/// ends.
pub(crate) fn first_look(journal: &Journal, run: &RunId) -> PathBuf {
    journal.path().with_extension("db-looks").join(format!("{run}.look"))
}

fn open_workspace(settings: &Settings) -> Result<Arc<Workspace>, StartError> {
    match Workspace::open(&settings.workspace) {
        Ok(workspace) => Ok(Arc::new(workspace)),
        Err(error) => {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            Err(StartError::Workspace(format!("{error}{cause}")))
        }
    }
}

fn spawn(
    embedded: Arc<Embedded>,
    settings: Settings,
    resources: Resources,
    workspace: Arc<Workspace>,
    past: Past,
) -> Running {
    let (cancel, progress) = (CancellationToken::new(), Arc::new(Progress::default()));
    let work = work(
        Arc::clone(&embedded),
        settings,
        resources,
        workspace,
        past,
        cancel.clone(),
        Arc::clone(&progress),
    );
    let work = tokio::spawn(work);
    Running { embedded, cancel, progress, work }
}

async fn work(
    embedded: Arc<Embedded>,
    settings: Settings,
    resources: Resources,
    workspace: Arc<Workspace>,
    past: Past,
    cancel: CancellationToken,
    progress: Arc<Progress>,
) -> Result<TaskOutcome, Stop> {
    let looked_at = Arc::clone(&workspace);
    let result = Box::pin(task(&embedded, settings, resources, workspace, past, cancel, progress)).await;
    let result = match result {
        Ok(Left::Cancelled(outcome)) => match embedded.flush().await {
            // The run stays open: unfinished work is cut off as if killed, and a resume continues from there.
            Ok(()) => {
                let last = workflow::complete_event(embedded.run().as_str(), &outcome, None);
                embedded.abandon(&Branch::main(), Event::TaskComplete(last));
                return Ok(outcome);
            }
            Err(stop) => Err(stop),
        },
        Ok(Left::Ended(outcome)) => {
            let status = match outcome.status {
                TaskStatus::Completed => RunStatus::Completed,
                TaskStatus::Failed => RunStatus::Failed,
                TaskStatus::Cancelled => RunStatus::Cancelled,
            };
            let finished = embedded.finish(status).await;
            if finished.is_ok() {
                looked_at.drop_first_look();
            }
            finished.map(|()| outcome)
        }
        Err(stop) => Err(stop),
    };
    if let Err(stop) = &result {
        embedded.abandon(&Branch::main(), stopped(&embedded, stop));
    }
    result
}

async fn task(
    embedded: &Arc<Embedded>,
    settings: Settings,
    resources: Resources,
    workspace: Arc<Workspace>,
    past: Past,
    cancel: CancellationToken,
    progress: Arc<Progress>,
) -> Result<Left, Stop> {
    let branch = Branch::main();
    let engine: Arc<dyn Engine> = Arc::clone(embedded) as Arc<dyn Engine>;
    let written = serde_json::to_value(&settings).unwrap_or_default();
    let recorded = engine.step(call(&branch, Kind::Settings, "run"), value_body(async { written })).await?;
    let started_ms = recorded.at_ms;
    let settings: Settings = recorded.read()?;

    let earlier = continued::earlier(&*engine, &branch, &resources.journal, &settings).await?;
    let environment = match earlier.as_ref().and_then(|earlier| earlier.environment.clone()) {
        // The session has read its environment already, and messages that were sent are never edited.
        Some(environment) => environment,
        None => {
            let directory = settings.workspace.clone();
            let digest =
                settings.prompt.as_ref().is_some_and(|prompt| PromptFile::wants_digest(&prompt.text));
            let kept = digest_file(&resources.journal);
            let look = async move {
                let found = Environment::look(&directory, started_ms);
                let found = if digest { found.digested(&directory, Some(&kept)) } else { found };
                serde_json::to_value(found).unwrap_or_default()
            };
            engine.step(call(&branch, Kind::Environment, "session"), value_body(look)).await?.read()?
        }
    };

    let secrets = resources.commands.secrets.clone();
    let mut toolbox = Toolbox::standard(resources.commands);
    for tool in resources.extra_tools {
        // A name that is already taken keeps its tool.
        let _ = toolbox.insert(tool);
    }
    for offered in &settings.mcp {
        // If the server is connected, its tool already has the name; otherwise a call reports that it is
        // missing.
        let _ = toolbox.insert(Arc::new(Remote::absent(offered.clone())));
    }
    let kept = digest_file(&resources.journal);
    let material =
        reviewed::material(&*engine, &branch, &settings, &environment, &workspace, &toolbox, kept).await?;
    if material.is_some() {
        toolbox = reviewed::looking(&toolbox);
    }
    let session = Session {
        model: resources.model,
        others: resources.others,
        options: settings.options.clone(),
        price: settings.price,
        toolbox,
        workspace,
        limits: settings.limits,
        secrets,
        turn_stop: progress.turn_stop.clone(),
        gatekeeper: Gatekeeper {
            approve: settings.approve,
            commands_settled: settings.commands_settled,
            rules: settings.rules.clone(),
            approver: resources.approver,
        },
        amendments: past.amendments,
        review: settings.review.clone(),
        sandbox: settings.sandbox_state.clone(),
        jitter: resources.jitter,
        // Files may change between two runs just as between two processes.
        resumed: AtomicBool::new(past.resumed || earlier.is_some()),
        continues: settings.continues.clone(),
    };
    // Conversation that a template or workflow task can request as context.
    let history = match &settings.work {
        Work::Request => Arc::default(),
        _ => Arc::new(earlier.as_ref().map(|earlier| earlier.messages.clone()).unwrap_or_default()),
    };
    match &settings.work {
        Work::Request => {}
        Work::Workflow(work) => {
            if past.resumed {
                remember(&*session.model, &resources.journal.steps(embedded.run())?);
            }
            let trace = resources.trace;
            let templates = resources.templates;
            let place = workflow::Place {
                session,
                engine,
                branch,
                environment,
                templates,
                history,
                started_ms,
                trace,
                cancel,
            };
            return workflow::run(work, &settings.request, place).await;
        }
        Work::Template(work) => {
            if past.resumed {
                remember(&*session.model, &resources.journal.steps(embedded.run())?);
            }
            let system = TaskSystem {
                registry: resources.templates.registry,
                memory: Arc::new(Memory::new(&settings.workspace, resources.templates.memory_file)),
                base: Arc::new(session),
                engine,
                environment,
            };
            let request = SubtaskRequest::named(work.name.as_str(), work.inputs.clone());
            let request = SubtaskRequest { limits: work.limits, ..request };
            let text = TemplateText { file: work.file.clone(), text: work.text.clone() };
            let place = task_system::Place::main(started_ms, cancel, progress);
            let place = task_system::Place { history, ..place };
            return Arc::new(system).execute(request, Some(text), place).await.map(Left::Ended);
        }
    }
    let task = AgentTask::new(
        Arc::new(session),
        engine,
        branch,
        embedded.run().to_string(),
        prompt::default_system(&environment, prompted::kind(&settings)),
        prompt::request_text(&settings.request, settings.background.as_deref()),
        if settings.review.is_some() { TurnType::Review } else { TurnType::User },
    )
    .watched(cancel, progress);
    let task =
        prompted::dressed(task, &settings, &environment, earlier, material).map_err(Stop::Unreadable)?;
    let task = delegated::delegating(task, &settings, &environment, resources.templates, started_ms);
    crate::flow::work(task, &settings.flow, started_ms).await.map(Left::Ended)
}

/// Path of the digest cache, next to the journal.
fn digest_file(journal: &Journal) -> PathBuf {
    journal.path().with_file_name(prompt::DIGEST_FILE)
}

fn call(branch: &Branch, kind: Kind, callee: &str) -> Call {
    Call { branch: branch.clone(), kind, callee: callee.to_owned(), args: Value::Null }
}

fn value_body<'a>(value: impl Future<Output = Value> + Send + 'a) -> Body<'a> {
    Box::new(move || Box::pin(value) as BoxFuture<'a, Value>)
}

/// Final event of a run whose journal failed.
fn stopped(embedded: &Embedded, stop: &Stop) -> Event {
    let error = TaskError {
        code: fusee_journal::event::ErrorCode::TurnFailed,
        reason: "unexpected_error".to_owned(),
        message: stop.to_string(),
    };
    Event::TaskComplete(TaskComplete {
        submission_id: embedded.run().to_string(),
        total_turns: 0,
        total_tokens: 0,
        cached_tokens: 0,
        duration_ms: 0,
        status: TaskStatus::Failed,
        answer: String::new(),
        cost_usd: None,
        error: Some(error),
    })
}
