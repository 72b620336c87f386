//! Seeing a run through: what it is given from this process, who watches it, what a signal does to it.
//! The run itself is the engine's.

use std::sync::Arc;

use fusee_engine::approval::Nobody;
use fusee_engine::run::{Exit, Resources, RunOutcome, Running, SandboxMode};
use fusee_journal::Journal;
use fusee_model::{CancellationToken, Model};
use fusee_tools::{CommandSettings, Environment, Sandbox};
use tokio::signal::unix::{SignalKind, signal};

use crate::clock;
use crate::command::Process;
use crate::face::{self, Face};
use crate::failure::Failure;

/// What holds the commands of a run.
pub(crate) struct Confinement {
    /// In words, for the events.
    pub(crate) state: &'static str,
    /// Whether that, or the user's word, settles that commands may run.
    pub(crate) settled: bool,
}

impl Confinement {
    /// What can be done about what the user asked for.
    pub(crate) fn of(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::Off => Self { state: "off", settled: true },
            SandboxMode::On => Self { state: "none", settled: false },
        }
    }
}

/// What a run is given.
pub(crate) fn resources(
    journal: Journal,
    model: Arc<dyn Model>,
    confinement: &Confinement,
    process: &Process,
) -> Resources {
    let variables = process.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
    Resources {
        journal,
        model,
        commands: CommandSettings {
            keeper: process.keeper.clone(),
            environment: Environment::allowed(variables),
            sandbox: Sandbox::Off,
        },
        extra_tools: Vec::new(),
        commands_settled: confinement.settled,
        approver: Arc::new(Nobody),
        jitter: clock::jitter,
    }
}

/// Watches a run until its end.
pub(crate) async fn see_through(running: Running, face: Box<dyn Face>) -> Result<Exit, Failure> {
    let watching = face::watch(face, running.events(), running.cancellation())?;
    let interrupted = tokio::spawn(obey_signals(running.cancellation()));
    let outcome = running.outcome().await;
    interrupted.abort();
    watching.ended().await?;
    match outcome {
        RunOutcome::Lost(cause) => {
            Err(Failure::failed(format!("the run was lost to a fault in fusee: {cause}")))
        }
        RunOutcome::Ended(_) | RunOutcome::Stopped(_) => Ok(outcome.exit()),
    }
}

/// One SIGINT or SIGTERM cancels the run; its end is written down and told as usual.
async fn obey_signals(cancel: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    cancel.cancel();
}
