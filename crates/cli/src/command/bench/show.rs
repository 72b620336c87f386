//! `fusee bench show`: the results of a job as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee_bench::results::{self, TrialResult};
use fusee_bench::statistics::{pass_at_k, pass_hat_k, wilson};

use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::format;

/// Show the results of a job.
///
/// Without CASE, prints pass rates with 95 % confidence intervals and one line per trial. With CASE, prints its trials
/// with their runs and the output of their last tests.
#[derive(Args)]
pub(crate) struct ShowJobArgs {
    /// Folder of the job
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Show only this case, in detail
    #[arg(value_name = "CASE")]
    case: Option<String>,
    /// Print the results as JSON Lines
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn show(args: &ShowJobArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let folder = process.environment.directory().join(&args.folder);
    let mut results = results::read(&folder).map_err(|error| CliError::usage(error.to_string()))?;
    if let Some(case) = &args.case {
        results.retain(|result| result.case == *case);
        if results.is_empty() {
            return Err(CliError::usage(format!("{} has no trial of case `{case}`", args.folder.display())));
        }
    }
    if args.json {
        for result in &results {
            stdio::print_json(&format!("{}\n", serde_json::to_string(result).unwrap_or_default()))?;
        }
        return Ok(ExitStatus::Completed);
    }
    stdio::print(&match args.case {
        None => format!("{}\n{}", table(&results), trials(&results)),
        Some(_) => results.iter().map(detail).collect(),
    })?;
    Ok(ExitStatus::Completed)
}

/// Pass rates by variant.
pub(super) fn table(results: &[TrialResult]) -> String {
    let mut variants: BTreeMap<usize, Vec<&TrialResult>> = BTreeMap::new();
    for result in results {
        variants.entry(result.variant).or_default().push(result);
    }
    let mut text = String::new();
    for trials in variants.values() {
        let graded: Vec<&&TrialResult> = trials.iter().filter(|result| result.is_graded()).collect();
        let passed = graded.iter().filter(|result| result.passed).count() as u64;
        let interval = wilson(passed, graded.len() as u64, 0.95);
        let rate = 100.0 * passed as f64 / graded.len().max(1) as f64;
        let name = trials.first().map(|result| result.label()).unwrap_or_default();
        let _ = write!(
            text,
            "{name}\n  passed {passed} of {}: {rate:.1} % (95 % interval {:.1} to {:.1})\n",
            graded.len(),
            100.0 * interval.low,
            100.0 * interval.high
        );
        text.push_str(&several_attempts(&graded));
        let sum = |field: fn(&TrialResult) -> f64| trials.iter().map(|result| field(result)).sum::<f64>();
        let _ = writeln!(
            text,
            "  {}, {} tokens, {}, cost {}{}",
            format::count(sum(|result| f64::from(result.turns)) as u64, "turn"),
            format::tokens(sum(|result| result.tokens as f64) as u64),
            format::span((1000.0 * sum(|result| result.seconds)) as u64),
            cost(trials),
            causes(trials)
        );
    }
    text
}

/// The sum of the known costs; whether others are missing.
fn cost(trials: &[&TrialResult]) -> String {
    let known: Vec<f64> = trials.iter().filter_map(|result| result.cost_usd).collect();
    match known.len() {
        0 => "unknown".to_owned(),
        some if some < trials.len() => format!("at least {}", format::usd(known.iter().sum())),
        _ => format::usd(known.iter().sum()),
    }
}

/// pass@k, pass^k and flaky cases, if cases were attempted several times.
fn several_attempts(graded: &[&&TrialResult]) -> String {
    let mut cases: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for result in graded {
        let entry = cases.entry(&result.case).or_default();
        entry.0 += 1;
        entry.1 += u64::from(result.passed);
    }
    let least = cases.values().map(|(attempts, _)| *attempts).min().unwrap_or_default();
    if least < 2 {
        return String::new();
    }
    let mean = |of: fn(u64, u64, u64) -> Option<f64>| {
        let values: Vec<f64> = cases.values().filter_map(|(n, c)| of(*n, *c, least)).collect();
        100.0 * values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let flaky: Vec<&str> =
        cases.iter().filter(|(_, (n, c))| *c > 0 && c < n).map(|(case, _)| *case).collect();
    let mut text =
        format!("  pass@{least} {:.1} %, pass^{least} {:.1} %\n", mean(pass_at_k), mean(pass_hat_k));
    if !flaky.is_empty() {
        let _ = writeln!(text, "  flaky: {}", flaky.join(", "));
    }
    text
}

fn causes(trials: &[&TrialResult]) -> String {
    let mut counts = BTreeMap::new();
    for cause in trials.iter().filter_map(|result| result.cause) {
        *counts.entry(cause).or_insert(0) += 1;
    }
    counts.iter().map(|(cause, count)| format!(", {count} {cause}")).collect()
}

fn trials(results: &[TrialResult]) -> String {
    let width = results.iter().map(|result| result.case.len()).max().unwrap_or_default();
    let mut text = String::new();
    for result in results {
        let _ = writeln!(
            text,
            "{:<7} {:<width$} #{} {}, {}, {}  {}{}",
            verdict(result),
            result.case,
            result.attempt,
            if result.tries == 1 { "1 try".to_owned() } else { format!("{} tries", result.tries) },
            format::count(result.turns.into(), "turn"),
            format::span((1000.0 * result.seconds) as u64),
            result.run,
            result.cause.map(|cause| format!("  ({cause})")).unwrap_or_default()
        );
    }
    text
}

/// One word about a result.
pub(super) fn verdict(result: &TrialResult) -> &'static str {
    match (result.passed, result.is_graded()) {
        (true, _) => "passed",
        (false, true) => "failed",
        (false, false) => "void",
    }
}

fn detail(result: &TrialResult) -> String {
    let mut text = format!("{}\n", trials(std::slice::from_ref(result)).trim_end());
    let _ = writeln!(text, "  {}", result.label());
    if let Some(message) = &result.message {
        let _ = writeln!(text, "  {message}");
    }
    for run in &result.runs {
        let _ = writeln!(text, "  fusee show {run}");
    }
    text
}
