//! `fusee bench report`.

use std::path::PathBuf;

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee_bench::report::{self, ReportInput};
use fusee_bench::results;

use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// Write the results as one HTML file with plots, which needs no network.
///
/// With several jobs, or a job with several variants, the page also compares the first with each of the others.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Folders of the jobs
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// The file to write [default: report.html in the first folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn report(args: &ReportArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let directory = process.environment.directory();
    let mut inputs = Vec::new();
    for folder in &args.folders {
        let results =
            results::read(&directory.join(folder)).map_err(|error| CliError::usage(error.to_string()))?;
        inputs.push(ReportInput { name: folder.display().to_string(), results });
    }
    let file = match (&args.output, args.folders.first()) {
        (Some(file), _) => directory.join(file),
        (None, Some(folder)) => directory.join(folder).join("report.html"),
        (None, None) => return Err(CliError::usage("missing DIR")),
    };
    std::fs::write(&file, report::to_html(&inputs))
        .map_err(|error| CliError::failed(format!("{}: {error}", file.display())))?;
    stdio::print(&format!("{}\n", file.display()))?;
    Ok(ExitStatus::Completed)
}
