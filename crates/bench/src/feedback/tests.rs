//! Outputs of real runners, twice, with different times and paths.

use super::*;

#[test]
fn two_runs_of_the_same_tests_give_the_same_feedback() {
    let output = |directory: &str, time: &str, address: &str| {
        format!(
            "F\n======\nFAIL: test_a (leap_test.LeapTest.test_a)\n------\nTraceback (most recent call last):\n  File \
             \"{directory}/leap_test.py\", line 9, in test_a\n    self.assertEqual(leap(4), True)\n  File \
             \"/usr/lib/python3.11/unittest/case.py\", line 1217, in run\nAssertionError: <object at {address}> != \
             True\n\n------\nRan 1 test in {time}s\n\nFAILED (failures=1)\n"
        )
    };
    let one = normalise(&output("/tmp/a/1/scored", "0.001", "0x7f00aa11"), Path::new("/tmp/a/1/scored"));
    let other = normalise(&output("/tmp/b/77/scored", "1.234", "0x7fbb0000"), Path::new("/tmp/b/77/scored"));
    assert_eq!(one, other);
    insta::assert_snapshot!(one, @r#"
    F
    ======
    FAIL: test_a (leap_test.LeapTest.test_a)
    ------
    Traceback (most recent call last):
      File "leap_test.py", line 9, in test_a
        self.assertEqual(leap(4), True)
      File "case.py", line 1217, in run
    AssertionError: <object at 0x…> != True

    ------
    Ran 1 test in <time>

    FAILED (failures=1)
    "#);
}

#[test]
fn times_of_other_runners() {
    let cases = [
        ("ok  \tmedian\t0.003s", "ok  \tmedian\t<time>"),
        ("--- FAIL: TestMedian (0.00s)", "--- FAIL: TestMedian (<time>)"),
        (
            "test result: FAILED. 1 passed; 1 failed; finished in 0.01s",
            "test result: FAILED. 1 passed; 1 failed; finished in <time>",
        ),
        ("  duration_ms: 1.204", "  duration_ms <time>"),
        (
            "thread 'tests::a' (4711) panicked at src/lib.rs:4:9:",
            "thread 'tests::a' panicked at src/lib.rs:4:9:",
        ),
        ("at file:///tmp/x/scored/slug.js:3:1", "at slug.js:3:1"),
        ("2026-11-18 01:02:03,004 ERROR down", "<time> ERROR down"),
        ("expected 3 items, ratio 1/2 and a/b", "expected 3 items, ratio 1/2 and a/b"),
    ];
    for (given, expected) in cases {
        assert_eq!(normalise(given, Path::new("/nowhere")), expected);
    }
}

#[test]
fn a_long_output_keeps_both_ends() {
    let long = format!("first\n{}last", "x\n".repeat(10_000));
    let short = normalise(&long, Path::new("/nowhere"));
    assert!(
        short.starts_with("first\n") && short.ends_with("last") && short.len() < HEAD + TAIL + 100,
        "{}",
        short.len()
    );
}
