//! RSpec.

use super::{TestFailure, TestLocation, TestReport, number};

/// RSpec: `3 examples, 1 failure, 1 pending` and numbered failures.
pub(super) fn rspec(lines: &[&str]) -> Option<TestReport> {
    let summary = lines.iter().rev().find(|line| line.contains(" example") && line.contains(" failure"))?;
    let mut parts = summary.split(", ");
    let all = parts.next().and_then(number)?;
    let failed = parts.next().and_then(number)?;
    let rest: u32 = parts.filter(|part| part.contains("pending")).filter_map(number).sum();
    let mut report = TestReport {
        runner: "rspec".into(),
        passed: all.saturating_sub(failed).saturating_sub(rest),
        failed,
        skipped: rest,
        ..TestReport::default()
    };
    let section = lines.iter().skip_while(|line| **line != "Failures:").skip(1);
    let mut current: Option<TestFailure> = None;
    for line in section.take_while(|line| !line.starts_with("Finished in")) {
        let bare = line.trim();
        let numbered = bare.split_once(") ").filter(|(n, _)| n.parse::<u32>().is_ok());
        if let Some((_, name)) = numbered {
            report.failures.extend(current.replace(TestFailure::new(name)));
            continue;
        }
        let Some(failure) = &mut current else { continue };
        if let Some(value) = bare.strip_prefix("expected: ") {
            failure.expected = Some(value.to_owned());
        } else if let Some(value) = bare.strip_prefix("got: ") {
            failure.actual = Some(value.to_owned());
        } else if let Some(place) = bare.strip_prefix("# ") {
            failure.location = failure.location.take().or_else(|| TestLocation::parse(place));
        } else if failure.message.is_empty() {
            failure.message = bare.trim_start_matches("Failure/Error: ").to_owned();
        }
    }
    report.failures.extend(current);
    Some(report)
}
