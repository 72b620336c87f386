//! `fusee attach`.

use clap::Args;
use fusee::engine::journal::RunId;
use fusee::engine::run::{ExitStatus, RunSpec};

use super::{OpenEngine, required};
use crate::command::run_session;
use crate::command::run_setup::StartedRun;
use crate::config::Config;
use crate::config::flags::EngineFlags;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::{RunHeader, UiOptions};

/// How often a run without a worker is looked at.
const POLL: std::time::Duration = std::time::Duration::from_millis(500);

/// Follow a run on an engine.
///
/// Shows the run from its beginning until its end, from any machine with the same blob store, and ends with its answer
/// and its exit code. Ctrl-c cancels the run.
#[derive(Args)]
pub(crate) struct AttachArgs {
    /// Run id, or a unique prefix of it [default: the newest run]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Print events as JSON Lines instead of the answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineFlags,
}

/// Runs the command.
pub(crate) async fn attach(args: AttachArgs, process: &Process) -> Result<ExitStatus, CliError> {
    follow(&args.engine, args.run.as_deref(), args.json, process).await
}

/// The settings of a run. Waits until a worker has begun with it.
async fn settings(engine: &OpenEngine, run: &RunId) -> Result<RunSpec, CliError> {
    let mut told = false;
    loop {
        if let Some(settings) = engine.engine.settings(run).await? {
            return Ok(settings);
        }
        if !std::mem::replace(&mut told, true) {
            stdio::error(&format!("run {run} waits for a worker\n"));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Shows a run from its beginning. The engine resumes runs by itself.
pub(crate) async fn follow(
    flags: &EngineFlags,
    run: Option<&str>,
    json: bool,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    required(flags)?;
    let Some(engine) = OpenEngine::of(flags, process).await? else { return Ok(ExitStatus::Usage) };
    let config = Config::gather(None, &process.environment, Vec::new())?;
    let show = UiOptions::new(json, &config, &process.environment);
    let run = engine.named(run).await?;
    let header = RunHeader::of(&settings(&engine, &run).await?);
    let (running, copy) = engine.follow(engine.remote(&run), "").await?;
    let started = StartedRun { running, header, log: None, copy: Some(copy) };
    let (exit, _) = run_session::watch(started, &show, &[]).await?;
    Ok(exit)
}
