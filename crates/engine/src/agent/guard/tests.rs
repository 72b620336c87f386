//! Loops are detected, and progress is not mistaken for a loop.

use super::{Guard, Verdict};

fn again(guard: &mut Guard, result: &str, changed: bool) -> Verdict {
    let verdict = guard.judge("shell", "{\"command\":\"make\"}");
    if verdict == Verdict::Run {
        guard.saw(result, changed);
    }
    verdict
}

#[test]
fn the_third_identical_call_is_hinted_and_the_fifth_halts() {
    let mut guard = Guard::default();
    let verdicts: Vec<_> = (0..5).map(|_| again(&mut guard, "no", false)).collect();
    assert_eq!(
        verdicts,
        [
            Verdict::Run,
            Verdict::Run,
            Verdict::Hint { times: 3 },
            Verdict::Hint { times: 4 },
            Verdict::Halt { times: 5 }
        ]
    );
}

#[test]
fn another_result_another_call_or_a_change_starts_the_count_again() {
    let mut guard = Guard::default();
    for n in 0..20 {
        assert_eq!(again(&mut guard, &format!("{n} of 20"), false), Verdict::Run, "results differ");
    }
    let mut guard = Guard::default();
    for _ in 0..20 {
        assert_eq!(again(&mut guard, "same", true), Verdict::Run, "files change");
    }
    let mut guard = Guard::default();
    for _ in 0..20 {
        assert_eq!(again(&mut guard, "same", false), Verdict::Run, "something else is called in between");
        assert_eq!(guard.judge("read_file", "{}"), Verdict::Run);
    }
}
