//! `fusee bench export`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fusee::engine::run::{self, ExitStatus};
use fusee_bench::job;

use super::super::run_export;
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::{Project, find_run};

/// Export a run for other tools.
///
/// `atif` is the trajectory format of Harbor (ATIF-v1.8). `preds` is the prediction file of SWE-bench: the changes of
/// the run as a patch. Any run of the project can be exported, not only those of benchmarks.
#[derive(Args)]
pub(crate) struct ExportRunArgs {
    /// The run: its id, a unique prefix of it, `last` or `last~N`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Format of the export
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ExportFormat::Atif)]
    format: ExportFormat,
    /// Id of the instance in `preds` [default: the run's id]
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// Write to this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    directory: DirectoryFlag,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// Trajectory of Harbor
    Atif,
    /// Predictions of SWE-bench
    Preds,
}

/// Runs the command.
pub(super) fn export(args: &ExportRunArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let run = find_run::named(&journal, &args.run)?.id;
    let text = match args.format {
        ExportFormat::Atif => run_export::trajectory(&journal, &run)?,
        ExportFormat::Preds => {
            let settings = run::settings_of(&journal, &run)?;
            let patch = fusee_bench::run_patch::render(&journal, &run).map_err(CliError::failed)?;
            let instance = args.instance.clone().unwrap_or_else(|| run.to_string());
            let entry = job::prediction(&instance, &settings.model, &patch);
            run_export::pretty(&BTreeMap::from([(instance, entry)]))?
        }
    };
    match &args.output {
        None => stdio::print_json(&text)?,
        Some(file) => {
            let file = process.environment.directory().join(file);
            std::fs::write(&file, text)
                .map_err(|error| CliError::failed(format!("{}: {error}", file.display())))?;
        }
    }
    Ok(ExitStatus::Completed)
}
