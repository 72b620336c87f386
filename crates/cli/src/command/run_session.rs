//! Drives a run from this process: assembles its resources, displays its events, handles signals. The run
//! itself is the engine's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_engine::agent::TurnInterrupt;
use fusee_engine::approval::rules::ApprovalRules;
use fusee_engine::journal::{EventRecord, Journal};
use fusee_engine::model::{CancellationToken, Model};
use fusee_engine::run::{ExitStatus, RunDeps, RunHandle, RunOutcome, RunSpec, SandboxMode, SandboxOptions};
use fusee_engine::tools::sandbox::{
    self, CgroupLimits, LandlockSandbox, Network, Policy, ResourceLimits, SandboxInputs, SandboxStrength,
};
use fusee_engine::tools::{CommandEnvironment, CommandSettings, ForkServer, Sandbox, Secrets};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::clock;
use crate::cli::error::CliError;
use crate::command::Process;
use crate::config::Config;
use crate::model_selection::ModelSelection;
use crate::project::Project;
use crate::project::saved_rules::SavedRules;
use crate::ui::stdio;
use crate::ui::{self, RunHeader, UiOptions};

/// A second Ctrl-C within this time cancels the run; a further one exits without waiting for it to end.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// The sandbox of a run's commands.
pub(crate) struct ActiveSandbox {
    /// Name of the sandbox, as it appears in the events.
    pub(crate) state: &'static str,
    /// What a command can do in it, for the user who approves one.
    pub(crate) description: &'static str,
    /// Whether commands may run without asking, because they are sandboxed or the user turned the sandbox
    /// off.
    pub(crate) settled: bool,
    sandbox: Sandbox,
    allowance: ResourceLimits,
    /// The user's saved "always" answers for this project.
    approvals: SavedRules,
    /// Why there is no sandbox although one was requested, or in what way it is weaker.
    complaint: Option<String>,
}

impl ActiveSandbox {
    /// Sets up the requested sandbox, probing what the system supports.
    pub(crate) async fn of(
        mode: SandboxMode,
        confine: &SandboxOptions,
        workspace: &Path,
        process: &Process,
    ) -> Self {
        let none = Self {
            state: "none",
            description: "not sandboxed: runs with your permissions",
            settled: false,
            sandbox: Sandbox::Off,
            allowance: confine.allowance,
            approvals: Project::find(Some(workspace), &process.environment)
                .map(|project| SavedRules::of(&project, &process.environment))
                .unwrap_or_default(),
            complaint: None,
        };
        if mode == SandboxMode::Off {
            return Self { state: "off", settled: true, allowance: ResourceLimits::default(), ..none };
        }
        match held(workspace, confine, process).await {
            Ok(SandboxChoice { sandbox, smaller }) => {
                let state = match (&sandbox, confine.network) {
                    (Sandbox::Off, _) => none.state,
                    (Sandbox::Namespaces(_), Network::Own) => "namespaces",
                    (Sandbox::Namespaces(_), Network::Machine) => "namespaces, network allowed",
                    (Sandbox::Landlock(_), Network::Own) => "landlock",
                    (Sandbox::Landlock(_), Network::Machine) => "landlock, network allowed",
                };
                let description = match (&sandbox, confine.network) {
                    (Sandbox::Off, _) => none.description,
                    (Sandbox::Namespaces(_), Network::Own) => {
                        "sandboxed: can change only the project, no network"
                    }
                    (Sandbox::Namespaces(_), Network::Machine) => {
                        "sandboxed: can change only the project, network allowed"
                    }
                    (Sandbox::Landlock(_), Network::Own) => {
                        "sandboxed by Landlock: can write files only in the project, no network"
                    }
                    (Sandbox::Landlock(_), Network::Machine) => {
                        "sandboxed by Landlock: can write files only in the project, network allowed"
                    }
                };
                Self { state, description, settled: true, sandbox, complaint: smaller, ..none }
            }
            Err(complaint) => Self { complaint: Some(complaint), ..none },
        }
    }

    /// Approval rules from the configuration and the user's saved answers.
    pub(crate) fn rules(&self, config: &Config) -> ApprovalRules {
        let mut rules = ApprovalRules::new(config.rules().iter().cloned());
        self.approvals.read().iter().for_each(|rule| rules.add(rule.clone()));
        rules
    }

    /// Settings common to all runs: model, limits and sandbox.
    pub(crate) fn settings(
        &self,
        request: String,
        choice: &ModelSelection,
        config: &Config,
        confine: SandboxOptions,
        directory: &Path,
    ) -> RunSpec {
        RunSpec {
            base_url: choice.settings.base_url.clone(),
            wire: choice.settings.wire,
            traits: choice.settings.traits,
            price: choice.price,
            options: choice.options(config),
            limits: choice.limits(config),
            approve: config.approve(),
            rules: self.rules(config),
            sandbox: config.sandbox(),
            confine,
            sandbox_state: self.state.to_owned(),
            commands_settled: self.settled,
            ..RunSpec::new(request, choice.name.clone(), directory)
        }
    }

    /// Warns if commands are not sandboxed although that was requested, or less than usual.
    pub(crate) fn warn(&self, show: &UiOptions) {
        let Some(complaint) = &self.complaint else { return };
        if self.settled {
            return stdio::error(&format!("warning: {complaint}\n"));
        }
        let so = if show.can_ask() {
            "you are asked before each command"
        } else {
            "commands are refused because there is no terminal to ask on"
        };
        stdio::error(&format!(
            "warning: no sandbox is available here ({complaint}), so {so}; `--sandbox off` runs commands \
             unsandboxed\n"
        ));
    }
}

/// A sandbox, and a description of what it lacks compared to the namespace sandbox.
struct SandboxChoice {
    sandbox: Sandbox,
    smaller: Option<String>,
}

/// The strongest sandbox available for a workspace, or why there is none.
async fn held(
    workspace: &Path,
    confine: &SandboxOptions,
    process: &Process,
) -> Result<SandboxChoice, String> {
    let keeper = process.keeper.as_ref().ok_or("the fork server is not running")?;
    let probed = sandbox::probe(keeper).await;
    let complaint = probed.missing_reason().unwrap_or_default();
    if probed.strength == SandboxStrength::None {
        return Err(complaint);
    }
    let workspace = workspace.canonicalize().map_err(|error| error.to_string())?;
    let folders = [process.environment.config_folder(), process.environment.state_folder()];
    let own: Vec<PathBuf> = folders.into_iter().flatten().collect();
    let environment = variables(process);
    let network = confine.network;
    let surroundings = SandboxInputs { workspace: &workspace, environment: &environment, own: &own, network };
    let policy = Policy::defaults(&surroundings)
        .and_then(|policy| policy.with(&confine.read, &confine.write))
        .map_err(|error| error.to_string())?;
    limit_all(keeper.clone(), confine.allowance);
    let Some(promise) = probed.landlock_guarantees() else {
        return Ok(SandboxChoice { sandbox: Sandbox::namespaces(policy), smaller: None });
    };
    let fence = LandlockSandbox::new(policy);
    // The Landlock sandbox reports what it cannot enforce when it is created: better now than at the first
    // command.
    fence.prepare().await.map_err(|error| format!("{complaint}; {error}"))?;
    let smaller = format!("namespaces are not available here ({complaint}), using Landlock: {promise}");
    Ok(SandboxChoice { sandbox: Sandbox::Landlock(Arc::new(fence)), smaller: Some(smaller) })
}

/// Limits what all commands use together with a cgroup, where the system allows it. Runs concurrently with
/// the first steps because nothing depends on it; each command is limited individually anyway.
fn limit_all(keeper: ForkServer, allowance: ResourceLimits) {
    tokio::spawn(async move {
        let _ = keeper.limit_all(CgroupLimits::around(&allowance)).await;
    });
}

/// The environment variables that commands see.
pub(crate) fn variables(process: &Process) -> CommandEnvironment {
    let variables = process.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
    CommandEnvironment::allowed(variables)
}

/// Secret values from the environment, to be redacted.
fn secrets(process: &Process) -> Secrets {
    let secret = |name: &std::ffi::OsString| name.to_str().is_some_and(sandbox::looks_secret);
    let values = process.environment.variables().filter(|(name, _)| secret(name));
    Secrets::new(values.filter_map(|(_, value)| value.to_str()))
}

/// Assembles the resources of a run.
pub(crate) fn resources(
    journal: Journal,
    model: Arc<dyn Model>,
    confinement: &ActiveSandbox,
    show: &UiOptions,
    process: &Process,
) -> RunDeps {
    RunDeps {
        journal,
        model,
        others: Default::default(),
        commands: CommandSettings {
            keeper: process.keeper.clone(),
            environment: variables(process),
            sandbox: confinement.sandbox.clone(),
            allowance: confinement.allowance,
            secrets: secrets(process),
        },
        extra_tools: Vec::new(),
        commands_settled: confinement.settled,
        approver: show.approver(confinement.approvals.clone()),
        jitter: clock::jitter,
        trace: None,
        templates: fusee_engine::run::TemplateSource::default(),
    }
}

/// Displays a run until it ends.
pub(crate) async fn watch_run(
    running: RunHandle,
    show: &UiOptions,
    plan: RunHeader,
) -> Result<ExitStatus, CliError> {
    watch_resumed(running, show, plan, &[]).await
}

/// Displays the rest of a resumed run; `past` holds earlier events that are still relevant.
pub(crate) async fn watch_resumed(
    running: RunHandle,
    show: &UiOptions,
    plan: RunHeader,
    past: &[EventRecord],
) -> Result<ExitStatus, CliError> {
    Ok(watch_to_end(running, show, plan, past).await?.0)
}

/// Like [`watch_resumed`], and also returns the outcome; `None` if the user did not wait for it.
pub(crate) async fn watch_to_end(
    running: RunHandle,
    show: &UiOptions,
    plan: RunHeader,
    past: &[EventRecord],
) -> Result<(ExitStatus, Option<RunOutcome>), CliError> {
    let (run, cancel) = (running.id().clone(), running.cancellation());
    let mut face = show.face(plan, cancel.clone());
    past.iter().for_each(|event| face.recall(event));
    let watching = ui::watch(face, running.events())?;
    let impatient = watch_signals(cancel, running.turn_stop(), show.is_live());
    let ended = async {
        let outcome = running.outcome().await;
        watching.ended().await.map(|()| outcome)
    };
    let outcome = tokio::select! {
        outcome = ended => outcome?,
        () = impatient => {
            stdio::error(&format!("\nstopped immediately; run `fusee resume {run}` to continue\n"));
            return Ok((ExitStatus::Cancelled, None));
        }
    };
    match &outcome {
        RunOutcome::Lost(cause) => {
            Err(CliError::failed(format!("internal error: the run panicked: {cause}"))
                .help(format!("all committed steps are kept; run `fusee resume {run}` to continue")))
        }
        RunOutcome::Stopped(_) => {
            // The last event says why it stopped.
            stdio::error(&format!(
                "run {run} is still open; fix the problem, then run `fusee resume {run}`\n"
            ));
            Ok((outcome.exit(), Some(outcome)))
        }
        RunOutcome::Ended(ended) => {
            if let Some(line) = show.last_line(ended) {
                stdio::print(&format!("{line}\n"))?;
            }
            if ended.blocked {
                stdio::error("the model reports that it is blocked and could not complete the task\n");
            }
            Ok((outcome.exit(), Some(outcome)))
        }
    }
}

/// SIGINT or SIGTERM cancels the run, which then ends and reports as usual. At a terminal the first SIGINT
/// stops only the turn; a second one shortly after, or while no turn runs, cancels the run. Returns when the
/// user interrupts once more instead of waiting for the end.
async fn watch_signals(cancel: CancellationToken, turns: TurnInterrupt, live: bool) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    let mut last: Option<Instant> = None;
    loop {
        let interrupted = tokio::select! {
            _ = interrupt.recv() => true,
            _ = terminate.recv() => false,
        };
        if live && interrupted {
            let soon = last.replace(Instant::now()).is_some_and(|last| last.elapsed() < IMPATIENCE);
            if soon && cancel.is_cancelled() {
                return;
            }
            if !soon && !cancel.is_cancelled() && turns.stop() {
                continue;
            }
        }
        cancel.cancel();
    }
}
