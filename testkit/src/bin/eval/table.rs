//! Tables of results: a row per method, and the paired differences.

use std::path::Path;

use crate::Outcome;
use crate::results::{Results, TrialResult};
use crate::statistics::{Comparison, compare};
use crate::suite::Suite;

/// Prints the results of the suite's exercises as Markdown.
pub(crate) fn print(folder: &Path, suite: &Suite) -> Outcome {
    let results = Results::new(folder);
    let settings = results.settings()?.ok_or_else(|| format!("{}: no results", folder.display()))?;
    let mut columns: Vec<(String, Vec<Option<TrialResult>>)> = Vec::new();
    for method in settings.methods.keys() {
        let found: Outcome<Vec<_>> =
            suite.exercises.iter().map(|exercise| results.find(method, &exercise.name)).collect();
        columns.push((method.clone(), found?));
    }
    columns.retain(|(_, found)| found.iter().any(Option::is_some));
    columns.sort_by_key(|(_, found)| std::cmp::Reverse(solved(found)));
    println!("\n{}, at most {} s per exercise\n", settings.model, settings.limit_seconds);
    println!(
        "| method | solved | by language | requests | prompt tokens | cached | completion tokens | seconds | timeouts |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (method, found) in &columns {
        println!("{}", row(method, found, suite));
    }
    if columns.len() > 1 {
        println!(
            "\n| A | B | only A | only B | A − B in points | 95 % interval | p |\n|---|---|---|---|---|---|---|"
        );
    }
    for (index, (a, of_a)) in columns.iter().enumerate() {
        for (b, of_b) in &columns[index + 1..] {
            if let Some(comparison) = compare(&pairs(of_a, of_b)) {
                println!("{}", comparison_row(a, b, &comparison));
            }
        }
    }
    println!();
    for (method, version) in &settings.methods {
        println!("{method}: {version}");
    }
    Ok(())
}

fn solved(found: &[Option<TrialResult>]) -> usize {
    found.iter().flatten().filter(|result| result.passed).count()
}

fn row(method: &str, found: &[Option<TrialResult>], suite: &Suite) -> String {
    let mut languages: Vec<_> = suite.exercises.iter().map(|exercise| exercise.language).collect();
    languages.sort();
    languages.dedup();
    let by_language: Vec<String> = languages
        .into_iter()
        .map(|language| {
            let own = suite.exercises.iter().zip(found).filter(|(exercise, _)| exercise.language == language);
            let own: Vec<bool> = own.filter_map(|(_, result)| Some(result.as_ref()?.passed)).collect();
            format!("{} {}/{}", language.name(), own.iter().filter(|passed| **passed).count(), own.len())
        })
        .collect();
    let results = || found.iter().flatten();
    let sum = |count: fn(&TrialResult) -> u64| results().map(count).sum::<u64>();
    let timeouts = results().filter(|result| result.cause.as_deref() == Some("timeout")).count();
    let prompt = sum(|result| result.usage.prompt_tokens);
    format!(
        "| {method} | {} of {} | {} | {} | {prompt} | {} % | {} | {:.0} | {timeouts} |",
        solved(found),
        results().count(),
        by_language.join(", "),
        sum(|result| result.usage.requests),
        sum(|result| result.usage.cached_tokens) * 100 / prompt.max(1),
        sum(|result| result.usage.completion_tokens),
        results().map(|result| result.seconds).sum::<f64>(),
    )
}

/// Outcomes of the exercises that both methods tried.
fn pairs(a: &[Option<TrialResult>], b: &[Option<TrialResult>]) -> Vec<(bool, bool)> {
    a.iter().zip(b).filter_map(|(a, b)| Some((a.as_ref()?.passed, b.as_ref()?.passed))).collect()
}

fn comparison_row(a: &str, b: &str, comparison: &Comparison) -> String {
    let Comparison { only_a, only_b, difference, low, high, p, .. } = comparison;
    let points = |share: &f64| share * 100.0;
    format!(
        "| {a} | {b} | {only_a} | {only_b} | {:+.0} | {:+.0} to {:+.0} | {p:.3} |",
        points(difference),
        points(low),
        points(high)
    )
}
