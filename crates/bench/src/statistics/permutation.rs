//! The paired permutation test: if the two methods were equal, either sign of a case's difference would be equally
//! likely.

use fastrand::Rng;

/// Additions up to which the exact distribution is computed; beyond, signs are drawn at random.
const MAX_EXACT: u64 = 200_000_000;

/// Random sign assignments where the exact distribution is too large.
const DRAWS: u32 = 100_000;

/// What one case adds to the comparison: passes of A minus passes of B over its paired attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseDifference {
    /// Passes of A minus passes of B.
    pub difference: i64,
    /// Paired attempts, at least 1.
    pub attempts: u64,
}

impl CaseDifference {
    /// The difference of the pass rates on this case.
    pub fn rate(self) -> f64 {
        self.difference as f64 / self.attempts.max(1) as f64
    }
}

/// Two-sided p value of the mean difference. Exact where the distribution can be enumerated, which covers every
/// suite of a few hundred cases; otherwise estimated from seeded random signs.
pub fn paired_permutation(cases: &[CaseDifference], seed: u64) -> f64 {
    // Rates as whole numbers over a common denominator.
    let Some(scale) = cases.iter().try_fold(1u64, |scale, case| lcm(scale, case.attempts.max(1))) else {
        return sampled_p(&cases.iter().map(|case| case.rate()).collect::<Vec<_>>(), seed);
    };
    let whole = |case: &CaseDifference| {
        let factor = i64::try_from(scale / case.attempts.max(1)).ok()?;
        case.difference.checked_mul(factor).map(i64::unsigned_abs)
    };
    let parts: Option<Vec<u64>> = cases.iter().map(whole).collect();
    let parts: Option<Vec<u64>> = parts.map(|parts| parts.into_iter().filter(|part| *part > 0).collect());
    let signed: Option<i64> = cases.iter().try_fold(0i64, |sum, case| {
        let factor = i64::try_from(scale / case.attempts.max(1)).ok()?;
        sum.checked_add(case.difference.checked_mul(factor)?)
    });
    let total =
        parts.as_ref().and_then(|parts| parts.iter().try_fold(0u64, |sum, part| sum.checked_add(*part)));
    match (parts, signed, total) {
        (Some(parts), Some(signed), Some(total)) if total.saturating_mul(parts.len() as u64) <= MAX_EXACT => {
            exact(&parts, signed.unsigned_abs(), total)
        }
        _ => sampled_p(&cases.iter().map(|case| case.rate()).collect::<Vec<_>>(), seed),
    }
}

/// Probability of a sum at least as far from zero as the observed one, over all assignments of signs.
fn exact(parts: &[u64], observed: u64, total: u64) -> f64 {
    // The sum of the positive parts `s` gives the signed sum `2 s - total`.
    let mut probability = vec![0.0f64; total as usize + 1];
    probability[0] = 1.0;
    let mut reach = 0usize;
    for part in parts {
        let part = *part as usize;
        for sum in (0..=reach).rev() {
            let half = probability[sum] * 0.5;
            probability[sum] = half;
            probability[sum + part] += half;
        }
        reach += part;
    }
    let is_extreme = |sum: usize| (2 * sum as u64).abs_diff(total) >= observed;
    let p: f64 = (0..=reach).filter(|sum| is_extreme(*sum)).map(|sum| probability[sum]).sum();
    p.min(1.0)
}

fn sampled_p(differences: &[f64], seed: u64) -> f64 {
    let observed = differences.iter().sum::<f64>().abs();
    // Sums that differ only by rounding count as equal.
    let tolerance = 1e-9 * differences.iter().map(|difference| difference.abs()).sum::<f64>();
    let mut rng = Rng::with_seed(seed);
    let mut extreme = 0u32;
    for _ in 0..DRAWS {
        let sum: f64 =
            differences.iter().map(|difference| if rng.bool() { *difference } else { -difference }).sum();
        extreme += u32::from(sum.abs() >= observed - tolerance);
    }
    // The observed assignment is one of them.
    f64::from(extreme + 1) / f64::from(DRAWS + 1)
}

fn lcm(one: u64, other: u64) -> Option<u64> {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (one / a).checked_mul(other)
}
