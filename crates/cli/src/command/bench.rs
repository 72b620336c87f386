//! `fusee bench`: the flags and the output of benchmarks. What a benchmark is and does is in the crate `fusee-bench`.

mod check;
mod compare;
mod export;
mod list;
mod progress;
mod report;
mod resume;
mod run;
mod setup;
mod show;

use clap::{Args, Subcommand};
use fusee::engine::run::ExitStatus;

use crate::process::Process;
use crate::process::error::CliError;

/// Measure models, prompts and flows on suites of tasks.
///
/// A suite is a folder of exercises in exercism's layout, of tasks in Harbor's layout, or with a suite.toml; `demo` is
/// built in. Every trial is a run: it can be shown, replayed and resumed like any other.
///
/// Example: `fusee bench run demo -m ollama:qwen3 --out a`, the same with another model and `--out b`, then
/// `fusee bench compare a b`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    Run(Box<run::RunBenchArgs>),
    Check(check::CheckSuiteArgs),
    List(list::ListSuiteArgs),
    Resume(resume::ResumeJobArgs),
    Show(show::ShowJobArgs),
    Compare(compare::CompareArgs),
    Report(report::ReportArgs),
    Export(export::ExportRunArgs),
}

/// Runs the command.
pub(crate) async fn bench(args: BenchArgs, process: &Process) -> Result<ExitStatus, CliError> {
    match args.command {
        BenchCommand::Run(args) => Box::pin(run::run(*args, process)).await,
        BenchCommand::Check(args) => Box::pin(check::check(args, process)).await,
        BenchCommand::List(args) => list::list(&args, process).await,
        BenchCommand::Resume(args) => Box::pin(resume::resume(args, process)).await,
        BenchCommand::Show(args) => show::show(&args, process),
        BenchCommand::Compare(args) => compare::compare(&args, process),
        BenchCommand::Report(args) => report::report(&args, process),
        BenchCommand::Export(args) => export::export(&args, process),
    }
}
