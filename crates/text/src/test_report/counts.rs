//! Closing lines of the form `2 failed, 1 passed`, and runners that print little else.

use super::{TestFailure, TestReport, number};

/// Adds up a list of counts such as `2 failed, 1 passed, 3 skipped`. `None` if it holds no such count.
pub(super) fn counts(text: &str, separator: char) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut found = false;
    for part in text.split(separator) {
        let mut words = part.split_whitespace();
        let (Some(count), Some(word)) =
            (words.next().and_then(|word| word.parse::<u32>().ok()), words.next())
        else {
            continue;
        };
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let slot = match word {
            "passed" | "passing" | "xpassed" => &mut report.passed,
            "failed" | "failing" | "error" | "errors" | "failure" | "failures" => &mut report.failed,
            "skipped" | "pending" | "todo" | "ignored" | "xfailed" => &mut report.skipped,
            _ => continue,
        };
        *slot = slot.saturating_add(count);
        found = true;
    }
    found.then_some(report)
}

/// CMake's ctest.
pub(super) fn ctest(lines: &[&str]) -> Option<TestReport> {
    let summary =
        lines.iter().rposition(|line| line.contains("% tests passed, ") && line.contains(" out of "))?;
    let mut after = lines.get(summary)?.split("% tests passed, ").nth(1)?.split(" out of ");
    let (failed, all) = (number(after.next()?)?, number(after.next()?)?);
    let mut report = TestReport {
        runner: "ctest".into(),
        passed: all.saturating_sub(failed),
        failed,
        ..TestReport::default()
    };
    let list = lines.iter().skip(summary).skip_while(|line| !line.contains("tests FAILED:")).skip(1);
    for line in list.take_while(|line| !line.trim().is_empty()) {
        let Some((_, name)) = line.split_once(" - ") else { continue };
        let (name, why) = name.rsplit_once(" (").unwrap_or((name, ""));
        report
            .failures
            .push(TestFailure { message: why.trim_end_matches(')').to_owned(), ..TestFailure::new(name) });
    }
    Some(report)
}
