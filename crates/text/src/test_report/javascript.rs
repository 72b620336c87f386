//! jest, vitest, mocha and node's own runner with its `spec` reporter.

use super::counts::counts;
use super::{TestFailure, TestLocation, TestReport, number};

/// jest: `Tests: 1 failed, 2 passed, 3 total` and `● suite › name` sections.
pub(super) fn jest(lines: &[&str]) -> Option<TestReport> {
    let summary = lines.iter().rev().find_map(|line| line.strip_prefix("Tests:"))?;
    let mut report = counts(summary, ',')?;
    report.runner = "jest".into();
    report.failures = sections(lines, |line| {
        let name = line.trim_start().strip_prefix("● ")?;
        (line.starts_with("  ") && !name.ends_with(':')).then_some(name)
    });
    Some(report)
}

/// vitest: `Tests  1 failed | 2 passed (3)` and `FAIL file > suite > name` sections.
pub(super) fn vitest(lines: &[&str]) -> Option<TestReport> {
    let summary = lines.iter().rev().find_map(|line| line.trim_start().strip_prefix("Tests  "))?;
    let mut report = counts(summary, '|')?;
    report.runner = "vitest".into();
    report.failures =
        sections(lines, |line| line.trim_start().strip_prefix("FAIL  ").filter(|name| name.contains(" > ")));
    Some(report)
}

/// mocha: `2 passing`, `1 failing`, then numbered sections.
pub(super) fn mocha(lines: &[&str]) -> Option<TestReport> {
    let at = lines.iter().rposition(|line| {
        let line = line.trim_start();
        line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" passing (")
    })?;
    let end = lines.iter().skip(at).take(3).map(|line| line.trim()).collect::<Vec<_>>().join(",");
    let mut report = counts(&end, ',')?;
    report.runner = "mocha".into();
    let mut rest = lines.get(at + 1..).unwrap_or_default().iter();
    let mut current: Option<TestFailure> = None;
    while let Some(line) = rest.next() {
        let bare = line.trim();
        let numbered = bare.split_once(") ").filter(|(n, _)| n.parse::<u32>().is_ok());
        if let Some((_, suite)) = numbered {
            let name = rest.next().map(|line| line.trim().trim_end_matches(':')).unwrap_or_default();
            report.failures.extend(current.replace(TestFailure::new(&format!("{suite} › {name}"))));
        } else if let Some(failure) = &mut current {
            detail(failure, bare);
        }
    }
    report.failures.extend(current);
    Some(report)
}

/// node's `spec` reporter: `ℹ pass 2`, and a list of the failing tests at the end.
pub(super) fn node_spec(lines: &[&str]) -> Option<TestReport> {
    let figure = |word: &str| {
        let prefix = format!("ℹ {word} ");
        lines.iter().rev().find_map(|line| line.strip_prefix(prefix.as_str())).and_then(number)
    };
    let mut report = TestReport {
        runner: "node".into(),
        passed: figure("pass")?,
        failed: figure("fail")?.saturating_add(figure("cancelled").unwrap_or_default()),
        skipped: figure("skipped").unwrap_or_default().saturating_add(figure("todo").unwrap_or_default()),
        ..TestReport::default()
    };
    let failing = lines.iter().skip_while(|line| **line != "✖ failing tests:").skip(1);
    let (mut current, mut place) = (None::<TestFailure>, None);
    for line in failing {
        if let Some(at) = line.strip_prefix("test at ") {
            place = TestLocation::parse(at);
        } else if let Some(name) = line.strip_prefix("✖ ") {
            let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
            let failure = TestFailure { location: place.take(), ..TestFailure::new(name) };
            report.failures.extend(current.replace(failure));
        } else if let Some(failure) = &mut current {
            detail(failure, line.trim());
        }
    }
    report.failures.extend(current);
    Some(report)
}

/// Splits the output at the lines that name a failed test. A test that is listed again is kept once.
fn sections(lines: &[&str], title: impl Fn(&str) -> Option<&str>) -> Vec<TestFailure> {
    let mut failures: Vec<TestFailure> = Vec::new();
    let mut open = false;
    for line in lines {
        if let Some(name) = title(line) {
            open = failures.iter().all(|failure| failure.name != name.trim());
            if open {
                failures.push(TestFailure::new(name));
            }
        } else if line.starts_with("Test Suites:") || line.trim_start().starts_with("Test Files ") {
            open = false;
        } else if open && let Some(failure) = failures.last_mut() {
            detail(failure, line.trim());
        }
    }
    failures
}

/// Reads a line below the name of a failed test.
fn detail(failure: &mut TestFailure, line: &str) {
    if let Some(value) = line.strip_prefix("Expected: ").or_else(|| line.strip_prefix("expected: ")) {
        failure.expected.get_or_insert_with(|| value.trim_end_matches(',').to_owned());
    } else if let Some(value) = line.strip_prefix("Received: ").or_else(|| line.strip_prefix("actual: ")) {
        failure.actual.get_or_insert_with(|| value.trim_end_matches(',').to_owned());
    } else if let Some(place) = line.strip_prefix("❯ ").or_else(|| frame(line)) {
        let internal = place.contains("node:") || place.contains("node_modules");
        if failure.location.is_none() && !internal {
            failure.location = TestLocation::parse(place);
        }
    } else if failure.message.is_empty() {
        failure.message = line.to_owned();
    } else if failure.location.is_none() && !is_markup(line) && failure.message.lines().count() < 8 {
        failure.message.push('\n');
        failure.message.push_str(line);
    }
}

/// The place in a stack frame: `at f (FILE:1:2)` or `at FILE:1:2`.
fn frame(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("at ")?;
    let place = rest.rsplit_once('(').map_or(rest, |(_, place)| place);
    Some(place.trim_end_matches(['{', ' ']).trim_end_matches(')'))
}

/// Whether a line is empty, a heading that carries nothing, or a line of the source excerpt (`> 3 | code`).
fn is_markup(line: &str) -> bool {
    let numbered = line.trim_start_matches("> ").split('|').next().unwrap_or_default().trim();
    let excerpt = line.contains('|') && numbered.chars().all(|c| c.is_ascii_digit());
    line.is_empty()
        || excerpt
        || matches!(line, "- Expected" | "+ Received" | "+ expected - actual" | "+ actual - expected")
}
