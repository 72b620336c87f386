//! Set-up of runs: the one path from flags, configuration and what is to run to a started run. `run`, `task`,
//! `review`, `resume` and the chat all take it; the engine's [`RunBuilder`] does the part that needs no command
//! line.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee::engine::agent::flow::{FlowMode, FlowSettings};
use fusee::engine::agent::{PricedModel, ReviewPolicy};
use fusee::engine::approval::Approver;
use fusee::engine::approval::rules::{ApprovalRule, ApprovalRules, RuleDecision};
use fusee::engine::journal::{Journal, RunId};
use fusee::engine::model::{Model, ResolvedModel};
use fusee::engine::review::CodeReview;
use fusee::engine::run::{
    ActiveSandbox, RunBuilder, RunHandle, RunKind, RunSpec, SandboxMode, SandboxOptions, WebSettings,
};
use fusee::engine::tools::tool::computer::DisplayNumber;
use fusee::engine::tools::web::SearchSettings;
use fusee::engine::tools::{CommandSettings, OpenDocuments, Secrets, sandbox};
use fusee::system;

use super::rewind;
use super::task::ReadyTask;
use crate::config::{self, Config};
use crate::model_selection;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::mcp_servers::{self, McpServers};
use crate::project::saved_rules::SavedRules;
use crate::project::{Project, template_source};
use crate::ui::notifier::NotificationUi;
use crate::ui::{self, Log, PhaseLogTarget, RunHeader, UiOptions, UiThread, approval_prompt};

/// Maximum number of saved approvals named when a run starts.
const MAX_REPORTED: usize = 5;

/// Shared setup of the runs of a command or a chat.
pub(crate) struct RunSetup<'p> {
    pub(crate) process: &'p Process,
    pub(crate) project: Project,
    pub(crate) config: Config,
    pub(crate) ui_options: UiOptions,
    pub(crate) resolved: ResolvedModel,
    /// Opened once, so a script continues after the previous message, and connections stay open.
    pub(crate) model: Arc<dyn Model>,
    pub(crate) sandbox: ActiveSandbox,
    pub(crate) servers: McpServers,
    pub(crate) journal: Journal,
    /// Files that are open in the user's editor.
    pub(crate) documents: Option<Arc<dyn OpenDocuments>>,
}

/// The work to start.
pub(crate) enum RunTarget {
    /// A request in plain words.
    Request(String),
    /// A code review, and its request.
    Review(Box<CodeReview>, String),
    /// A template, a workflow or a tool.
    Task(Box<ReadyTask>),
}

/// The first rules in words, and the number of the others.
fn enumerated(rules: &[&ApprovalRule]) -> String {
    let shown = rules.iter().take(MAX_REPORTED).map(|rule| approval_prompt::describe(rule));
    let shown = shown.collect::<Vec<_>>().join("; ");
    match rules.len().saturating_sub(MAX_REPORTED) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// A started run, and what its UI needs.
pub(crate) struct StartedRun {
    pub(crate) running: RunHandle,
    pub(crate) header: RunHeader,
    /// Write the log file and notify the user, as far as that is configured.
    pub(crate) readers: Vec<UiThread>,
    /// The journal of a run that a worker works on, until the end of the display.
    #[cfg(feature = "restate")]
    pub(crate) copy: Option<super::engine::CopyFolder>,
}

impl<'p> RunSetup<'p> {
    /// Sets up new runs: sandbox, MCP servers, model and journal.
    pub(crate) async fn open(
        project: Project,
        config: Config,
        ui_options: UiOptions,
        resolved: ResolvedModel,
        record: Option<&Path>,
        process: &'p Process,
    ) -> Result<Self, CliError> {
        let workspace_at = project.shown_at.clone();
        let options = SandboxOptions { workspace_at, ..config.sandbox_options(&process.environment) };
        let resolved = model_selection::with_display(resolved, &config, &process.environment)?;
        let display = config.display();
        let sandbox = activate(config.sandbox(), options, &project.directory, display, process).await;
        let window = fusee::engine::run::limits_for(&resolved, config.limits()).max_tokens;
        let servers = mcp_servers::connect(&config, &project.directory, process, window).await;
        let model = open_model(&resolved, record, process)?;
        let setup = Self {
            journal: process
                .journals
                .get_or_open(&project.journal, || project.open_journal(config.journal()))?,
            process,
            project,
            config,
            ui_options,
            resolved,
            model,
            sandbox,
            servers,
            documents: None,
        };
        let used = setup.saved_rules().read();
        Ok(setup.announce(&used).await)
    }

    /// Sets up the rest of an interrupted run: its own sandbox and the tools its servers offered.
    pub(crate) async fn reopen(
        project: Project,
        config: Config,
        ui_options: UiOptions,
        resolved: ResolvedModel,
        spec: &RunSpec,
        process: &'p Process,
    ) -> Result<Self, CliError> {
        let open = || project.open_journal(config.journal());
        let journal = process.journals.get_or_open(&project.journal, open)?;
        Self::reopen_on(journal, project, config, ui_options, resolved, spec, process).await
    }

    /// Sets up a run whose settings are complete, on this journal.
    pub(crate) async fn reopen_on(
        journal: Journal,
        project: Project,
        config: Config,
        ui_options: UiOptions,
        resolved: ResolvedModel,
        spec: &RunSpec,
        process: &'p Process,
    ) -> Result<Self, CliError> {
        let display = spec.traits.display.map(|display| DisplayNumber::from(display.number));
        let sandbox =
            activate(spec.sandbox, spec.sandbox_options.clone(), &spec.workspace, display, process).await;
        let model = open_model(&resolved, spec.record.as_deref(), process)?;
        let setup = Self {
            journal,
            servers: mcp_servers::for_resume(&spec.mcp, &config, &spec.workspace, process),
            process,
            project,
            config,
            ui_options,
            resolved,
            model,
            sandbox,
            documents: None,
        };
        Ok(setup.announce(&spec.rules).await)
    }

    /// Finishes a rewind that was killed, and says what the user should know before a run: gaps of the sandbox, and
    /// saved approvals.
    async fn announce(self, used: &ApprovalRules) -> Self {
        rewind::finish_interrupted(&self.journal).await;
        warn(&self.sandbox, &self.ui_options);
        self.report_standing_approvals(used);
        self
    }

    /// Says which saved approvals the run uses. A resumed run decides as it did before it was interrupted, with the
    /// approvals of its start.
    fn report_standing_approvals(&self, used: &ApprovalRules) {
        if self.ui_options.is_silent() {
            return;
        }
        let saved = self.saved_rules().read();
        let of_config = |rule: &&ApprovalRule| self.config.rules().contains(rule);
        let used = used.iter().filter(|rule| rule.then == RuleDecision::Allow && !of_config(rule));
        let (active, revoked): (Vec<&ApprovalRule>, Vec<_>) =
            used.partition(|rule| saved.iter().any(|saved| saved == *rule));
        if !active.is_empty() {
            let shown = enumerated(&active);
            stdio::error(&format!(
                "saved approvals in use: {shown} (`fusee approvals` lists and revokes them)\n"
            ));
        }
        if !revoked.is_empty() {
            let shown = enumerated(&revoked);
            stdio::error(&format!("this run still uses approvals that you have since revoked: {shown}\n"));
        }
    }

    /// A new run of `target` with the model of this set-up.
    pub(crate) fn builder(&self, target: RunTarget) -> Result<RunBuilder, CliError> {
        self.builder_with(target, &self.resolved, Arc::clone(&self.model))
    }

    /// A new run of `target` with another model.
    pub(crate) fn builder_with(
        &self,
        target: RunTarget,
        resolved: &ResolvedModel,
        model: Arc<dyn Model>,
    ) -> Result<RunBuilder, CliError> {
        let (limits, options) = (self.config.limits(), self.config.options());
        let directory = &self.project.directory;
        let mut builder =
            RunBuilder::resolved(directory, resolved, limits, options, self.journal.clone(), model);
        let spec = &mut builder.spec;
        spec.approve = self.config.approve();
        spec.rules = self.rules();
        spec.hooks = self.config.hooks(directory, self.project.home());
        spec.web = self.web()?;
        spec.diagnostics = self.config.diagnostics();
        match target {
            RunTarget::Request(request) => {
                spec.request = request;
                spec.flow = self.config.flow()?;
            }
            RunTarget::Review(review, request) => {
                spec.request = request;
                spec.flow = self.config.flow()?;
                // A reviewer never changes anything, so there is nothing to approve.
                spec.review = Some(ReviewPolicy { require_approval: false, ..ReviewPolicy::default() });
                spec.code_review = Some(*review);
            }
            RunTarget::Task(task) => {
                spec.request = task.title;
                spec.work = task.work;
                // A template names its flow itself; everything else that is configured applies to it too.
                let flow = self.config.flow()?;
                spec.flow = FlowSettings { mode: FlowMode::Flat, stages: Vec::new(), ..flow };
                if let RunKind::Template(template) = &mut spec.work {
                    template.limits = self.config.given_limits();
                }
                builder.deps.templates = template_source::for_run(task.loaded, &self.project);
                if task.trace {
                    builder.deps.trace = Some(Arc::new(|line| stdio::error(&format!("{line}\n"))));
                }
            }
        }
        Ok(self.add_process_parts(builder, &self.servers))
    }

    /// Starts a run, by default under a new id.
    pub(crate) async fn start(
        &self,
        builder: RunBuilder,
        run: Option<RunId>,
    ) -> Result<StartedRun, CliError> {
        let builder = self.complete(builder)?;
        let header = RunHeader::from_spec(&builder.spec);
        let run = run.map_or_else(system::new_run_id, Ok).map_err(CliError::failed)?;
        let phases = PhaseLogTarget::from_flow(&builder.spec.flow);
        let log = self.log_file()?;
        let (builder, trace) = self.traced(builder, &run);
        let running = Box::pin(builder.start(&run)).await?;
        trace(&running);
        let readers = self.readers(&running, log, phases)?;
        Ok(StartedRun {
            running,
            header,
            readers,
            #[cfg(feature = "restate")]
            copy: None,
        })
    }

    /// Starts a run with settings that are complete except for what this process contributes; `approver` replaces the
    /// one of the UI.
    pub(crate) async fn start_with(
        &self,
        run: &RunId,
        spec: RunSpec,
        model: Arc<dyn Model>,
        approver: Option<&Arc<dyn Approver>>,
    ) -> Result<StartedRun, CliError> {
        let builder = RunBuilder::new(spec, self.journal.clone(), model);
        let mut builder = self.add_process_parts(builder, &self.servers);
        if let Some(approver) = approver {
            builder.deps.approver = Arc::clone(approver);
        }
        self.start(builder, Some(run.clone())).await
    }

    /// Resumes a run with these settings, model and servers; `approver` replaces the one of the UI.
    pub(crate) fn resume(
        &self,
        run: &RunId,
        spec: RunSpec,
        model: Arc<dyn Model>,
        servers: &McpServers,
        approver: Option<&Arc<dyn Approver>>,
    ) -> Result<StartedRun, CliError> {
        let builder = self.add_process_parts(RunBuilder::new(spec, self.journal.clone(), model), servers);
        let mut builder = self.complete(builder)?;
        if let Some(approver) = approver {
            builder.deps.approver = Arc::clone(approver);
        }
        let header = RunHeader::from_spec(&builder.spec);
        let phases = PhaseLogTarget::from_flow(&builder.spec.flow);
        let log = self.log_file()?;
        let (builder, trace) = self.traced(builder, run);
        let running = builder.resume(run)?;
        trace(&running);
        let readers = self.readers(&running, log, phases)?;
        Ok(StartedRun {
            running,
            header,
            readers,
            #[cfg(feature = "restate")]
            copy: None,
        })
    }

    /// Tells the commands of a run which trace they belong to, and what traces the run once it works.
    #[cfg(feature = "telemetry")]
    fn traced(&self, mut builder: RunBuilder, run: &RunId) -> (RunBuilder, impl FnOnce(&RunHandle) + use<>) {
        let Process { telemetry, environment, .. } = self.process;
        let telemetry = telemetry.with_endpoint(environment, self.config.text("otlp_endpoint"));
        if let Some(parent) = telemetry.trace_parent(run) {
            let environment = builder.deps.commands.environment.clone();
            builder.deps.commands.environment = environment.with([("TRACEPARENT".to_owned(), parent)]);
        }
        let trace = telemetry.begin(run, &builder.spec, &self.journal);
        let watch =
            move |handle: &RunHandle| trace.into_iter().for_each(|trace| telemetry.watch(handle, trace));
        (builder, watch)
    }

    /// Nothing is traced.
    #[cfg(not(feature = "telemetry"))]
    fn traced(&self, builder: RunBuilder, _run: &RunId) -> (RunBuilder, impl FnOnce(&RunHandle) + use<>) {
        (builder, |_: &RunHandle| {})
    }

    /// Starts what reads the events of a run besides its UI.
    pub(super) fn readers(
        &self,
        running: &RunHandle,
        log: Option<BufWriter<File>>,
        phases: PhaseLogTarget,
    ) -> Result<Vec<UiThread>, CliError> {
        let mut readers = Vec::new();
        if let Some(file) = log {
            readers.push(ui::watch(Box::new(Log::new(file, phases)), running.events())?);
        }
        let notifier = self.ui_options.notifier(&self.config);
        if !notifier.is_off() {
            readers.push(ui::watch(Box::new(NotificationUi::new(notifier)), running.events())?);
        }
        Ok(readers)
    }

    /// Opens the configured log file, to append to it.
    pub(super) fn log_file(&self) -> Result<Option<BufWriter<File>>, CliError> {
        let Some(name) = self.config.text("log_file") else { return Ok(None) };
        let path = self.project.directory.join(name);
        let file = File::options().append(true).create(true).open(&path);
        let file = file
            .map_err(|error| CliError::usage(format!("cannot open log_file {}: {error}", path.display())))?;
        Ok(Some(BufWriter::new(file)))
    }

    /// Adds what this process contributes to every run.
    fn add_process_parts(&self, builder: RunBuilder, servers: &McpServers) -> RunBuilder {
        let builder = builder.with_sandbox(&self.sandbox);
        let mut builder = builder.with_mcp(&servers.offered, &servers.tools, &servers.secrets);
        builder.deps.approver = self.ui_options.approver(self.saved_rules());
        builder.deps.jitter = system::jitter;
        builder.deps.trusts_project = self.config.trusts_project();
        builder.deps.documents.clone_from(&self.documents);
        let environment = &self.process.environment;
        builder.deps.web.connection.ca_file = environment.variable("SSL_CERT_FILE").map(Into::into);
        if let Some(search) = &builder.spec.web.search {
            let key = config::search_key(search, environment);
            builder.deps.commands.secrets = builder.deps.commands.secrets.and(key.as_slice());
            builder.deps.web.search_key = key;
        }
        builder
    }

    /// The web tools of a new run.
    fn web(&self) -> Result<WebSettings, CliError> {
        let mut web = self.config.web(self.sandbox.options.network)?;
        let has_key = |search: &SearchSettings| {
            search.key_variable.is_none() || config::search_key(search, &self.process.environment).is_some()
        };
        if let Some(search) = web.search.take_if(|search| !has_key(search))
            && !self.ui_options.is_silent()
        {
            let variable = search.key_variable.unwrap_or_default();
            stdio::error(&format!("warning: web_search is unavailable: {variable} is not set\n"));
        }
        Ok(web)
    }

    /// Adds what depends on the complete settings: the models of the stages, and templates to delegate to.
    fn complete(&self, builder: RunBuilder) -> Result<RunBuilder, CliError> {
        let environment = &self.process.environment;
        let mut builder = builder.with_stage_models(|stage, name| {
            let resolved = model_selection::named(name, &self.config, environment).map_err(|failure| {
                CliError { message: format!("stage `{stage}`: {}", failure.message), ..failure }
            })?;
            let resolved = model_selection::with_display(resolved, &self.config, environment)?;
            let model = open_model(&resolved, None, self.process)?;
            Ok::<_, CliError>(PricedModel { model, price: resolved.price })
        })?;
        if builder.deps.templates.memory_file.is_none() {
            builder.deps.templates =
                template_source::needed_by_run(&builder.spec, &self.project, environment);
        }
        Ok(builder)
    }

    /// Approval rules from the configuration and the user's saved answers.
    fn rules(&self) -> ApprovalRules {
        let mut rules = ApprovalRules::new(self.config.rules().iter().cloned());
        self.saved_rules().read().iter().for_each(|rule| rules.add(rule.clone()));
        rules
    }

    /// The store of permanent approvals.
    pub(crate) fn saved_rules(&self) -> SavedRules {
        SavedRules::new(&self.project, &self.process.environment)
    }
}

/// Opens a model, or takes the one that this process has open. A model that is recorded is opened every time.
fn open_model(
    resolved: &ResolvedModel,
    record: Option<&Path>,
    process: &Process,
) -> Result<Arc<dyn Model>, CliError> {
    match record {
        Some(_) => model_selection::open(resolved, record),
        None => process.models.get_or_open(resolved, || model_selection::open(resolved, None)),
    }
}

async fn activate(
    mode: SandboxMode,
    options: SandboxOptions,
    workspace: &Path,
    display: Option<DisplayNumber>,
    process: &Process,
) -> ActiveSandbox {
    let folders = [process.environment.config_folder(), process.environment.state_folder()];
    let own: Vec<PathBuf> = folders.into_iter().flatten().collect();
    let authority = display.and_then(|_| process.environment.x_authority());
    let commands = CommandSettings {
        fork_server: process.fork_server.clone(),
        environment: process
            .command_environment()
            .with(display.map(|display| ("DISPLAY".to_owned(), display.to_string())))
            .with(authority.map(|file| ("XAUTHORITY".to_owned(), file.display().to_string()))),
        secrets: secrets(process),
        ..CommandSettings::default()
    };
    ActiveSandbox::activate(mode, options, workspace, commands, &own).await
}

/// Warns if commands are not sandboxed although that was requested, or less than usual.
fn warn(sandbox: &ActiveSandbox, ui_options: &UiOptions) {
    let Some(problem) = sandbox.problem.as_ref().filter(|_| !ui_options.is_silent()) else { return };
    if sandbox.preapproved {
        return stdio::error(&format!("warning: {problem}\n"));
    }
    let consequence = if ui_options.can_ask() {
        "you are asked before each command"
    } else {
        "commands are refused because there is no terminal to ask on"
    };
    stdio::error(&format!(
        "warning: no sandbox is available here ({problem}), so {consequence}; `--sandbox off` runs commands \
         unsandboxed\n"
    ));
}

/// Secret values from the environment, to be redacted.
fn secrets(process: &Process) -> Secrets {
    let secret = |name: &std::ffi::OsString| name.to_str().is_some_and(sandbox::looks_secret);
    let values = process.environment.variables().filter(|(name, _)| secret(name));
    Secrets::new(values.filter_map(|(_, value)| value.to_str()))
}
