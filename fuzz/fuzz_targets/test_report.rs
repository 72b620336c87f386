//! Fuzzes the readers of test output: no text makes them panic, and what they keep is bounded.
#![no_main]

use fusee_text::test_report::TestReport;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(report) = TestReport::parse(text) {
        assert!(report.failures.len() <= 50);
        for failure in &report.failures {
            assert!(failure.describe().len() < 20_000);
        }
    }
});
