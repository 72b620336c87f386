//! Pairing, and the figures of small tables.

use super::*;

fn trial(case: &str, attempt: u32, passed: bool) -> TrialResult {
    serde_json::from_value(json!({
        "case": case, "attempt": attempt, "tries": 1, "passed": passed, "reward": f64::from(u8::from(passed)),
        "cause": null, "model": "m", "flow": "flat", "turns": 1, "tokens": 1, "cost_usd": null, "seconds": 1.0,
        "run": format!("{case}.{attempt}"),
    }))
    .unwrap()
}

#[test]
fn one_attempt_is_compared_by_mcnemar() {
    let a: Vec<TrialResult> = (0..10).map(|n| trial(&format!("c{n}"), 1, n < 8)).collect();
    let b: Vec<TrialResult> = (0..10).map(|n| trial(&format!("c{n}"), 1, n < 2 || n == 9)).collect();
    let found = compare(&a, &b, 5.0);
    assert_eq!((found.cases, found.a, found.b, found.test), (10, 0.8, 0.3, "McNemar, exact"));
    assert!((found.difference - 0.5).abs() < 1e-12);
    assert!((found.p - mcnemar(6, 1)).abs() < 1e-12);
    assert!(found.low < 0.5 && 0.5 < found.high);
    let flipped: Vec<(&str, &Value, &Value)> =
        found.flipped.iter().map(|flip| (flip.case.as_str(), &flip.a, &flip.b)).collect();
    assert_eq!(flipped.len(), 7);
    assert_eq!(flipped[0], ("c9", &json!(false), &json!(true)));
    assert_eq!(flipped[1], ("c2", &json!(true), &json!(false)));
    // Per-case differences: six of 1, one of -1, three of 0.
    let variance = (6.0 * 0.25 + 2.25 + 3.0 * 0.25) / 9.0;
    assert_eq!(found.needed, cases_needed(0.05, variance));
}

#[test]
fn several_attempts_are_compared_by_permutation() {
    let mut a = Vec::new();
    let mut b = Vec::new();
    for n in 0..6 {
        for attempt in 1..=3 {
            a.push(trial(&format!("c{n}"), attempt, attempt != 2 || n < 3));
            b.push(trial(&format!("c{n}"), attempt, attempt == 1));
        }
    }
    let found = compare(&a, &b, 5.0);
    assert_eq!((found.attempts, found.test), (3, "paired permutation"));
    assert!((found.a - 15.0 / 18.0).abs() < 1e-12 && (found.b - 6.0 / 18.0).abs() < 1e-12);
    assert_eq!(found.p, 2.0 / 64.0);
    assert_eq!(found.flaky.len(), 6);
    assert_eq!(found.flipped[0].a, json!(1.0));
}

#[test]
fn only_graded_pairs_count() {
    let mut a = vec![trial("x", 1, true), trial("y", 1, true), trial("z", 1, true)];
    let b = vec![trial("x", 1, false), trial("y", 1, true), trial("w", 1, true)];
    a[1].cause = Some(fusee::engine::run::FailureClass::VerifierBroken);
    let found = compare(&a, &b, 5.0);
    assert_eq!((found.cases, found.a, found.b, found.unpaired), (1, 1.0, 0.0, 4));
    assert_eq!(found.p, 1.0);
}

#[test]
fn nothing_in_common_is_no_difference() {
    let found = compare(&[trial("x", 1, true)], &[trial("y", 1, true)], 5.0);
    assert_eq!((found.cases, found.difference, found.p, found.needed), (0, 0.0, 1.0, None));
}
