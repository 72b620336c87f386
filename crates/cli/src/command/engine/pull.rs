//! `fusee pull`.

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee_restate::PullError;

use super::{OpenEngine, required};
use crate::config::flags::{DirectoryFlag, EngineFlags};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;

/// Apply the changes of a run on an engine to this directory.
///
/// Adds, changes and removes the files that the run has added, changed and removed so far. Nothing is written if one of
/// them has also changed here since the run started, unless --force is given.
#[derive(Args)]
pub(crate) struct PullArgs {
    /// Run id, or a unique prefix of it [default: the newest run]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Overwrite files that have changed here
    #[arg(long, conflicts_with = "dry_run")]
    force: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
    #[command(flatten)]
    engine: EngineFlags,
}

/// Runs the command.
pub(crate) async fn pull(args: &PullArgs, process: &Process) -> Result<ExitStatus, CliError> {
    required(&args.engine)?;
    let Some(engine) = OpenEngine::open(&args.engine, process).await? else { return Ok(ExitStatus::Usage) };
    let directory = Project::find(args.directory.directory.as_deref(), &process.environment)?.directory;
    let remote = engine.remote(&engine.named(args.run.as_deref()).await?);
    let (before, after) = remote.files().await?;
    let written = if args.dry_run {
        Ok(fusee_restate::changes(&before, &after))
    } else {
        fusee_restate::write_changes(&before, &after, &directory, args.force, &remote.blobs).await
    };
    let changes = written.map_err(|error| match error {
        PullError::Conflicts(_) => CliError::failed(error.to_string())
            .help("move your changes away, or use --force to overwrite them"),
        PullError::Failed(error) => error.into(),
    })?;
    let text: String =
        changes.iter().map(|change| format!("{:<7}  {}\n", change.what, change.path.display())).collect();
    if text.is_empty() {
        stdio::error("the run has changed no files\n");
    }
    stdio::print(&text)?;
    Ok(ExitStatus::Completed)
}
