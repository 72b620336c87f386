//! Figures checked by hand.

use super::{Comparison, compare, mcnemar};

#[test]
fn without_cases_there_is_nothing_to_compare() {
    assert_eq!(compare(&[]), None);
}

#[test]
fn equal_outcomes_differ_by_exactly_nothing() {
    let same = [(true, true), (false, false), (true, true)];
    let expected =
        Comparison { cases: 3, only_a: 0, only_b: 0, difference: 0.0, low: 0.0, high: 0.0, p: 1.0 };
    assert_eq!(compare(&same), Some(expected));
}

#[test]
fn four_wins_without_a_loss_in_twenty_four_are_above_zero() {
    let mut outcomes = vec![(true, true); 10];
    outcomes.extend([(false, false); 10]);
    outcomes.extend([(true, false); 4]);
    let found = compare(&outcomes).unwrap();
    assert_eq!((found.cases, found.only_a, found.only_b), (24, 4, 0));
    assert!((found.difference - 4.0 / 24.0).abs() < 1e-12);
    // No resample without a win: (20 / 24)^24 is 1.3 %, less than the 2.5 % below the interval.
    assert!((found.low - 1.0 / 24.0).abs() < 1e-12, "{found:?}");
    assert!(found.high > 0.29 && found.high < 0.38, "{found:?}");
    assert!((found.p - 0.125).abs() < 1e-12);
}

#[test]
fn swapping_the_methods_mirrors_the_comparison() {
    let outcomes = [(true, false), (true, false), (false, true), (true, true), (false, false)];
    let swapped: Vec<_> = outcomes.iter().map(|(a, b)| (*b, *a)).collect();
    let (one, other) = (compare(&outcomes).unwrap(), compare(&swapped).unwrap());
    assert_eq!((one.difference, one.p), (-other.difference, other.p));
}

#[test]
fn mcnemar_sums_both_tails_of_a_fair_coin() {
    for (a, b, p) in [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (8, 2, 0.109_375), (3, 3, 1.0)] {
        assert!((mcnemar(a, b) - p).abs() < 1e-12, "{a} {b}: {}", mcnemar(a, b));
        assert!((mcnemar(b, a) - p).abs() < 1e-12);
    }
}
