//! Seeing a run through: what it is given from this process, who watches it, what a signal does to it.
//! The run itself is the engine's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_engine::agent::TurnStop;
use fusee_engine::approval::rules::Rules;
use fusee_engine::journal::{Journal, Stamped};
use fusee_engine::model::{CancellationToken, Model};
use fusee_engine::run::{Confine, Exit, Resources, RunOutcome, Running, SandboxMode, Settings};
use fusee_engine::tools::sandbox::{self, Allowance, Bounds, Fence, Network, Policy, Strength, Surroundings};
use fusee_engine::tools::{CommandSettings, Environment, Keeper, Sandbox, Secrets};
use tokio::signal::unix::{SignalKind, signal};

use crate::approvals::Approvals;
use crate::choice::Choice;
use crate::command::Process;
use crate::config::Config;
use crate::face::{self, Plan, Show};
use crate::failure::Failure;
use crate::project::Project;
use crate::{clock, output};

/// A second ctrl-c within this time is for the run, a further one does not wait for its end.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// What holds the commands of a run.
pub(crate) struct Confinement {
    /// In words, for the events.
    pub(crate) state: &'static str,
    /// Whether that, or the user's word, settles that commands may run.
    pub(crate) settled: bool,
    sandbox: Sandbox,
    allowance: Allowance,
    /// What the user has said for always in this project.
    approvals: Approvals,
    /// Why nothing holds although it was asked for, or what holds less.
    complaint: Option<String>,
}

impl Confinement {
    /// What can be done about what the user asked for: tried, not guessed.
    pub(crate) async fn of(
        mode: SandboxMode,
        confine: &Confine,
        workspace: &Path,
        process: &Process,
    ) -> Self {
        let none = Self {
            state: "none",
            settled: false,
            sandbox: Sandbox::Off,
            allowance: confine.allowance,
            approvals: Project::find(Some(workspace), &process.environment)
                .map(|project| Approvals::of(&project, &process.environment))
                .unwrap_or_default(),
            complaint: None,
        };
        if mode == SandboxMode::Off {
            return Self { state: "off", settled: true, allowance: Allowance::default(), ..none };
        }
        match held(workspace, confine, process).await {
            Ok(Held { sandbox, smaller }) => {
                let state = match (&sandbox, confine.network) {
                    (Sandbox::Off, _) => "none",
                    (Sandbox::Namespaces(_), Network::Own) => "namespaces",
                    (Sandbox::Namespaces(_), Network::Machine) => "namespaces, network allowed",
                    (Sandbox::Landlock(_), Network::Own) => "landlock",
                    (Sandbox::Landlock(_), Network::Machine) => "landlock, network allowed",
                };
                Self { state, settled: true, sandbox, complaint: smaller, ..none }
            }
            Err(complaint) => Self { complaint: Some(complaint), ..none },
        }
    }

    /// What the user has decided about calls: by rule, and by answers for always.
    pub(crate) fn rules(&self, config: &Config) -> Rules {
        let mut rules = Rules::new(config.rules().iter().cloned());
        self.approvals.read().iter().for_each(|rule| rules.add(rule.clone()));
        rules
    }

    /// What every run is begun with: its model, its limits, and what holds its commands.
    pub(crate) fn settings(
        &self,
        request: String,
        choice: &Choice,
        config: &Config,
        confine: Confine,
        directory: &Path,
    ) -> Settings {
        Settings {
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
            ..Settings::new(request, choice.name.clone(), directory)
        }
    }

    /// Says what is not confined although it was asked for.
    pub(crate) fn warn(&self, show: &Show) {
        let Some(complaint) = &self.complaint else { return };
        if self.settled {
            return output::error(&format!("warning: {complaint}\n"));
        }
        let so = if show.can_ask() {
            "you are asked before each command"
        } else {
            "commands are refused, since nobody is there to be asked"
        };
        output::error(&format!(
            "warning: no sandbox holds commands here ({complaint}), so {so}; `--sandbox off` is your word that \
             they may run free\n"
        ));
    }
}

/// A sandbox, and in which words it is less than the usual one.
struct Held {
    sandbox: Sandbox,
    smaller: Option<String>,
}

/// The best sandbox that there is for a workspace, or why there is none.
async fn held(workspace: &Path, confine: &Confine, process: &Process) -> Result<Held, String> {
    let keeper = process.keeper.as_ref().ok_or("no process keeps commands")?;
    let probed = sandbox::probe(keeper).await;
    let complaint = probed.complaint().unwrap_or_default();
    if probed.strength == Strength::None {
        return Err(complaint);
    }
    let workspace = workspace.canonicalize().map_err(|error| error.to_string())?;
    let folders = [process.environment.config_folder(), process.environment.state_folder()];
    let own: Vec<PathBuf> = folders.into_iter().flatten().collect();
    let environment = variables(process);
    let network = confine.network;
    let surroundings = Surroundings { workspace: &workspace, environment: &environment, own: &own, network };
    let policy = Policy::usual(&surroundings)
        .and_then(|policy| policy.with(&confine.read, &confine.write))
        .map_err(|error| error.to_string())?;
    surround(keeper.clone(), confine.allowance);
    let Some(promise) = probed.smaller_promise() else {
        return Ok(Held { sandbox: Sandbox::namespaces(policy), smaller: None });
    };
    let fence = Fence::new(policy);
    // What a fence cannot keep is known when it is made; better now than at the first command.
    fence.prepare().await.map_err(|error| format!("{complaint}; {error}"))?;
    let smaller = format!("no namespaces hold commands here ({complaint}), Landlock does: {promise}");
    Ok(Held { sandbox: Sandbox::Landlock(Arc::new(fence)), smaller: Some(smaller) })
}

/// Bounds what all commands use together, where this machine lets us; beside the run's first steps, since nothing depends
/// on it. Each command is counted anyway.
fn surround(keeper: Keeper, allowance: Allowance) {
    tokio::spawn(async move {
        let _ = keeper.surround(Bounds::around(&allowance)).await;
    });
}

/// What commands see of the environment.
pub(crate) fn variables(process: &Process) -> Environment {
    let variables = process.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
    Environment::allowed(variables)
}

/// What is in the environment and nobody is to be shown.
fn secrets(process: &Process) -> Secrets {
    let secret = |name: &std::ffi::OsString| name.to_str().is_some_and(sandbox::looks_secret);
    let values = process.environment.variables().filter(|(name, _)| secret(name));
    Secrets::new(values.filter_map(|(_, value)| value.to_str()))
}

/// What a run is given.
pub(crate) fn resources(
    journal: Journal,
    model: Arc<dyn Model>,
    confinement: &Confinement,
    show: &Show,
    process: &Process,
) -> Resources {
    Resources {
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
        templates: fusee_engine::run::Templates::default(),
    }
}

/// Watches a run until its end.
pub(crate) async fn see_through(running: Running, show: &Show, plan: Plan) -> Result<Exit, Failure> {
    see_on(running, show, plan, &[]).await
}

/// Watches the rest of a run; `past` is what an earlier process showed of it and still matters.
pub(crate) async fn see_on(
    running: Running,
    show: &Show,
    plan: Plan,
    past: &[Stamped],
) -> Result<Exit, Failure> {
    Ok(see_to_its_end(running, show, plan, past).await?.0)
}

/// The same, for those who want to know how it ended; nothing where a person did not wait for that.
pub(crate) async fn see_to_its_end(
    running: Running,
    show: &Show,
    plan: Plan,
    past: &[Stamped],
) -> Result<(Exit, Option<RunOutcome>), Failure> {
    let (run, cancel) = (running.id().clone(), running.cancellation());
    let mut face = show.face(plan, cancel.clone());
    past.iter().for_each(|event| face.recall(event));
    let watching = face::watch(face, running.events())?;
    let impatient = obey_signals(cancel, running.turn_stop(), show.is_live());
    let ended = async {
        let outcome = running.outcome().await;
        watching.ended().await.map(|()| outcome)
    };
    let outcome = tokio::select! {
        outcome = ended => outcome?,
        () = impatient => {
            output::error(&format!("\nstopped at once; `fusee resume {run}` goes on\n"));
            return Ok((Exit::Cancelled, None));
        }
    };
    match &outcome {
        RunOutcome::Lost(cause) => {
            Err(Failure::failed(format!("the run was lost to a fault in fusee: {cause}"))
                .help(format!("what was committed is kept: fusee resume {run}")))
        }
        RunOutcome::Stopped(_) => {
            // What stopped it is in its last event.
            output::error(&format!(
                "run {run} stays open: `fusee resume {run}` goes on once that is mended\n"
            ));
            Ok((outcome.exit(), Some(outcome)))
        }
        RunOutcome::Ended(ended) => {
            if let Some(line) = show.last_line(ended) {
                output::print(&format!("{line}\n"))?;
            }
            if ended.blocked {
                output::error("the model says that it is blocked: it could not do what was asked\n");
            }
            Ok((outcome.exit(), Some(outcome)))
        }
    }
}

/// One SIGINT or SIGTERM cancels the run; its end is written down and told as usual. At a terminal the first SIGINT stops
/// the turn, and a second, soon after it or while no turn runs, cancels the run. Ends when the person does not want to
/// wait for that either.
async fn obey_signals(cancel: CancellationToken, turns: TurnStop, live: bool) {
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
