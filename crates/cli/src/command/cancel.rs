//! `fusee cancel`: ends a run that another process works on.

use std::time::Duration;

use clap::Args;
use fusee::engine::journal::RunStatus;
use fusee::engine::run::{ControlSignal, ExitStatus, SignalOutcome};

use crate::config::Config;
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;

/// How long the run is given to end: a command gets time to stop.
const ENDING: Duration = Duration::from_secs(15);

/// Interval between two checks of whether the run has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Cancel a run of another process.
///
/// The model's reply or the command in progress is stopped, and the run ends as cancelled. A cancelled workflow stays open
/// and can be resumed.
#[derive(Args)]
pub(crate) struct CancelArgs {
    /// Run id, a unique prefix of it, `last` or `last~N`
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    directory: DirectoryFlag,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    engine: crate::config::flags::EngineFlags,
}

/// Runs the command.
pub(crate) async fn cancel(args: CancelArgs, process: &Process) -> Result<ExitStatus, CliError> {
    #[cfg(feature = "restate")]
    if let Some(url) = &args.engine.engine {
        return super::engine::cancel(url, &args.run).await;
    }
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let row = find_run::named(&project.journal_with_runs()?, &args.run)?;
    project.check_owner()?;
    if row.status != RunStatus::Open {
        return Err(CliError::usage(format!("run {} has ended ({})", row.id, row.status)));
    }
    let config = Config::gather(Some(&project.config_file()), &process.environment, Vec::new())?;
    let journal =
        process.journals.get_or_open(&project.journal, || project.open_journal(config.journal()))?;
    match ControlSignal::Cancel.send(&journal, &row.id).await? {
        SignalOutcome::Taken | SignalOutcome::Busy => {}
        SignalOutcome::NotRunning => {
            return Err(CliError::usage(format!("run {} is not active", row.id))
                .help(format!("it was interrupted: `fusee resume {}` continues it", row.id)));
        }
    }
    let ended = async {
        while journal.is_active(&row.id) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(ENDING, ended).await {
        Ok(()) => stdio::error(&format!("run {} is cancelled\n", row.id)),
        Err(_) => stdio::error(&format!("run {} is being cancelled, and has not ended yet\n", row.id)),
    }
    Ok(ExitStatus::Completed)
}
