//! Benchmark mode: whether it is enabled, and the one line that scripts read.

use fusee::engine::agent::TaskOutcome;
use fusee::engine::agent::flow::BenchmarkSettings;
use fusee::engine::journal::event::TaskStatus;

use crate::config::{Config, switch};
use crate::process::environment::Environment;

#[cfg(test)]
mod tests;

/// Maximum length of the reason, in characters.
const REASON_CHARACTERS: usize = 300;

/// The variable that enables benchmark mode, if one does.
pub(crate) fn enabled_by(environment: &Environment) -> Option<&'static str> {
    ["FUSEE_BENCHMARK", "LOCALCODE_BENCHMARK"].into_iter().find(|name| {
        let text = environment.text(name).unwrap_or_default().trim();
        !text.is_empty() && switch(text) != Some(false)
    })
}

/// The benchmark settings of a run, if benchmark mode is enabled by flag or variable.
pub(crate) fn settings_of_run(
    flag: bool,
    continues: bool,
    config: &Config,
    environment: &Environment,
) -> Option<BenchmarkSettings> {
    if !flag && enabled_by(environment).is_none() {
        return None;
    }
    let open = |name: &str| environment.text(name).and_then(switch) == Some(false);
    let protects_tests = !(open("FUSEE_BLOCK_TEST_EDITS") || open("LOCALCODE_BLOCK_TEST_EDITS"));
    let line = config.text("benchmark_output_mode") != Some("model");
    Some(BenchmarkSettings { attempt: if continues { 2 } else { 1 }, line, protects_tests })
}

/// The line printed to stdout.
pub(crate) fn line(benchmark: BenchmarkSettings, outcome: &TaskOutcome) -> String {
    let attempt = benchmark.attempt;
    let reason = match (outcome.status, &outcome.error) {
        (_, Some(error)) if error.reason == "blocked" => format!("blocked: {}", outcome.answer),
        (TaskStatus::Completed, _) if benchmark.line => return format!("Finished Try{attempt}"),
        (TaskStatus::Completed, _) => return outcome.answer.trim_end().to_owned(),
        (_, Some(error)) => error.message.clone(),
        (TaskStatus::Cancelled, None) => "cancelled".to_owned(),
        (TaskStatus::Failed, None) => "the task failed".to_owned(),
    };
    failed_line(attempt, &reason)
}

/// The line of a failed try.
pub(crate) fn failed_line(attempt: u32, reason: &str) -> String {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let reason: String = reason.chars().take(REASON_CHARACTERS).collect();
    format!("Failed Try{attempt}: {reason}")
}
