//! The Test Anything Protocol, with its indented subtests and YAML blocks, as node, bats and others print it.

use super::{TestFailure, TestLocation, TestReport};

/// Reads `ok` and `not ok` lines. A test whose failure is that of its subtests is not counted again.
pub(super) fn tap(lines: &[&str]) -> Option<TestReport> {
    let is_plan = |line: &&str| {
        line.trim_start()
            .strip_prefix("1..")
            .is_some_and(|count| count.starts_with(|c: char| c.is_ascii_digit()))
    };
    lines.iter().copied().find(is_plan)?;
    let mut report = TestReport { runner: "tap".into(), ..TestReport::default() };
    let mut open: Option<(TestFailure, bool)> = None;
    let mut just_passed = false;
    for line in lines {
        let bare = line.trim_start();
        let verdict = point(bare);
        if verdict.is_some() {
            close(&mut report, open.take());
            just_passed = false;
        }
        match verdict {
            Some((_, name)) if directive(name).is_some() => report.skipped = report.skipped.saturating_add(1),
            Some((true, _)) => {
                report.passed = report.passed.saturating_add(1);
                just_passed = true;
            }
            Some((false, name)) => open = Some((TestFailure::new(name), false)),
            None if bare == "type: 'suite'" && just_passed => report.passed = report.passed.saturating_sub(1),
            None => {
                if let Some((failure, is_suite)) = &mut open {
                    *is_suite |= bare == "type: 'suite'" || bare == "failureType: 'subtestsFailed'";
                    yaml(failure, bare);
                }
            }
        }
    }
    close(&mut report, open);
    (report.passed + report.failed + report.skipped > 0).then_some(report)
}

fn close(report: &mut TestReport, open: Option<(TestFailure, bool)>) {
    if let Some((failure, false)) = open {
        report.failed = report.failed.saturating_add(1);
        report.failures.push(failure);
    }
}

/// A test point: whether it passed, and its name.
fn point(line: &str) -> Option<(bool, &str)> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    Some((ok, rest.strip_prefix("- ").unwrap_or(rest)))
}

/// `# SKIP` or `# TODO` at the end of a name.
fn directive(name: &str) -> Option<&str> {
    let (_, word) = name.rsplit_once("# ")?;
    let word = word.split_whitespace().next()?;
    (word.eq_ignore_ascii_case("skip") || word.eq_ignore_ascii_case("todo")).then_some(word)
}

fn yaml(failure: &mut TestFailure, line: &str) {
    let Some((key, value)) = line.split_once(':') else {
        if failure.message == "|-" {
            failure.message = line.to_owned();
        }
        return;
    };
    let value = value.trim().trim_matches('\'');
    match key {
        "error" | "message" if failure.message.is_empty() => failure.message = value.to_owned(),
        "expected" | "wanted" => failure.expected = Some(value.to_owned()),
        "actual" | "found" => failure.actual = Some(value.to_owned()),
        "location" => failure.location = TestLocation::parse(value),
        _ if failure.message == "|-" => failure.message = line.to_owned(),
        _ => {}
    }
}
