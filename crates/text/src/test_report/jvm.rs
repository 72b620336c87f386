//! Maven's surefire, Gradle and dotnet test.

use super::{TestFailure, TestLocation, TestReport, number};

/// The number after a label: `1` for `Failed:` in `Failed:     1, Passed:     2`.
fn labelled(line: &str, label: &str) -> Option<u32> {
    number(line.split(label).nth(1)?.split(',').next()?)
}

/// surefire: `Tests run: 3, Failures: 1, Errors: 0, Skipped: 0`; the last such line without a time is the total.
pub(super) fn surefire(lines: &[&str]) -> Option<TestReport> {
    let is_summary = |line: &&&str| line.contains("Tests run: ") && line.contains("Failures: ");
    let total = lines.iter().rev().find(|line| is_summary(line) && !line.contains("Time elapsed"));
    let total = total.or_else(|| lines.iter().rev().find(is_summary))?;
    let all = labelled(total, "Tests run: ")?;
    let failed =
        labelled(total, "Failures: ")?.saturating_add(labelled(total, "Errors: ").unwrap_or_default());
    let skipped = labelled(total, "Skipped: ").unwrap_or_default();
    let mut report = TestReport {
        runner: "surefire".into(),
        passed: all.saturating_sub(failed).saturating_sub(skipped),
        failed,
        skipped,
        ..TestReport::default()
    };
    let list = lines.iter().skip_while(|line| !line.ends_with("Failures:") && !line.ends_with("Errors:"));
    for line in list {
        // [ERROR]   CalcTest.adds:9 expected: <4> but was: <0>
        let Some(rest) = line.strip_prefix("[ERROR]   ") else { continue };
        let (name, message) = rest.split_once(' ').unwrap_or((rest, ""));
        let (name, place) = name.rsplit_once(':').unwrap_or((name, ""));
        let class = name.split('.').next().unwrap_or(name);
        let mut failure = TestFailure {
            location: place.parse().ok().map(|line| TestLocation { path: format!("{class}.java"), line }),
            message: message.to_owned(),
            ..TestFailure::new(name)
        };
        if let Some((expected, actual)) = message.split_once(" but was:") {
            let expected = expected.rsplit_once("expected:").map_or(expected, |(_, value)| value);
            let strip = |value: &str| value.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
            failure.compare(&strip(actual), &strip(expected));
        }
        report.failures.push(failure);
    }
    Some(report)
}

/// Gradle: `3 tests completed, 1 failed` and `CalcTest > adds() FAILED`. Nothing is printed about success.
pub(super) fn gradle(lines: &[&str]) -> Option<TestReport> {
    let summary = lines.iter().rev().find(|line| line.contains(" completed, ") && line.contains(" test"))?;
    let mut parts = summary.split(", ");
    let all = parts.next().and_then(number)?;
    let (mut failed, mut skipped) = (0, 0);
    for part in parts {
        let count = number(part).unwrap_or_default();
        if part.contains("failed") {
            failed = count;
        } else if part.contains("skipped") {
            skipped = count;
        }
    }
    let mut report = TestReport {
        runner: "gradle".into(),
        passed: all.saturating_sub(failed).saturating_sub(skipped),
        failed,
        skipped,
        ..TestReport::default()
    };
    let mut open = false;
    for line in lines {
        if let Some(name) = line.strip_suffix(" FAILED").filter(|name| name.contains(" > ")) {
            report.failures.push(TestFailure::new(name));
            open = true;
        } else if line.trim().is_empty() {
            open = false;
        } else if open && let Some(failure) = report.failures.last_mut() {
            let place = line.trim().strip_prefix("at ").and_then(|frame| frame.rsplit_once('('));
            match place {
                Some((_, place)) => {
                    failure.location = failure.location.take().or_else(|| TestLocation::parse(place));
                }
                None if failure.message.is_empty() => failure.message = line.trim().to_owned(),
                None => {}
            }
        }
    }
    Some(report)
}

/// dotnet test: `Failed!  - Failed: 1, Passed: 2, Skipped: 0, Total: 3`.
pub(super) fn dotnet(lines: &[&str]) -> Option<TestReport> {
    let mut report = TestReport { runner: "dotnet test".into(), ..TestReport::default() };
    let mut found = false;
    for line in lines.iter().filter(|line| line.contains("!  - Failed:")) {
        found = true;
        report.failed = report.failed.saturating_add(labelled(line, "Failed:")?);
        report.passed = report.passed.saturating_add(labelled(line, "Passed:")?);
        report.skipped = report.skipped.saturating_add(labelled(line, "Skipped:").unwrap_or_default());
    }
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = line.trim_start().strip_prefix("Failed ").filter(|_| line.ends_with(']')) else {
            continue;
        };
        let name = name.rsplit_once(" [").map_or(name, |(name, _)| name);
        let below = || lines.iter().skip(at + 1).take(12).map(|line| line.trim());
        let mut failure = TestFailure::new(name);
        failure.message =
            below().skip_while(|line| *line != "Error Message:").nth(1).unwrap_or_default().to_owned();
        failure.expected = below().find_map(|line| line.strip_prefix("Expected: ")).map(str::to_owned);
        failure.actual = below().find_map(|line| line.strip_prefix("Actual:   ")).map(str::to_owned);
        failure.location = below()
            .find_map(|line| line.split_once(" in ").filter(|_| line.starts_with("at ")))
            .and_then(|(_, place)| {
                let (path, line) = place.rsplit_once(":line ")?;
                Some(TestLocation { path: path.to_owned(), line: line.parse().ok()? })
            });
        report.failures.push(failure);
    }
    found.then_some(report)
}
