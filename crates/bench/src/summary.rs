//! The summary of a job in the polyglot benchmark's form: a YAML row per variant with aider's field names, in its order.

use crate::lock::Lock;
use crate::results::TrialResult;

/// Renders the rows of a job.
pub fn to_yaml(lock: &Lock, dirname: &str, date: &str, results: &[TrialResult]) -> String {
    let variants = 0..lock.settings.variants.len().max(1);
    variants.map(|number| row(lock, dirname, date, &of_variant(results, number))).collect()
}

fn of_variant(results: &[TrialResult], number: usize) -> Vec<&TrialResult> {
    results.iter().filter(|result| result.variant == number).collect()
}

fn row(lock: &Lock, dirname: &str, date: &str, all: &[&TrialResult]) -> String {
    let graded: Vec<&TrialResult> = all.iter().copied().filter(|result| result.is_graded()).collect();
    let completed = graded.len();
    let share = |part: usize| if completed == 0 { 0.0 } else { 100.0 * part as f64 / completed as f64 };
    let sum = |field: fn(&TrialResult) -> u64| all.iter().map(|result| field(result)).sum::<u64>();
    let count = |is: fn(&TrialResult) -> bool| all.iter().filter(|result| is(result)).count();
    let passed_by =
        |tries: u32| graded.iter().filter(|result| result.passed && result.tries <= tries).count();
    let first = all.first();
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| fields.push((name.to_owned(), value));
    add("dirname", text(dirname));
    add("test_cases", completed.to_string());
    add("model", text(first.map_or("", |result| result.model.as_str())));
    add("edit_format", text(first.map_or("", |result| result.flow.as_str())));
    add("commit_hash", text(&lock.job));
    for tries in 1..=lock.settings.tries.max(1) {
        add(&format!("pass_rate_{tries}"), format!("{:.1}", share(passed_by(tries))));
    }
    for tries in 1..=lock.settings.tries.max(1) {
        add(&format!("pass_num_{tries}"), passed_by(tries).to_string());
    }
    let malformed = count(|result| result.malformed_calls > 0);
    add(
        "percent_cases_well_formed",
        format!(
            "{:.1}",
            100.0 - if all.is_empty() { 0.0 } else { 100.0 * malformed as f64 / all.len() as f64 }
        ),
    );
    add("error_outputs", count(|result| result.cause.is_some()).to_string());
    add("num_malformed_responses", sum(|result| result.malformed_calls.into()).to_string());
    add("num_with_malformed_responses", malformed.to_string());
    add("user_asks", sum(|result| result.user_asks.into()).to_string());
    add("lazy_comments", sum(|result| result.lazy_comments.into()).to_string());
    add("syntax_errors", sum(|result| result.syntax_errors.into()).to_string());
    add("indentation_errors", sum(|result| result.indentation_errors.into()).to_string());
    let overflow = |result: &TrialResult| result.cause == Some(fusee::engine::run::FailureClass::Overflow);
    add("exhausted_context_windows", count(overflow).to_string());
    add("test_timeouts", count(|result| result.test_timeout).to_string());
    add("total_tests", lock.cases.len().to_string());
    add("command", text(&command(lock, first.copied())));
    add("date", date.to_owned());
    add("versions", text(&lock.fusee));
    let seconds: f64 = all.iter().map(|result| result.seconds).sum();
    add("seconds_per_case", format!("{:.1}", if all.is_empty() { 0.0 } else { seconds / all.len() as f64 }));
    // Adding 0 turns the empty sum -0.0 into 0.0.
    let cost = all.iter().filter_map(|result| result.cost_usd).sum::<f64>() + 0.0;
    add("total_cost", format!("{cost:.4}"));
    add("prompt_tokens", sum(|result| result.tokens.saturating_sub(result.output_tokens)).to_string());
    add("completion_tokens", sum(|result| result.output_tokens).to_string());
    let mut yaml = String::new();
    for (number, (name, value)) in fields.iter().enumerate() {
        yaml.push_str(&format!("{} {name}: {value}\n", if number == 0 { "-" } else { " " }));
    }
    yaml
}

fn command(lock: &Lock, first: Option<&TrialResult>) -> String {
    let model = first.map(|result| format!(" -m {}", result.model)).unwrap_or_default();
    let flow = first.map(|result| format!(" --flow {}", result.flow)).unwrap_or_default();
    format!("fusee bench run {}{model}{flow}", lock.settings.suite.display())
}

/// A YAML scalar, quoted where it could be read as something else.
fn text(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+ ".contains(c);
    let starts = value.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if starts
        && value.chars().all(plain)
        && !value.ends_with(' ')
        && !reserved.contains(&value.to_lowercase().as_str())
    {
        return value.to_owned();
    }
    // A JSON string is a YAML string.
    serde_json::Value::from(value).to_string()
}
