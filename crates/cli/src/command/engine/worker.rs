//! `fusee worker`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fusee::engine::approval::{AnsweredOutside, Approver};
use fusee::engine::journal::BoxFuture;
use fusee::engine::run::{ExitStatus, RunHandle, RunSpec, SandboxMode};
use fusee::launch::LaunchError;
use fusee::system::SystemClock;
use fusee_restate::{Engine, RunHost, Worker, WorkerLaunch, WorkerOptions};
use tokio::signal::unix::{SignalKind, signal};

use super::{blob_store, no_home, required};
use crate::command::run_setup::RunSetup;
use crate::config::Config;
use crate::config::flags::EngineFlags;
use crate::model_selection;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::UiOptions;

/// Execute the runs of an engine.
///
/// Registers with the engine and executes its runs until it is stopped. API keys come from the environment and
/// the configuration of the worker. If a worker dies, another one continues its runs after their last recorded step.
#[derive(Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    engine: EngineFlags,
    /// Address to listen on for the engine
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,
    /// URL at which the engine reaches this worker or its load balancer [default: that of --listen]
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// Folder for temporary journals and workspaces [default: in the cache folder, by port]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Allow runs with `--sandbox off` or paths outside the workspace, and run even without a sandbox; anyone who can
    /// reach the engine can then run any command on this machine
    #[arg(long)]
    allow_unsandboxed: bool,
    /// Serve only requests signed by the engine with this key (`publickeyv1_…`); can be repeated
    #[arg(long, value_name = "KEY")]
    identity_key: Vec<String>,
    /// Maximum number of concurrent runs per tenant; further runs wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tenant_limit: Option<u32>,
}

/// Runs the command.
pub(crate) async fn worker(args: WorkerArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let engine = Engine::connect(required(&args.engine)?).await?;
    let folder = match &args.folder {
        Some(given) => environment.directory().join(given),
        None => {
            let name = format!("worker-{}", args.listen.port());
            environment.cache_folder().ok_or_else(no_home)?.join(name)
        }
    };
    let url = engine.url().to_owned();
    let options = WorkerOptions {
        engine,
        listen: args.listen,
        advertised: args.advertise,
        folder,
        blobs: blob_store(&args.engine, environment)?,
        host: Arc::new(ProcessHost { process: process.clone(), allow_unsandboxed: args.allow_unsandboxed }),
        clock: Arc::new(SystemClock),
        identity_keys: args.identity_key,
        tenant_limit: args.tenant_limit.map(|limit| limit as usize),
    };
    let worker = Worker::start(options).await?;
    let address = worker.advertised().to_owned();
    let ready = |_: &str| stdio::error(&format!("worker at {address}, engine at {url}; ctrl-c stops it\n"));
    tokio::select! {
        served = worker.serve(ready) => served?,
        stopped = stopped() => stopped?,
    }
    Ok(ExitStatus::Completed)
}

/// Waits for SIGINT or SIGTERM. Runs that are working go on on another worker, or here after the next start.
async fn stopped() -> Result<(), CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("cannot wait for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Starts runs with what this process provides.
struct ProcessHost {
    process: Process,
    /// Whether commands may run without a sandbox.
    allow_unsandboxed: bool,
}

impl RunHost for ProcessHost {
    fn launch(&self, launch: WorkerLaunch) -> BoxFuture<'_, Result<RunHandle, LaunchError>> {
        Box::pin(async move { Box::pin(self.start(launch)).await.map_err(LaunchError::from) })
    }
}

/// Why the sandbox keeps a run from starting.
fn refusal(why: &str) -> CliError {
    CliError::usage(format!(
        "this worker runs commands only in its sandbox, and {why}; `fusee worker --allow-unsandboxed` lifts this"
    ))
}

impl ProcessHost {
    /// Refuses what a client must not choose for this machine.
    fn check(&self, spec: &RunSpec) -> Result<(), CliError> {
        if spec.record.is_some() {
            return Err(CliError::usage("a worker cannot write a recording for a client"));
        }
        let options = &spec.sandbox_options;
        let has_paths = !(options.read.is_empty() && options.write.is_empty() && options.moved.is_empty());
        match spec.sandbox {
            _ if self.allow_unsandboxed => Ok(()),
            SandboxMode::Off => Err(refusal("the run asks for --sandbox off")),
            SandboxMode::On if has_paths => {
                Err(refusal("the run asks for paths outside the workspace (sandbox.read, sandbox.write)"))
            }
            SandboxMode::On => Ok(()),
        }
    }

    async fn start(&self, launch: WorkerLaunch) -> Result<RunHandle, CliError> {
        let WorkerLaunch { run, spec, journal, resumes } = launch;
        self.check(&spec)?;
        let environment = &self.process.environment;
        let project = Project::find(Some(&spec.workspace), environment)?;
        // The configuration of the project has become part of the settings on the client.
        let config = Config::gather(None, environment, Vec::new())?;
        let mut resolved = model_selection::for_resume(&spec, &config, environment)?;
        let is_own = |url: &String| config.models().iter().any(|entry| entry.base_url.as_ref() == Some(url));
        if spec.base_url.as_ref().is_some_and(|url| !is_own(url)) {
            // A client must not have the worker's key sent to a server of its choice.
            resolved.connection.api_key = None;
        }
        let ui_options = UiOptions::silent(&config, environment);
        let setup =
            RunSetup::reopen_on(journal, project, config, ui_options, resolved, &spec, &self.process).await?;
        if !setup.sandbox.preapproved && !self.allow_unsandboxed {
            let problem = setup.sandbox.problem.as_deref().unwrap_or("unknown reason");
            return Err(refusal(&format!("it has none ({problem})")));
        }
        let model = match model_selection::is_script(&setup.resolved) {
            // Runs must not share the position in a script.
            true => model_selection::open(&setup.resolved, None)?,
            false => Arc::clone(&setup.model),
        };
        let approver: Arc<dyn Approver> = Arc::new(AnsweredOutside);
        let started = match resumes {
            true => setup.resume(&run, spec, model, &setup.servers, Some(&approver))?,
            false => setup.start_with(&run, spec, model, Some(&approver)).await?,
        };
        Ok(started.running)
    }
}
