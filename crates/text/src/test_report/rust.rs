//! cargo test and cargo nextest.

use super::counts::counts;
use super::{TestFailure, TestLocation, TestReport};

/// cargo test: one `test result:` line for each test binary.
pub(super) fn cargo_test(lines: &[&str]) -> Option<TestReport> {
    let mut report = TestReport { runner: "cargo test".into(), ..TestReport::default() };
    let mut found = false;
    for line in lines {
        if let Some(result) = line.strip_prefix("test result: ")
            && let Some((_, result)) = result.split_once(". ")
            && let Some(part) = counts(result, ';')
        {
            found = true;
            report.passed = report.passed.saturating_add(part.passed);
            report.failed = report.failed.saturating_add(part.failed);
            report.skipped = report.skipped.saturating_add(part.skipped);
        }
    }
    report.failures = panics(lines);
    found.then_some(report)
}

/// cargo nextest: the `Summary` line; the tests' own output is that of cargo test, indented.
pub(super) fn nextest(lines: &[&str]) -> Option<TestReport> {
    let summary = lines.iter().rev().find(|line| line.trim_start().starts_with("Summary ["))?;
    let (_, result) = summary.split_once(" run: ")?;
    let mut report = counts(result, ',')?;
    report.runner = "cargo nextest".into();
    report.failures = panics(lines);
    Some(report)
}

/// The panics of failed tests: `thread 'NAME' panicked at FILE:LINE:COLUMN:` and the lines after it.
fn panics(lines: &[&str]) -> Vec<TestFailure> {
    let mut failures: Vec<TestFailure> = Vec::new();
    let mut open = false;
    for line in lines {
        let line = line.trim();
        if let Some((head, place)) = line.split_once(" panicked at ") {
            let Some(name) = head.strip_prefix("thread '").and_then(|rest| rest.split('\'').next()) else {
                continue;
            };
            open = failures.iter().all(|failure| failure.name != name);
            if open {
                failures.push(TestFailure { location: TestLocation::parse(place), ..TestFailure::new(name) });
            }
        } else if line.is_empty() || line.starts_with("stack backtrace:") || line.starts_with("note: ") {
            open = false;
        } else if open && let Some(failure) = failures.last_mut() {
            match line.split_once(": ") {
                Some(("left", value)) => failure.actual = Some(value.to_owned()),
                Some(("right", value)) => failure.expected = Some(value.to_owned()),
                _ if failure.message.is_empty() => failure.message = line.to_owned(),
                _ => {
                    failure.message.push('\n');
                    failure.message.push_str(line);
                }
            }
        }
    }
    failures
}
