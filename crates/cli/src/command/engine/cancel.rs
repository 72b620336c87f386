//! `fusee cancel`.

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee_restate::Engine;

use super::required;
use crate::config::flags::EngineFlags;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// Cancel a run on an engine.
///
/// The worker stops what the run is doing, and the run ends as cancelled.
#[derive(Args)]
pub(crate) struct CancelArgs {
    /// Run id
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    engine: EngineFlags,
}

/// Runs the command.
pub(crate) async fn cancel(args: &CancelArgs, _process: &Process) -> Result<ExitStatus, CliError> {
    let engine = Engine::connect(required(&args.engine)?).await?;
    let run = engine.run(&args.run).await?;
    engine.cancel(&run).await?;
    stdio::error(&format!("run {run} is being cancelled\n"));
    Ok(ExitStatus::Completed)
}
