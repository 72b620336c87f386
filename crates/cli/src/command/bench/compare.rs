//! `fusee bench compare`.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee_bench::comparison::{self, Comparison};
use fusee_bench::results::{self, TrialResult};
use serde_json::Value;

use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::format;

/// Compare two results, paired by case and attempt.
///
/// Prints the difference of the pass rates with a 95 % confidence interval, a p-value, the cases that differ, and how many
/// cases would be needed to detect a difference of --points. DIR@N selects the Nth variant of a job with several.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Folder of the first job, or DIR@N for its Nth variant
    #[arg(value_name = "A")]
    a: String,
    /// Folder of the second job, or DIR@N
    #[arg(value_name = "B")]
    b: String,
    /// Difference to detect, in percentage points
    #[arg(long, value_name = "X", default_value_t = 5.0)]
    points: f64,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn compare(args: &CompareArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let directory = process.environment.directory();
    let (a, b) = (select(&args.a, directory)?, select(&args.b, directory)?);
    let comparison = comparison::compare(&a, &b, args.points);
    if comparison.cases == 0 {
        return Err(CliError::usage(format!("`{}` and `{}` have no graded case in common", args.a, args.b)));
    }
    if args.json {
        stdio::print_json(&format!("{}\n", serde_json::to_string(&comparison).unwrap_or_default()))?;
    } else {
        stdio::print(&text(&comparison, &args.a, &args.b))?;
    }
    Ok(ExitStatus::Completed)
}

/// Reads the results that an argument names.
pub(super) fn select(named: &str, directory: &Path) -> Result<Vec<TrialResult>, CliError> {
    let (folder, variant) = match named.rsplit_once('@') {
        Some((folder, number)) if !directory.join(named).exists() => {
            let number: usize = number.parse().map_err(|_| {
                CliError::usage(format!("`{named}`: `{number}` is not the number of a variant"))
            })?;
            (folder, Some(number))
        }
        _ => (named, None),
    };
    let mut results =
        results::read(&directory.join(folder)).map_err(|error| CliError::usage(error.to_string()))?;
    let most = results.iter().map(|result| result.variant + 1).max().unwrap_or_default();
    match variant {
        Some(number) if number == 0 || number > most => {
            return Err(CliError::usage(format!("`{folder}` has {most} variants, not {number}")));
        }
        Some(number) => results.retain(|result| result.variant + 1 == number),
        None if most > 1 => {
            let mut names: Vec<String> = Vec::new();
            for result in &results {
                let name = format!("{folder}@{}: {}", result.variant + 1, result.label());
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            return Err(CliError::usage(format!("`{folder}` has several variants")).help(names.join("\n")));
        }
        None => {}
    }
    Ok(results)
}

fn text(comparison: &Comparison, a: &str, b: &str) -> String {
    let Comparison { cases, difference, low, high, p, points, .. } = comparison;
    let percent = |rate: f64| format!("{:.1} %", 100.0 * rate);
    let mut text = format!(
        "{} with {}\nA  {a}: {}\nB  {b}: {}\n",
        format::count(*cases as u64, "case"),
        format::count(comparison.attempts as u64, "attempt"),
        percent(comparison.a),
        percent(comparison.b)
    );
    let _ = writeln!(
        text,
        "difference {:+.1} points (95 % interval {:+.1} to {:+.1}), p = {p:.4} ({})",
        100.0 * difference,
        100.0 * low,
        100.0 * high,
        comparison.test
    );
    text.push_str(match (*low > 0.0 || *high < 0.0, *p < 0.05) {
        (true, true) if *difference > 0.0 => "A is better.\n",
        (true, true) => "B is better.\n",
        _ => "The difference is not statistically significant.\n",
    });
    if let Some(needed) = comparison.needed {
        let _ = writeln!(text, "To see a difference of {points} points, {needed} cases are needed.");
    }
    if !comparison.flipped.is_empty() {
        text.push_str("\nCases that differ (A, B, runs of A, runs of B):\n");
        for flip in &comparison.flipped {
            let _ = writeln!(
                text,
                "  {}: {} {}  {}  {}",
                flip.case,
                word(&flip.a),
                word(&flip.b),
                flip.a_runs.join(" "),
                flip.b_runs.join(" ")
            );
        }
    }
    if !comparison.flaky.is_empty() {
        let _ = writeln!(text, "\nFlaky: {}", comparison.flaky.join(", "));
    }
    if comparison.unpaired > 0 {
        let left = format::count(comparison.unpaired as u64, "trial");
        let _ = writeln!(text, "\nLeft out because they have no graded counterpart: {left}.");
    }
    text
}

fn word(value: &Value) -> String {
    match value {
        Value::Bool(true) => "passed".to_owned(),
        Value::Bool(false) => "failed".to_owned(),
        rate => format!("{:.0} %", 100.0 * rate.as_f64().unwrap_or_default()),
    }
}
