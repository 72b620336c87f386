//! Life cycle of a run: start, resume, replay. User interfaces (terminal, JSON, web) send commands here and
//! read events.

mod active_sandbox;
mod builder;
mod context_report;
mod continuation;
mod control;
mod control_signal;
mod delegation;
mod display;
mod failure_class;
mod hook_setup;
mod host_gate;
mod no_model;
mod origin;
mod outcome;
mod policy_changes;
mod prompt_setup;
mod renamed_model;
mod review_setup;
mod run_kind;
mod spec;
mod web_tools;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fusee_journal::event::{ErrorDetail, Event, TaskComplete, TaskStatus, TurnType};
use fusee_journal::{
    Branch, DurableRun, EventStream, Journal, JournalError, RunAborted, RunId, RunStatus, SqliteRun, StepKey,
    StepKind, StepMeta, StepRequest,
};
use fusee_model::{CancellationToken, Model, profile};
use fusee_tools::diagnostics::EditChecker;
use fusee_tools::mcp::{McpTool, deferral};
use fusee_tools::tool::computer::Computer;
use fusee_tools::{CommandSettings, OpenDocuments, Tool, Toolbox, Workspace};

use crate::agent::flow::{self, FlowMode, RunTraits};
use crate::agent::{
    AgentTask, Limits, PolicyChange, PricedModel, RunPolicy, Session, TaskOutcome, TaskProgress,
    TurnInterrupt, remember,
};
use crate::approval::{ApprovalPolicy, Approver, OutsideAnswer};
use crate::prompt::{self, EnvironmentSnapshot, PromptFile, PromptKind};
use crate::restore::{aside_folder, conclude_restore};
use crate::task_system::{self, SubtaskRequest, TaskSystem, file_reader};
use crate::template::{TemplateRegistry, TemplateText};
use crate::workflow::{self, EffectTrace, WorkflowExit};

pub use active_sandbox::ActiveSandbox;
pub use builder::{RunBuilder, limits_for};
pub use context_report::{CompactionSavings, ContextShare, compaction_savings, context_window, conversation};
pub use control::{MessageError, RunControl};
pub use control_signal::{ControlSignal, SignalOutcome};
pub use display::offer_display;
pub use failure_class::FailureClass;
pub use no_model::{NO_MODEL, no_model};
pub use origin::RunOrigin;
pub use outcome::{ExitStatus, RunOutcome};
pub use prompt_setup::{open_section, sections};
pub use run_kind::{JsonOutput, RunKind, TemplateRun, WorkflowRun, callable};
pub use spec::{CarryOver, PromptText, RunSpec, SandboxMode, SandboxOptions};
pub use web_tools::{WebDeps, WebSettings};

/// Dependencies that the process provides for a run.
pub struct RunDeps {
    /// Journal the run is written to.
    pub journal: Journal,
    /// Main model.
    pub model: Arc<dyn Model>,
    /// Models of the stages that name another one, by name.
    pub stage_models: std::collections::BTreeMap<String, PricedModel>,
    /// Settings for running commands.
    pub commands: CommandSettings,
    /// Tools beyond the standard ones.
    pub extra_tools: Vec<Arc<dyn Tool>>,
    /// Whether commands may run without approval, because they are sandboxed or the user said so.
    pub commands_preapproved: bool,
    /// Answers approval requests.
    pub approver: Arc<dyn Approver>,
    /// Random number from -1 to 1, for backoff.
    pub jitter: fn() -> f64,
    /// Templates and the file index.
    pub templates: TemplateSource,
    /// Whether the user trusts the project now; its hooks are not run otherwise.
    pub trusts_project: bool,
    /// Called for every effect of a workflow, if set.
    pub trace: Option<EffectTrace>,
    /// What the web tools need.
    pub web: WebDeps,
    /// Files that are open in the user's editor.
    pub documents: Option<Arc<dyn OpenDocuments>>,
}

/// Templates and the location of the file index.
#[derive(Clone, Debug, Default)]
pub struct TemplateSource {
    /// Registered templates.
    pub registry: Arc<TemplateRegistry>,
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
    #[error("run {run} has not ended and cannot be continued yet")]
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
pub struct RunHandle {
    sqlite_run: Arc<SqliteRun>,
    cancel: CancellationToken,
    progress: Arc<TaskProgress>,
    work: tokio::task::JoinHandle<Result<TaskOutcome, RunAborted>>,
}

impl RunHandle {
    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        self.sqlite_run.run()
    }

    /// A run that another process works on. `copy` receives its entries; `work` ends with it, and passes on that
    /// `cancel` was cancelled.
    pub fn followed(
        copy: Arc<SqliteRun>,
        cancel: CancellationToken,
        work: tokio::task::JoinHandle<Result<TaskOutcome, RunAborted>>,
    ) -> Self {
        Self { sqlite_run: copy, cancel, progress: Arc::default(), work }
    }

    /// Subscribes to the events from now on. All subscribers see the same events.
    pub fn events(&self) -> EventStream {
        self.sqlite_run.events()
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
    pub fn turn_stop(&self) -> TurnInterrupt {
        self.progress.turn_stop.clone()
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> &Arc<TaskProgress> {
        &self.progress
    }

    /// Answers the oldest open question of its kind, or the one about this call. Returns false if there is none.
    pub fn answer(&self, call_id: Option<&str>, answer: &OutsideAnswer) -> bool {
        self.control().answer(call_id, answer)
    }

    /// Returns the control of the run for further user interfaces.
    pub fn control(&self) -> RunControl {
        RunControl {
            sqlite_run: Arc::clone(&self.sqlite_run),
            cancel: self.cancel.clone(),
            progress: Arc::clone(&self.progress),
            work: self.work.abort_handle(),
        }
    }

    /// Whether the run's task has ended, by a result or a panic.
    pub fn is_finished(&self) -> bool {
        self.work.is_finished()
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
async fn start(run: &RunId, mut settings: RunSpec, resources: RunDeps) -> Result<RunHandle, StartError> {
    let workspace = open_workspace(&settings, resources.documents.clone())?;
    prompt_setup::check(&settings)?;
    if let Some(earlier) = &settings.continues {
        continuation::check(&resources.journal, earlier)?;
    }
    if matches!(settings.work, RunKind::Request) {
        let run = RunTraits {
            request: &settings.request,
            small: settings.traits.small || is_small(&settings, &*resources.model).await,
            needs_session: settings.continues.is_some()
                || settings.prompt.is_some()
                || settings.review.is_some()
                || settings.code_review.is_some()
                || settings.output_schema.is_some(),
        };
        flow::resolve_auto(&mut settings.flow, run, &workspace);
    } else {
        settings.flow.drop_verify_words();
    }
    settings.stage_prices =
        resources.stage_models.iter().map(|(name, other)| (name.clone(), other.price)).collect();
    let sqlite_run = SqliteRun::begin(&resources.journal, run, &settings.title()).await?;
    workspace.load_snapshot(initial_snapshot_path(&resources.journal, run));
    let journal = resources.journal.clone();
    let handle = spawn(sqlite_run, settings, resources, workspace, RunHistory::default());
    tokio::spawn(control_signal::listen(handle.control(), journal, false));
    Ok(handle)
}

/// Whether a model is small although neither its profile nor its name says so, because its server does.
async fn is_small(settings: &RunSpec, model: &dyn Model) -> bool {
    let unknown = settings.flow.mode == FlowMode::Auto && profile::parameters(&settings.model).is_none();
    unknown && model.parameters().await.is_some_and(|billions| billions <= profile::SMALL_PARAMETERS)
}

/// Returns the settings a run was started with, updated by its resumes.
pub fn settings_of(journal: &Journal, run: &RunId) -> Result<RunSpec, StartError> {
    let key = StepKey { branch: Branch::main(), n: 0 };
    let first = journal.step(run, &key)?.filter(|step| step.kind == StepKind::Settings);
    let first = first.and_then(|step| step.result);
    let value = first.ok_or_else(|| StartError::NoSettings { run: run.clone() })?;
    let mut settings: RunSpec = serde_json::from_value(value)
        .map_err(|error| StartError::Unreadable { run: run.clone(), cause: error.to_string() })?;
    if let Some(last) = policy_changes::read(journal, run)?.pop() {
        settings.set_policy(last.policy);
    }
    Ok(settings)
}

/// Tells a model which replies a run and those it continues have used, so that a script goes on after them.
pub fn replay_replies(journal: &Journal, run: &RunId, model: &dyn Model) -> Result<(), StartError> {
    let mut next = Some(run.clone());
    while let Some(run) = next {
        remember(model, &journal.steps(&run)?);
        next = settings_of(journal, &run)?.continues;
    }
    Ok(())
}

/// Resumes a run. A run that has ended returns its result again.
fn resume(run: &RunId, settings: RunSpec, resources: RunDeps) -> Result<RunHandle, StartError> {
    let workspace = open_workspace(&settings, resources.documents.clone())?;
    let open = resources.journal.run(run.as_str())?.status == RunStatus::Open;
    let began = settings_of(&resources.journal, run)?;
    let in_force = began.policy();
    // The steps of the run are addressed to the model it started with.
    let model = renamed_model::RenamedModel::called(&began.model, resources.model);
    let resources = RunDeps { model, ..resources };
    let mut changes = policy_changes::read(&resources.journal, run)?;
    let sqlite_run = SqliteRun::resume(&resources.journal, run)?;
    if open {
        let policy = RunPolicy { commands_preapproved: resources.commands_preapproved, ..settings.policy() };
        let new = (policy != in_force).then(|| policy_changes::at_current_step(&sqlite_run, policy));
        let (from_seq, amended) = (sqlite_run.resumed_from(), new.as_ref().map(policy_changes::encode));
        sqlite_run.note(&Branch::main(), Event::TaskResumed { from_seq, amended });
        changes.extend(new);
        workspace.load_snapshot(initial_snapshot_path(&resources.journal, run));
    }
    let journal = resources.journal.clone();
    let handle = spawn(sqlite_run, settings, resources, workspace, RunHistory { resumed: true, changes });
    tokio::spawn(control_signal::listen(handle.control(), journal, true));
    Ok(handle)
}

/// Replays a run with dependencies that do nothing.
async fn replay(run: &RunId, settings: RunSpec, resources: RunDeps) -> Result<RunOutcome, StartError> {
    let journal = &resources.journal;
    let sqlite_run = SqliteRun::replay(journal, run)?;
    // The directory is never read, because no tool runs in a replay.
    let workspace = Workspace::open(std::path::Path::new("/"));
    let workspace = workspace.map_err(|error| StartError::Workspace(error.to_string()))?;
    let past = RunHistory { resumed: false, changes: policy_changes::read(journal, run)? };
    Ok(spawn(sqlite_run, settings, resources, Arc::new(workspace), past).outcome().await)
}

/// State left by earlier processes.
#[derive(Default)]
struct RunHistory {
    /// Whether another process worked on the run before, so that files may have changed.
    resumed: bool,
    /// Policy changes made by resumes.
    changes: Vec<PolicyChange>,
}

/// Path of the workspace snapshot taken before the run's first command: next to the journal, until the run
/// ends.
pub(crate) fn initial_snapshot_path(journal: &Journal, run: &RunId) -> PathBuf {
    journal.path().with_extension("db-looks").join(format!("{run}.look"))
}

fn open_workspace(
    settings: &RunSpec,
    documents: Option<Arc<dyn OpenDocuments>>,
) -> Result<Arc<Workspace>, StartError> {
    match Workspace::open(&settings.workspace) {
        Ok(workspace) => {
            let workspace = workspace.shown_at(settings.shown_workspace().to_owned());
            Ok(Arc::new(workspace.with_documents(documents)))
        }
        Err(error) => {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            Err(StartError::Workspace(format!("{error}{cause}")))
        }
    }
}

fn spawn(
    sqlite_run: Arc<SqliteRun>,
    settings: RunSpec,
    resources: RunDeps,
    workspace: Arc<Workspace>,
    past: RunHistory,
) -> RunHandle {
    let (cancel, progress) = (CancellationToken::new(), Arc::new(TaskProgress::default()));
    let work = work(
        Arc::clone(&sqlite_run),
        settings,
        resources,
        workspace,
        past,
        cancel.clone(),
        Arc::clone(&progress),
    );
    let work = tokio::spawn(work);
    RunHandle { sqlite_run, cancel, progress, work }
}

async fn work(
    sqlite_run: Arc<SqliteRun>,
    settings: RunSpec,
    resources: RunDeps,
    workspace: Arc<Workspace>,
    past: RunHistory,
    cancel: CancellationToken,
    progress: Arc<TaskProgress>,
) -> Result<TaskOutcome, RunAborted> {
    let snapshot = Arc::clone(&workspace);
    let result = Box::pin(task(&sqlite_run, settings, resources, workspace, past, cancel, progress)).await;
    let result = match result {
        Ok(WorkflowExit::Cancelled(outcome)) => match sqlite_run.flush().await {
            // The run stays open: unfinished work is cut off as if killed, and a resume continues from there.
            Ok(()) => {
                let last = workflow::complete_event(sqlite_run.run().as_str(), &outcome, None);
                sqlite_run.abandon(&Branch::main(), Event::TaskComplete(last));
                return Ok(outcome);
            }
            Err(stop) => Err(stop),
        },
        Ok(WorkflowExit::Ended(outcome)) => {
            let status = match outcome.status {
                TaskStatus::Completed => RunStatus::Completed,
                TaskStatus::Failed => RunStatus::Failed,
                TaskStatus::Cancelled => RunStatus::Cancelled,
            };
            let finished = sqlite_run.finish(status).await;
            if finished.is_ok() {
                snapshot.delete_snapshot();
            }
            finished.map(|()| outcome)
        }
        Err(stop) => Err(stop),
    };
    if let Err(stop) = &result {
        sqlite_run.abandon(&Branch::main(), stopped(&sqlite_run, stop));
    }
    result
}

async fn task(
    sqlite_run: &Arc<SqliteRun>,
    settings: RunSpec,
    resources: RunDeps,
    workspace: Arc<Workspace>,
    past: RunHistory,
    cancel: CancellationToken,
    progress: Arc<TaskProgress>,
) -> Result<WorkflowExit, RunAborted> {
    let branch = Branch::main();
    let engine: Arc<dyn DurableRun> = Arc::clone(sqlite_run) as Arc<dyn DurableRun>;
    let request = StepRequest::new(&branch, StepKind::Settings, "run");
    let (settings, StepMeta { at_ms: started_ms, .. }) =
        engine.step(request, async { settings }).await?.split();

    if let Some(origin) = settings.origin.as_ref().filter(|origin| origin.files) {
        let aside = aside_folder(&resources.journal, sqlite_run.run());
        conclude_restore(&*engine, origin.restore_step(), &workspace, &aside).await?;
    }
    let earlier = continuation::earlier(&*engine, &branch, &resources.journal, &settings).await?;
    let environment = match earlier.as_ref().and_then(|earlier| earlier.environment.clone()) {
        // The session has read its environment already, and messages that were sent are never edited.
        Some(environment) => environment,
        None => {
            let (directory, shown) = (settings.workspace.clone(), settings.shown_workspace().to_owned());
            let digest =
                settings.prompt.as_ref().is_some_and(|prompt| PromptFile::wants_digest(&prompt.text));
            let kept = digest_file(&resources.journal);
            let look = async move {
                let found = EnvironmentSnapshot::capture(&directory, started_ms).shown_at(&shown);
                if digest { found.with_digest(&directory, Some(&kept)) } else { found }
            };
            engine.step(StepRequest::new(&branch, StepKind::Environment, "session"), look).await?.value
        }
    };

    let secrets = resources.commands.secrets.clone();
    let authority = resources.commands.environment.value("XAUTHORITY").map(PathBuf::from);
    let commands = resources.commands.clone();
    let mut toolbox = Toolbox::standard(resources.commands);
    for tool in resources.extra_tools {
        // A name that is already taken keeps its tool.
        let _ = toolbox.insert(tool);
    }
    for offered in &settings.mcp {
        // If the server is connected, its tool already has the name; otherwise a call reports that it is
        // missing.
        let _ = toolbox.insert(Arc::new(McpTool::disconnected(offered.clone())));
    }
    let gate = host_gate::RunGate::new(&engine, &resources.approver, &settings, &cancel);
    web_tools::add(&mut toolbox, &settings, resources.web, &gate);
    if let Some(display) = settings.traits.display {
        // A tool of this name that the user brings is preferred.
        let _ = toolbox.insert(Arc::new(Computer::new(display.number.into(), authority)));
    }
    let kept = digest_file(&resources.journal);
    let review_context =
        review_setup::review_context(&*engine, &branch, &settings, &environment, &workspace, &toolbox, kept)
            .await?;
    if review_context.is_some() {
        toolbox = review_setup::read_only_tools(&toolbox);
    }
    deferral::add_access(&mut toolbox);
    let hooks = hook_setup::runner(&settings, sqlite_run.run(), &commands, resources.trusts_project);
    let _attached = gate.attach(&commands.sandbox);
    let diagnostics = settings.diagnostics.clone();
    let diagnostics = diagnostics.map(|wanted| Arc::new(EditChecker::new(wanted, commands.clone())));
    let session = Session {
        hooks: Arc::new(hooks),
        diagnostics,
        model: resources.model,
        stage_models: settings.at_recorded_prices(resources.stage_models),
        options: settings.options.clone(),
        commands,
        toolbox,
        workspace,
        limits: Limits { price: settings.limits.price.or(settings.price), ..settings.limits },
        secrets,
        turn_stop: progress.turn_stop.clone(),
        approval: ApprovalPolicy {
            approve: settings.approve,
            commands_preapproved: settings.commands_preapproved,
            rules: settings.rules.clone(),
            approver: resources.approver,
        },
        policy_changes: past.changes,
        review: settings.review.clone(),
        sandbox: settings.sandbox_state.clone(),
        jitter: resources.jitter,
        // Files may change between two runs just as between two processes.
        resumed: AtomicBool::new(past.resumed || earlier.is_some()),
        continues: settings.continues.clone(),
    };
    // Conversation that a template or workflow task can request as context.
    let history = match &settings.work {
        RunKind::Request => Arc::default(),
        _ => Arc::new(earlier.as_ref().map(|earlier| earlier.messages.clone()).unwrap_or_default()),
    };
    match &settings.work {
        RunKind::Request => {}
        RunKind::Workflow(work) => {
            if past.resumed {
                remember(&*session.model, &resources.journal.steps(sqlite_run.run())?);
            }
            let trace = resources.trace;
            let templates = resources.templates;
            let scope = workflow::WorkflowScope {
                session,
                engine,
                branch,
                environment,
                registry: templates.registry,
                memory_file: templates.memory_file,
                history,
                flow: Arc::new(settings.flow.clone()),
                started_ms,
                trace,
                cancel,
            };
            return workflow::run(work, &settings.request, scope).await;
        }
        RunKind::Template(work) => {
            if past.resumed {
                remember(&*session.model, &resources.journal.steps(sqlite_run.run())?);
            }
            let system = TaskSystem {
                registry: resources.templates.registry,
                memory: Arc::new(file_reader::memory(&session.workspace, resources.templates.memory_file)),
                flow: Arc::new(settings.flow.clone()),
                base: Arc::new(session),
                engine,
                environment,
            };
            let request = SubtaskRequest::named(work.name.as_str(), work.inputs.clone());
            let request = SubtaskRequest { limits: work.limits, ..request };
            let text = TemplateText { file: work.file.clone(), text: work.text.clone() };
            let scope = task_system::TaskScope::main(started_ms, cancel, progress);
            let scope = task_system::TaskScope { history, ..scope };
            return Arc::new(system)
                .execute(request, task_system::TemplateOrigin::Text(text), scope)
                .await
                .map(WorkflowExit::Ended);
        }
    }
    let task = AgentTask::new(
        Arc::new(session),
        engine,
        branch,
        sqlite_run.run().to_string(),
        prompt::default_system(&environment, prompt_setup::kind(&settings)),
        prompt::request_text(&settings.request, settings.background.as_deref()),
        if settings.review.is_some() { TurnType::Review } else { TurnType::User },
    )
    .with_images(settings.images.clone())
    .with_cancel(cancel, progress)
    .with_direct_system(prompt::default_system(
        &environment,
        PromptKind { direct: true, ..prompt_setup::kind(&settings) },
    ));
    let task = prompt_setup::configure_prompt(task, &settings, &environment, earlier, review_context)
        .map_err(RunAborted::Unreadable)?;
    let task = delegation::delegating(task, &settings, &environment, resources.templates, started_ms);
    Box::pin(crate::agent::flow::work(task, &settings.flow, started_ms)).await.map(WorkflowExit::Ended)
}

/// Path of the digest cache, next to the journal.
fn digest_file(journal: &Journal) -> PathBuf {
    journal.path().with_file_name(prompt::DIGEST_FILE)
}

/// Final event of a run whose journal failed.
fn stopped(sqlite_run: &SqliteRun, stop: &RunAborted) -> Event {
    let error = ErrorDetail {
        code: fusee_journal::event::ErrorCode::TurnFailed,
        reason: "unexpected_error".to_owned(),
        message: stop.to_string(),
    };
    Event::TaskComplete(TaskComplete {
        submission_id: sqlite_run.run().to_string(),
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
