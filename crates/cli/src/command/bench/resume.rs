//! `fusee bench resume`.

use std::path::PathBuf;

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee_bench::job::Job;

use super::run::{self, ExecutionFlags};
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;

/// Continue a job that was stopped or killed.
///
/// Trials that have a result are not run again, interrupted ones are resumed, and the rest are started. Exits like
/// `fusee bench run`.
#[derive(Args)]
pub(crate) struct ResumeJobArgs {
    /// Folder of the job
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    execution: ExecutionFlags,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(super) async fn resume(args: ResumeJobArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let folder = process.environment.directory().join(&args.folder);
    let setup = args.execution.setup(process).await?;
    let job = Job::open(&folder, &setup.scratch, &setup.machine)?;
    run::tell_problems(&job);
    run::perform(&job, &folder, setup, &args.execution, args.directory.directory.as_deref(), process).await
}
