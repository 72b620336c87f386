//! pytest and unittest.

use super::counts::counts;
use super::{TestFailure, TestLocation, TestReport, comparison, number};

/// pytest, in any verbosity: the closing line, the sections of the failures and the short summary.
pub(super) fn pytest(lines: &[&str]) -> Option<TestReport> {
    let summary = lines.iter().rev().find_map(|line| {
        let line = line.trim_matches('=').trim();
        let (what, time) = line.rsplit_once(" in ")?;
        let timed = time.starts_with(|c: char| c.is_ascii_digit()) && time.contains('s');
        timed.then(|| counts(what, ',')).flatten()
    })?;
    let mut report = TestReport { runner: "pytest".into(), ..summary };
    let mut current: Option<TestFailure> = None;
    for line in lines {
        if let Some(name) = section(line) {
            report.failures.extend(current.replace(TestFailure::new(name)));
        } else if line.starts_with("=====") {
            report.failures.extend(current.take());
        } else if let Some(failure) = &mut current {
            read_line(failure, line);
        }
    }
    report.failures.extend(current);
    // The short summary has the full names, and is all there is with `--tb=no`.
    for line in lines {
        let Some(rest) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) else {
            continue;
        };
        let (id, message) = rest.split_once(" - ").unwrap_or((rest, ""));
        let short = id.split("::").skip(1).collect::<Vec<_>>().join(".");
        let known = report.failures.iter_mut().find(|failure| failure.name == short || failure.name == id);
        match known {
            Some(failure) => failure.name = id.to_owned(),
            None if id.contains("::") => {
                let mut failure = TestFailure { message: message.to_owned(), ..TestFailure::new(id) };
                compared(&mut failure, message);
                report.failures.push(failure);
            }
            None => {}
        }
    }
    Some(report)
}

/// The name in a section's title: `____ name ____`.
fn section(line: &str) -> Option<&str> {
    let inner = line.strip_prefix("__")?.trim_start_matches('_').strip_prefix(' ')?;
    let name = inner.trim_end_matches('_').strip_suffix(' ')?;
    (!name.is_empty() && line.ends_with("__")).then(|| name.trim_start_matches("ERROR collecting "))
}

fn read_line(failure: &mut TestFailure, line: &str) {
    if let Some(error) = line.strip_prefix("E ") {
        let error = error.trim();
        if failure.message.is_empty() {
            failure.message = error.to_owned();
            compared(failure, error);
        } else if failure.message.lines().count() < 6 && !error.is_empty() {
            failure.message.push('\n');
            failure.message.push_str(error);
        }
    } else if failure.location.is_none() || failure.message.is_empty() {
        // `file.py:7: AssertionError` below the source, `file.py:7: in test_add` above it.
        let (place, _) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
        let own = !place.contains("site-packages") && !place.contains("/lib/python");
        if own && !place.contains(char::is_whitespace) && place.contains(".py:") {
            failure.location = failure.location.take().or_else(|| TestLocation::parse(place));
        }
    }
}

/// Reads the two sides of `assert A == B` and `A != B`.
fn compared(failure: &mut TestFailure, message: &str) {
    let message = message.trim_start_matches("AssertionError: ");
    let sides = match message.strip_prefix("assert ") {
        Some(asserted) => comparison(asserted, " == "),
        None => comparison(message, " != "),
    };
    if let Some((actual, expected)) = sides {
        failure.compare(actual, expected);
    }
}

/// unittest: `FAIL: test (module.Class.test)` and `FAILED (failures=1)`.
pub(super) fn unittest(lines: &[&str]) -> Option<TestReport> {
    let ran = lines.iter().rev().find(|line| line.starts_with("Ran ") && line.contains(" test"))?;
    let all = number(ran)?;
    let end = lines.iter().rev().find(|line| line.starts_with("OK") || line.starts_with("FAILED ("))?;
    let mut report = TestReport { runner: "unittest".into(), ..TestReport::default() };
    for part in end.split(['(', ',', ')']) {
        let Some((word, count)) = part.split_once('=') else { continue };
        let count = number(count).unwrap_or_default();
        match word.trim() {
            "failures" | "errors" | "unexpected successes" => {
                report.failed = report.failed.saturating_add(count)
            }
            "skipped" => report.skipped = report.skipped.saturating_add(count),
            _ => {}
        }
    }
    report.passed = all.saturating_sub(report.failed).saturating_sub(report.skipped);
    let mut current: Option<UnittestFailure> = None;
    for line in lines {
        if let Some(name) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) {
            let next = UnittestFailure { failure: TestFailure::new(name), ..UnittestFailure::default() };
            report.failures.extend(current.replace(next).map(UnittestFailure::end));
        } else if line.starts_with("Ran ") {
            report.failures.extend(current.take().map(UnittestFailure::end));
        } else if let Some(failure) = &mut current {
            failure.read(line);
        }
    }
    report.failures.extend(current.map(UnittestFailure::end));
    Some(report)
}

/// A failure of unittest while its traceback is read.
#[derive(Default)]
struct UnittestFailure {
    failure: TestFailure,
    /// The line of the test that failed, and the one that raised the error.
    source: Option<String>,
    raised_by: Option<String>,
    /// Whether the line before named a frame.
    in_frame: bool,
}

impl UnittestFailure {
    fn read(&mut self, line: &str) {
        let is_frame = line.starts_with("  File \"");
        if self.in_frame && !is_frame && line.starts_with("    ") {
            let line = Some(line.trim().to_owned());
            (self.source, self.raised_by) = (self.source.take().or_else(|| line.clone()), line);
        }
        self.in_frame = is_frame;
        traceback_line(&mut self.failure, line);
    }

    /// The failure, with the line of the test and the one that raised an error: the values alone do not tell which
    /// call gave them, and a small model does not count lines.
    fn end(mut self) -> TestFailure {
        if self.failure.message.is_empty() || self.failure.name.contains("_FailedTest") {
            return self.failure;
        }
        let raised_by = self.raised_by.filter(|line| self.source.as_ref() != Some(line));
        let message = std::mem::take(&mut self.failure.message);
        let raised_by = raised_by.map(|line| format!("raised by: {line}"));
        let lines: Vec<String> = self.source.into_iter().chain([message]).chain(raised_by).collect();
        self.failure.message = lines.join("\n");
        self.failure
    }
}

fn traceback_line(failure: &mut TestFailure, line: &str) {
    if let Some(frame) = line.strip_prefix("  File \"") {
        if let Some((path, rest)) = frame.split_once("\", line ")
            && let Some(line) = number(rest)
        {
            failure.location = Some(TestLocation { path: path.to_owned(), line });
        }
    } else if failure.message.is_empty()
        && line.starts_with(|c: char| c.is_alphabetic())
        && !line.starts_with("Traceback")
        && failure.location.is_some()
    {
        failure.message = (*line).to_owned();
        compared(failure, line);
    }
}
