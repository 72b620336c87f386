//! Known values, properties, and agreement of the exact methods with brute force. `crates/cli/tests` compares all of
//! them with scipy and statsmodels.

use proptest::prelude::*;

use super::*;

fn close(one: f64, other: f64, within: f64) -> bool {
    (one - other).abs() <= within
}

#[test]
fn wilson_matches_published_values() {
    let Interval { low, high } = wilson(81, 263, 0.95);
    assert!(close(low, 0.2553, 5e-5) && close(high, 0.3662, 5e-5), "{low} {high}");
    assert_eq!(wilson(0, 0, 0.95), Interval { low: 0.0, high: 1.0 });
    assert_eq!(wilson(0, 10, 0.95).low, 0.0);
    assert_eq!(wilson(10, 10, 0.95).high, 1.0);
}

#[test]
fn mcnemar_of_known_tables() {
    assert_eq!(mcnemar(0, 0), 1.0);
    assert_eq!(mcnemar(3, 3), 1.0);
    assert!(close(mcnemar(6, 0), 0.03125, 1e-12));
    assert!(close(mcnemar(2, 10), 0.038_574_218_75, 1e-12));
    // 0.5^n underflows here.
    assert!(close(mcnemar(1000, 1000), 1.0, 1e-9));
    assert!(mcnemar(2000, 1000) < 1e-70 && mcnemar(2000, 1000) > 0.0);
}

#[test]
fn success_in_k_attempts() {
    assert!(close(pass_at_k(5, 2, 2).unwrap(), 0.7, 1e-12));
    assert!(close(pass_hat_k(5, 2, 2).unwrap(), 0.1, 1e-12));
    assert_eq!(pass_at_k(3, 0, 3), Some(0.0));
    assert_eq!(pass_at_k(3, 1, 3), Some(1.0));
    assert_eq!(pass_at_k(3, 1, 4), None);
    assert_eq!(pass_hat_k(3, 3, 3), Some(1.0));
    assert_eq!(pass_hat_k(2, 3, 1), None);
}

#[test]
fn power_of_a_paired_comparison() {
    // A tenth of the cases discordant: variance 0.1 - 0.05².
    assert_eq!(cases_needed(0.05, 0.1 - 0.0025), Some(307));
    assert_eq!(cases_needed(0.0, 0.1), None);
    // Fewer discordant cases than the difference itself are not possible.
    assert_eq!(cases_needed(0.05, 0.0), cases_needed(0.05, 0.05 - 0.0025));
}

/// Every assignment of signs, one by one.
fn enumerated(cases: &[CaseDifference]) -> f64 {
    let rates: Vec<f64> = cases.iter().map(|case| case.rate()).collect();
    let observed = rates.iter().sum::<f64>().abs();
    let all = 1u32 << rates.len();
    let extreme = (0..all).filter(|signs| {
        let sum: f64 =
            rates.iter().enumerate().map(|(i, rate)| if signs >> i & 1 == 0 { *rate } else { -rate }).sum();
        sum.abs() >= observed - 1e-9
    });
    extreme.count() as f64 / f64::from(all)
}

fn differences() -> impl Strategy<Value = Vec<CaseDifference>> {
    let case = (1u64..6).prop_flat_map(|attempts| {
        let most = attempts as i64;
        (-most..=most).prop_map(move |difference| CaseDifference { difference, attempts })
    });
    prop::collection::vec(case, 0..11)
}

proptest! {
    #[test]
    fn the_exact_permutation_test_is_the_enumeration(cases in differences()) {
        prop_assert!(close(paired_permutation(&cases, 1), enumerated(&cases), 1e-9));
    }

    #[test]
    fn with_one_attempt_it_is_mcnemar(a in 0u64..30, b in 0u64..30, same in 0usize..5) {
        let mut cases = vec![CaseDifference { difference: 1, attempts: 1 }; a as usize];
        cases.extend(vec![CaseDifference { difference: -1, attempts: 1 }; b as usize]);
        cases.extend(vec![CaseDifference { difference: 0, attempts: 1 }; same]);
        prop_assert!(close(paired_permutation(&cases, 1), mcnemar(a, b), 1e-9));
    }

    #[test]
    fn swapping_the_sides_changes_no_p_value(a in 0u64..200, b in 0u64..200, cases in differences()) {
        prop_assert_eq!(mcnemar(a, b), mcnemar(b, a));
        let swapped: Vec<CaseDifference> =
            cases.iter().map(|case| CaseDifference { difference: -case.difference, ..*case }).collect();
        prop_assert!(close(paired_permutation(&cases, 1), paired_permutation(&swapped, 1), 1e-9));
    }

    #[test]
    fn wilson_contains_the_rate_and_narrows(passed in 0u64..50, more in 0u64..50) {
        let n = passed + more;
        let Interval { low, high } = wilson(passed, n, 0.95);
        prop_assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high) && low < high);
        if n > 0 {
            let rate = passed as f64 / n as f64;
            prop_assert!(low <= rate && rate <= high);
            let larger = wilson(passed * 4, n * 4, 0.95);
            prop_assert!(larger.high - larger.low < high - low);
        }
    }

    #[test]
    fn more_attempts_allowed_never_hurt_at_least_one_and_never_help_all(n in 1u64..20, c in 0u64..20, k in 1u64..19) {
        prop_assume!(c <= n && k < n);
        prop_assert!(pass_at_k(n, c, k + 1).unwrap() >= pass_at_k(n, c, k).unwrap() - 1e-12);
        prop_assert!(pass_hat_k(n, c, k + 1).unwrap() <= pass_hat_k(n, c, k).unwrap() + 1e-12);
        prop_assert!(close(pass_at_k(n, c, 1).unwrap(), c as f64 / n as f64, 1e-12));
    }

    #[test]
    fn the_bootstrap_interval_holds_the_mean_and_is_repeatable(
        differences in prop::collection::vec(prop::sample::select(vec![-1.0, 0.0, 1.0]), 1..40),
        seed in 0u64..5,
    ) {
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let interval = paired_interval(&differences, seed);
        prop_assert!(interval.low <= mean + 1e-12 && mean - 1e-12 <= interval.high);
        prop_assert_eq!(interval, paired_interval(&differences, seed));
    }
}
