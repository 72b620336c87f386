//! go test, plain and with `-v`.

use super::{TestFailure, TestLocation, TestReport};

/// Reads `--- FAIL: Name` lines. Without `-v` passing tests are not listed; a passing package counts as one.
pub(super) fn go_test(lines: &[&str]) -> Option<TestReport> {
    let package = |line: &&&str| line.starts_with("ok  \t") || line.starts_with("FAIL\t");
    lines.iter().find(package)?;
    let mut report = TestReport { runner: "go test".into(), ..TestReport::default() };
    let mut details: Vec<(&str, TestFailure)> = Vec::new();
    let (mut running, mut indent) = ("", 0);
    for line in lines {
        let bare = line.trim_start();
        if let Some(name) = bare.strip_prefix("=== RUN ").or_else(|| bare.strip_prefix("=== CONT ")) {
            running = name.trim();
            details.push((running, TestFailure::new(running)));
        } else if let Some((verdict, name)) = bare.strip_prefix("--- ").and_then(|rest| rest.split_once(": "))
        {
            let name = name.split(" (").next().unwrap_or(name);
            indent = line.len() - bare.len();
            match verdict {
                "FAIL" => {
                    report.failed += 1;
                    let known = details.iter().rposition(|(known, _)| *known == name);
                    let failure = known.map_or_else(|| TestFailure::new(name), |at| details.remove(at).1);
                    report.failures.push(failure);
                    running = "";
                }
                "PASS" => report.passed += 1,
                "SKIP" => report.skipped += 1,
                _ => {}
            }
        } else if line.starts_with("    ") && line.len() - bare.len() > indent.min(1) {
            let failure =
                match details.iter_mut().rev().find(|(name, _)| !running.is_empty() && *name == running) {
                    Some((_, failure)) => Some(failure),
                    None => report.failures.last_mut(),
                };
            if let Some(failure) = failure {
                message_line(failure, bare);
            }
        }
    }
    // A test with subtests fails because of them: keep and count the ones that say why.
    let names: Vec<String> = report.failures.iter().map(|failure| failure.name.clone()).collect();
    let listed = report.failures.len();
    report.failures.retain(|failure| {
        let is_parent = |name: &String| {
            name.strip_prefix(failure.name.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        !(failure.message.is_empty() && names.iter().any(is_parent))
    });
    let parents = u32::try_from(listed - report.failures.len()).unwrap_or_default();
    report.failed = report.failed.saturating_sub(parents);
    report.passed = report.passed.max(count(lines, "ok  \t"));
    report.failed = report.failed.max(count(lines, "FAIL\t"));
    Some(report)
}

fn count(lines: &[&str], prefix: &str) -> u32 {
    let count = lines.iter().filter(|line| line.starts_with(prefix)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn message_line(failure: &mut TestFailure, line: &str) {
    let located = line.split_once(": ").filter(|(place, _)| place.contains(".go:"));
    if let Some((place, message)) = located
        && failure.message.is_empty()
    {
        failure.location = TestLocation::parse(place);
        failure.message = message.to_owned();
        let values = message.split_once("want ").or_else(|| message.split_once("expected "));
        if let Some((before, expected)) = values {
            let actual = before.rsplit_once("got ").map(|(_, actual)| actual);
            let actual = actual.or_else(|| before.rsplit_once("= ").map(|(_, actual)| actual));
            if let Some(actual) = actual {
                failure.compare(actual.trim_end_matches([',', ';', ' ']), expected);
            }
        }
    } else if failure.message.lines().count() < 6 {
        let separator = if failure.message.is_empty() { "" } else { "\n" };
        failure.message.push_str(separator);
        failure.message.push_str(line.trim());
    }
}
