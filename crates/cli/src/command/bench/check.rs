//! `fusee bench check`.

use std::path::PathBuf;

use clap::Args;
use fusee::engine::run::{ExitStatus, SandboxMode};
use fusee_bench::check::{self, CaseState, CheckedCase};
use fusee_bench::job::read_suite;
use fusee_bench::lock::JobSettings;

use super::setup::{BenchSetup, SelectionFlags, suite_path};
use crate::config::SANDBOX_MODES;
use crate::config::flags::words;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::format;

/// Check which cases of a suite are usable on this machine.
///
/// Runs the tests on every reference solution, which must pass, and on every stub, which must fail. Exits with 0 if no
/// case is broken; cases that this machine cannot run are listed with the reason.
#[derive(Args)]
pub(crate) struct CheckSuiteArgs {
    /// Folder of the suite, a suite.toml, or `demo`
    #[arg(value_name = "SUITE")]
    suite: PathBuf,
    /// Number of concurrent cases
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2)]
    concurrent: usize,
    /// Whether to run tests in the sandbox; `off` runs them unsandboxed
    #[arg(long, value_name = "on|off", value_parser = words::<SandboxMode>(SANDBOX_MODES))]
    sandbox: Option<SandboxMode>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: SelectionFlags,
}

/// Runs the command.
pub(super) async fn check(args: CheckSuiteArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let setup = BenchSetup::new(args.sandbox.unwrap_or_default(), args.concurrent, process).await?;
    let settings = JobSettings {
        suite: suite_path(&args.suite, process),
        test_commands: args.selection.test_commands(),
        ..JobSettings::default()
    };
    let suite = read_suite(&settings.suite, &setup.scratch, &settings)?;
    let cases = args.selection.selection().apply(&suite);
    let scratch = setup.scratch.join(format!("check-{}", std::process::id()));
    let mut printed = Ok(());
    let checked = check::check(&cases, &setup.machine, &setup.scorer, &scratch, args.concurrent, |case| {
        if !args.json {
            printed = stdio::print(&line(case));
        }
    })
    .await;
    // What stays behind is in a folder for temporary files.
    let _ = std::fs::remove_dir_all(&scratch);
    printed?;
    let broken: Vec<CheckedCase> = suite
        .problems
        .iter()
        .map(|problem| CheckedCase {
            case: problem.case.clone(),
            state: CaseState::Broken(problem.to_string()),
        })
        .collect();
    if args.json {
        let all: Vec<&CheckedCase> = checked.iter().chain(&broken).collect();
        stdio::print_json(&format!("{}\n", serde_json::to_string_pretty(&all).unwrap_or_default()))?;
    } else {
        stdio::print(&broken.iter().map(line).collect::<String>())?;
    }
    let count = |is: fn(&CaseState) -> bool| {
        checked.iter().chain(&broken).filter(|case| is(&case.state)).count() as u64
    };
    let wrong = count(|state| matches!(state, CaseState::Broken(_)));
    stdio::error(&format!(
        "{} usable, {} without a reference solution, {} skipped, {} broken\n",
        format::count(count(|state| matches!(state, CaseState::Usable)), "case"),
        count(|state| matches!(state, CaseState::Unverified)),
        count(|state| matches!(state, CaseState::Skipped(_))),
        wrong,
    ));
    Ok(if wrong == 0 { ExitStatus::Completed } else { ExitStatus::Failed })
}

fn line(case: &CheckedCase) -> String {
    let name = &case.case;
    match &case.state {
        CaseState::Usable => format!("ok       {name}\n"),
        CaseState::Unverified => format!("ok?      {name}: no reference solution\n"),
        CaseState::Skipped(reason) => format!("skipped  {name}: {reason}\n"),
        CaseState::Broken(reason) => format!("BROKEN   {name}: {reason}\n"),
    }
}
