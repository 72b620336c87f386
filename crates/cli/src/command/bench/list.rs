//! `fusee bench list`.

use std::path::PathBuf;

use clap::Args;
use fusee::engine::run::{ExitStatus, SandboxMode};
use fusee_bench::job::read_suite;
use fusee_bench::lock::JobSettings;
use serde_json::json;

use super::setup::{BenchSetup, SelectionFlags, suite_path};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// List the cases of a suite.
///
/// Nothing is run. Cases that this machine cannot run are marked with the reason; cases that cannot be read are reported
/// with their location. Exits with 0 if all can be read, otherwise with 1.
#[derive(Args)]
pub(crate) struct ListSuiteArgs {
    /// Folder of the suite, a suite.toml, or `demo`
    #[arg(value_name = "SUITE", default_value = "demo")]
    suite: PathBuf,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: SelectionFlags,
}

/// Runs the command.
pub(super) async fn list(args: &ListSuiteArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let setup = match BenchSetup::new(SandboxMode::On, 1, process).await {
        Ok(setup) => setup,
        // Nothing is run, so a machine without a sandbox can list cases as well.
        Err(_) => BenchSetup::new(SandboxMode::Off, 1, process).await?,
    };
    let settings = JobSettings {
        suite: suite_path(&args.suite, process),
        test_commands: args.selection.test_commands(),
        ..JobSettings::default()
    };
    let suite = read_suite(&settings.suite, &setup.scratch, &settings)?;
    let cases = args.selection.selection().apply(&suite);
    if args.json {
        let rows: Vec<_> = cases
            .iter()
            .map(|case| {
                json!({
                    "case": case.name,
                    "language": case.language,
                    "keywords": case.keywords,
                    "test": case.test.command,
                    "skipped": case.skip_reason(&setup.machine),
                })
            })
            .collect();
        stdio::print_json(&format!("{}\n", serde_json::to_string_pretty(&rows).unwrap_or_default()))?;
    } else {
        let width = cases.iter().map(|case| case.name.len()).max().unwrap_or_default();
        for case in &cases {
            let language = case.language.as_deref().unwrap_or("-");
            let skipped =
                case.skip_reason(&setup.machine).map(|reason| format!("  ({reason})")).unwrap_or_default();
            stdio::print(&format!("{:<width$}  {language}{skipped}\n", case.name))?;
        }
    }
    for problem in &suite.problems {
        stdio::error(&format!("error: {problem}\n"));
    }
    Ok(if suite.problems.is_empty() { ExitStatus::Completed } else { ExitStatus::Failed })
}
