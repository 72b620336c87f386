//! `fusee runs gc`.

use clap::Args;
use fusee::engine::run::ExitStatus;

use crate::config::Config;
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::format;

/// Remove old runs from the journal.
///
/// Keeps the newest finished runs and every open run. Data that only removed runs referred to is deleted as
/// well, and the file shrinks.
#[derive(Args)]
pub(crate) struct GcArgs {
    /// Number of finished runs to keep
    #[arg(long, value_name = "N", default_value_t = 50)]
    keep: usize,
    #[command(flatten)]
    place: DirectoryFlag,
}

/// Runs the command.
pub(crate) async fn gc(args: &GcArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let project = Project::find(args.place.directory.as_deref(), environment)?;
    drop(project.journal_with_runs()?);
    let config = Config::gather(Some(&project.config_file()), environment, Vec::new())?;
    let journal = project.open_journal(config.journal())?;
    let collected = journal.collect(args.keep).await?;
    let freed = format::bytes(collected.before.saturating_sub(collected.after));
    let runs = format::count(collected.runs as u64, "run");
    stdio::print(&format!(
        "removed {runs}, freed {freed}; the journal holds {}\n",
        format::bytes(collected.after)
    ))?;
    Ok(ExitStatus::Completed)
}
