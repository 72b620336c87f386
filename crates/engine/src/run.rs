//! Runs as a whole: started, resumed, replayed. Faces (terminal, JSON, web) send commands here and read events.

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

/// What a run needs from its process.
pub struct Resources {
    /// Where it is written down.
    pub journal: Journal,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Who answers in the stages that name another model.
    pub others: std::collections::BTreeMap<String, Arc<dyn Model>>,
    /// How commands run.
    pub commands: CommandSettings,
    /// Tools beyond the standard ones.
    pub extra_tools: Vec<Arc<dyn Tool>>,
    /// Whether that, or the user's word, settles that commands may run.
    pub commands_settled: bool,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// Chance, from -1 to 1.
    pub jitter: fn() -> f64,
    /// Templates, and what is known of the workspace's files.
    pub templates: Templates,
    /// Told of every effect of a workflow, if somebody wants to know.
    pub trace: Option<Trace>,
}

/// What tasks of templates need from the process.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    /// Those that can be found.
    pub registry: Arc<Registry>,
    /// Where the index of the workspace's files is kept.
    pub memory_file: Option<PathBuf>,
}

/// A run that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Its directory.
    #[error("{0}")]
    Workspace(String),
    /// Its settings.
    #[error("run {run} has no settings in the journal: it was killed before it began; start it anew")]
    NoSettings {
        /// The run.
        run: RunId,
    },
    /// Its prompt.
    #[error("{0}")]
    Prompt(String),
    /// It is to continue a run that still goes on.
    #[error("run {run} has not ended, so nothing can continue it yet: `fusee resume {run}` goes on with it")]
    NotEnded {
        /// The run to be continued.
        run: RunId,
    },
    /// Written by another version.
    #[error("the settings of run {run} cannot be read: {cause}")]
    Unreadable {
        /// The run.
        run: RunId,
        /// Why.
        cause: String,
    },
}

/// A run under way.
pub struct Running {
    embedded: Arc<Embedded>,
    cancel: CancellationToken,
    progress: Arc<Progress>,
    work: tokio::task::JoinHandle<Result<TaskOutcome, Stop>>,
}

impl Running {
    /// Its name.
    pub fn id(&self) -> &RunId {
        self.embedded.run()
    }

    /// A reader of what happens from now on. All readers see the same.
    pub fn events(&self) -> Events {
        self.embedded.events()
    }

    /// Stops it.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The token that stops it.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Stops single turns of it: what is under way ends, and the person is asked what is to happen now.
    pub fn turn_stop(&self) -> TurnStop {
        self.progress.turn_stop.clone()
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Waits for its end.
    pub async fn outcome(self) -> RunOutcome {
        match self.work.await {
            Ok(Ok(outcome)) => RunOutcome::Ended(outcome),
            Ok(Err(stop)) => RunOutcome::Stopped(stop),
            Err(lost) => RunOutcome::Lost(lost.to_string()),
        }
    }
}

/// Begins a run.
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

/// What a run was started with, and what resumes have changed since.
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

/// Goes on with a run. One that has ended gives its result again.
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

/// Runs it again from the journal alone: no model, no workspace, and no tool runs. `extra_tools` are those the
/// run had beyond the standard ones, for their names.
pub async fn replay(
    journal: &Journal,
    run: &RunId,
    settings: Settings,
    extra_tools: Vec<Arc<dyn Tool>>,
) -> Result<RunOutcome, StartError> {
    let embedded = Embedded::replay(journal, run, None)?;
    // Nothing is read there: no tool runs in a replay.
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

/// What earlier processes left to this one.
#[derive(Default)]
struct Past {
    /// Whether one worked on the run, so that the world may have moved on.
    resumed: bool,
    /// What they changed of its terms.
    amendments: Vec<Amendment>,
}

/// Where a run keeps what the workspace held before its first command: beside its journal, until it ends.
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
            // It stays open: what was under way is cut off as by a kill, and a resume goes on from there.
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
        // The session has looked at it already, and what was sent is not edited.
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
        // A name that is taken stays with the tool that has it.
        let _ = toolbox.insert(tool);
    }
    for offered in &settings.mcp {
        // Where the server is there, its tool has the name already; else the run is told so when it calls it.
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
        // Between two runs files may change just as between two processes.
        resumed: AtomicBool::new(past.resumed || earlier.is_some()),
        continues: settings.continues.clone(),
    };
    // What a task of a template or workflow may ask to be shown.
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

/// Where digests of projects are kept: beside the journal.
fn digest_file(journal: &Journal) -> PathBuf {
    journal.path().with_file_name(prompt::DIGEST_FILE)
}

fn call(branch: &Branch, kind: Kind, callee: &str) -> Call {
    Call { branch: branch.clone(), kind, callee: callee.to_owned(), args: Value::Null }
}

fn value_body<'a>(value: impl Future<Output = Value> + Send + 'a) -> Body<'a> {
    Box::new(move || Box::pin(value) as BoxFuture<'a, Value>)
}

/// The last thing readers hear of a run whose journal failed.
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
