//! Reads the output of test runners: how many tests passed, and where and why the others failed.
//!
//! [`TestReport::parse`] recognises the runner by its closing lines. The submodules each read the runners of
//! one language; `tap` and `junit` read the formats that many runners share.

mod counts;
mod go;
mod javascript;
mod junit;
mod jvm;
mod python;
mod ruby;
mod rust;
mod tap;

use std::borrow::Cow;

/// Maximum number of failures that are kept; all are counted.
const MAX_FAILURES: usize = 50;

/// Maximum characters of a message, an expected or an actual value.
const MAX_TEXT: usize = 600;

/// The result of a test run.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TestReport {
    /// Name of the runner, such as `pytest`.
    pub runner: Cow<'static, str>,
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed or could not be run.
    pub failed: u32,
    /// Tests that were skipped.
    pub skipped: u32,
    /// The failed tests whose details the output contains, in its order.
    pub failures: Vec<TestFailure>,
}

/// A failed test.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TestFailure {
    /// Name, as the runner prints it.
    pub name: String,
    /// File and line of the failed assertion, as far as the output tells.
    pub location: Option<TestLocation>,
    /// What the runner says about the failure.
    pub message: String,
    /// The expected value.
    pub expected: Option<String>,
    /// The actual value.
    pub actual: Option<String>,
}

/// A line of a file in the output of a test runner.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TestLocation {
    /// Path, as printed.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}

/// Reads the lines of an output; `None` if they are not those of its runner.
type Parser = fn(&[&str]) -> Option<TestReport>;

impl TestReport {
    /// Reads the output of a test run. `None` if it is not the output of a known runner, for instance
    /// because the code did not compile.
    pub fn parse(output: &str) -> Option<Self> {
        let plain = without_escapes(output);
        let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
        // Formats come before runners that may print them; nextest repeats the lines of cargo's own runner.
        const PARSERS: &[Parser] = &[
            rust::nextest,
            rust::cargo_test,
            python::pytest,
            python::unittest,
            javascript::vitest,
            javascript::jest,
            javascript::node_spec,
            javascript::mocha,
            ruby::rspec,
            go::go_test,
            jvm::surefire,
            jvm::gradle,
            jvm::dotnet,
            counts::ctest,
            tap::tap,
        ];
        let parsed = junit::junit(&plain).or_else(|| PARSERS.iter().find_map(|parse| parse(&lines)));
        parsed.map(Self::bounded)
    }

    /// Whether no test ran because the tests could not be loaded, for instance because of a failed import.
    pub fn is_load_failure(&self) -> bool {
        let not_loaded =
            |failure: &TestFailure| failure.name.contains("_FailedTest") || failure.name.ends_with(".py");
        self.passed == 0 && !self.failures.is_empty() && self.failures.iter().all(not_loaded)
    }

    fn bounded(mut self) -> Self {
        self.failures.truncate(MAX_FAILURES);
        for failure in &mut self.failures {
            clip(&mut failure.message);
            clip(&mut failure.name);
            failure.expected.iter_mut().chain(&mut failure.actual).for_each(clip);
        }
        self
    }
}

impl TestFailure {
    fn new(name: &str) -> Self {
        Self { name: name.trim().to_owned(), ..Self::default() }
    }

    /// Sets the values of a comparison, unless they are known.
    fn compare(&mut self, actual: &str, expected: &str) {
        if self.actual.is_none() && self.expected.is_none() {
            self.actual = Some(actual.trim().to_owned());
            self.expected = Some(expected.trim().to_owned());
        }
    }

    /// Describes the failure in a few lines: name and location, message, expected and actual value.
    pub fn describe(&self) -> String {
        let mut text = self.name.clone();
        if let Some(place) = &self.location {
            text.push_str(&format!(" ({}:{})", place.path, place.line));
        }
        if !self.message.is_empty() {
            text.push_str(&format!("\n{}", self.message));
        }
        for (label, value) in [("expected", &self.expected), ("actual", &self.actual)] {
            if let Some(value) = value {
                text.push_str(&format!("\n{label}: {value}"));
            }
        }
        text
    }
}

impl TestLocation {
    /// Parses `PATH:LINE`, with or without a column after it.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches("file://");
        let mut parts = text.splitn(2, ':');
        let (path, rest) = (parts.next()?, parts.next()?);
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        let line = digits.parse().ok()?;
        (!path.is_empty()).then(|| Self { path: path.to_owned(), line })
    }
}

fn clip(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(end);
        text.push('…');
    }
}

/// The number before or after a word: `3` in `3 failed` and in `failures=3`.
fn number(text: &str) -> Option<u32> {
    let digits: String =
        text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Splits `LEFT OP RIGHT` at the operator if it occurs once.
fn comparison<'a>(text: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let (left, right) = text.split_once(operator)?;
    (!right.contains(operator)).then_some((left.trim(), right.trim()))
}

/// Removes terminal escape sequences (colours) and carriage returns.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                for c in chars.by_ref() {
                    if ('@'..='~').contains(&c) {
                        break;
                    }
                }
            }
            '\u{1b}' => {
                chars.next();
            }
            '\r' => {}
            _ => plain.push(c),
        }
    }
    Cow::Owned(plain)
}
