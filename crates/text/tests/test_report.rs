//! Reads recorded outputs of test runners.
#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::fmt::Write;

use fusee_text::test_report::TestReport;
use proptest::prelude::*;

/// The recorded outputs, by name.
fn outputs() -> Vec<(String, String)> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_output");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().filter(|path| path.extension().is_some_and(|end| end == "txt"));
    texts
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn outputs_of_known_runners_are_read() {
    let mut table = String::new();
    for (name, output) in outputs() {
        match TestReport::parse(&output) {
            None => writeln!(table, "{name}: not a report").unwrap(),
            Some(report) => {
                let TestReport { runner, passed, failed, skipped, failures } = report;
                writeln!(table, "{name}: {runner}, {passed} passed, {failed} failed, {skipped} skipped")
                    .unwrap();
                for failure in failures {
                    writeln!(table, "    {}", failure.describe().replace('\n', "\n        ")).unwrap();
                }
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn colours_do_not_matter() {
    let output = "\u{1b}[31m1 failed\u{1b}[0m, \u{1b}[32m2 passed\u{1b}[0m in 0.1s\r\n";
    let report = TestReport::parse(output).unwrap();
    assert_eq!((report.runner.as_ref(), report.failed, report.passed), ("pytest", 1, 2));
}

#[test]
fn other_output_is_not_a_report() {
    for text in ["", "hello\n", "ok\n", "3 passed away in 1901", "error: 2 failed", "Tests:\n", "1..x\nok\n"]
    {
        assert_eq!(TestReport::parse(text), None, "{text:?}");
    }
}

proptest! {
    /// A cut or spliced output never panics, and counts at least the failures it describes or is bounded.
    #[test]
    fn damaged_outputs_are_read_without_a_panic(which in 0_usize..100, from in 0_usize..4000, to in 0_usize..4000) {
        let all = outputs();
        let text = &all[which % all.len()].1;
        let lines: Vec<&str> = text.lines().collect();
        let (from, to) = (from % (lines.len() + 1), to % (lines.len() + 1));
        let part = lines[from.min(to)..from.max(to)].join("\n");
        if let Some(report) = TestReport::parse(&part) {
            prop_assert!(report.failures.len() <= 50);
            for failure in report.failures {
                prop_assert!(failure.message.chars().count() <= 601);
            }
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "(?s).{0,300}") {
        let _ = TestReport::parse(&text);
    }
}
