//! Parsing unittest output.

use super::TestResults;

#[test]
fn a_green_run_passes() {
    let tests = TestResults::read(Some(0), "..........\n----\nRan 10 tests in 0.002s\n\nOK\n");
    assert_eq!((tests, tests.is().as_str()), (TestResults { pass: true, ran: 10, failed: 0 }, "all 10 pass"));
}

#[test]
fn failures_and_errors_both_count_as_failed() {
    let tests =
        TestResults::read(Some(1), "Ran 10 tests in 0.002s\n\nFAILED (failures=2, errors=1, skipped=1)\n");
    assert_eq!(
        (tests, tests.is().as_str()),
        (TestResults { pass: false, ran: 10, failed: 3 }, "3 of 10 fail")
    );
}

#[test]
fn a_run_that_found_no_test_does_not_pass() {
    let tests = TestResults::read(Some(0), "Ran 0 tests in 0.000s\n\nOK\n");
    assert_eq!(
        (tests, tests.is().as_str()),
        (TestResults { pass: false, ran: 0, failed: 0 }, "cannot be run")
    );
}

#[test]
fn a_run_that_broke_off_does_not_pass() {
    let tests = TestResults::read(None, "Traceback (most recent call last):\n");
    assert_eq!(tests, TestResults { pass: false, ran: 0, failed: 0 });
}
