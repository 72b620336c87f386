//! Loops are detected, and progress is not mistaken for a loop.

use super::{LoopDetector, LoopVerdict};

fn again(guard: &mut LoopDetector, result: &str, changed: bool) -> LoopVerdict {
    let verdict = guard.check("shell", "{\"command\":\"make\"}");
    if verdict == LoopVerdict::Run {
        guard.record_seen(result, changed);
    }
    verdict
}

#[test]
fn the_third_identical_call_is_hinted_and_the_fifth_halts() {
    let mut guard = LoopDetector::default();
    let verdicts: Vec<_> = (0..5).map(|_| again(&mut guard, "no", false)).collect();
    assert_eq!(
        verdicts,
        [
            LoopVerdict::Run,
            LoopVerdict::Run,
            LoopVerdict::Hint { times: 3 },
            LoopVerdict::Hint { times: 4 },
            LoopVerdict::Halt { times: 5 }
        ]
    );
}

#[test]
fn another_result_another_call_or_a_change_starts_the_count_again() {
    let mut guard = LoopDetector::default();
    for n in 0..20 {
        assert_eq!(again(&mut guard, &format!("{n} of 20"), false), LoopVerdict::Run, "results differ");
    }
    let mut guard = LoopDetector::default();
    for _ in 0..20 {
        assert_eq!(again(&mut guard, "same", true), LoopVerdict::Run, "files change");
    }
    let mut guard = LoopDetector::default();
    for _ in 0..20 {
        assert_eq!(again(&mut guard, "same", false), LoopVerdict::Run, "something else is called in between");
        assert_eq!(guard.check("read_file", "{}"), LoopVerdict::Run);
    }
}
