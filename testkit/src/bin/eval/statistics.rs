//! Paired comparison of two methods on the same cases. Pure: the same outcomes give the same figures.

#[cfg(test)]
mod tests;

use fastrand::Rng;

const RESAMPLES: usize = 10_000;
const SEED: u64 = 1;

/// Comparison of methods A and B, paired by case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// Cases that both methods tried.
    pub(crate) cases: usize,
    /// Cases that only A solved.
    pub(crate) only_a: usize,
    /// Cases that only B solved.
    pub(crate) only_b: usize,
    /// Share solved by A minus share solved by B.
    pub(crate) difference: f64,
    /// 95 % interval of the difference: percentiles of 10 000 bootstrap samples of the cases.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Two-sided exact McNemar test.
    pub(crate) p: f64,
}

/// Compares the outcomes of A and B on each case; `None` without cases.
pub(crate) fn compare(outcomes: &[(bool, bool)]) -> Option<Comparison> {
    let cases = outcomes.len();
    if cases == 0 {
        return None;
    }
    let only_a = outcomes.iter().filter(|(a, b)| *a && !*b).count();
    let only_b = outcomes.iter().filter(|(a, b)| !*a && *b).count();
    let mut rng = Rng::with_seed(SEED);
    let mut sums: Vec<i64> = (0..RESAMPLES)
        .map(|_| {
            (0..cases)
                .map(|_| {
                    let (a, b) = outcomes[rng.usize(..cases)];
                    i64::from(a) - i64::from(b)
                })
                .sum()
        })
        .collect();
    sums.sort_unstable();
    let share = |sum: i64| sum as f64 / cases as f64;
    Some(Comparison {
        cases,
        only_a,
        only_b,
        difference: share(only_a as i64 - only_b as i64),
        low: share(sums[RESAMPLES * 25 / 1000]),
        high: share(sums[RESAMPLES * 975 / 1000]),
        p: mcnemar(only_a, only_b),
    })
}

/// Probability of a split at least as uneven as this one, if either method were equally likely to win a case.
fn mcnemar(only_a: usize, only_b: usize) -> f64 {
    let n = only_a + only_b;
    // Probability of k wins out of n, from that of k - 1.
    let mut term = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    for k in 0..=only_a.min(only_b) {
        if k > 0 {
            term *= (n - k + 1) as f64 / k as f64;
        }
        tail += term;
    }
    (2.0 * tail).min(1.0)
}
