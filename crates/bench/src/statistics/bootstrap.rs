//! The bootstrap interval of a paired difference: cases are drawn again and again from those that were measured.

use fastrand::Rng;

use super::Interval;

/// Number of bootstrap samples.
const RESAMPLES: usize = 10_000;

/// 95 % percentile interval of the mean of these differences, one per case. Zero width without cases.
pub fn paired_interval(differences: &[f64], seed: u64) -> Interval {
    let cases = differences.len();
    if cases == 0 {
        return Interval { low: 0.0, high: 0.0 };
    }
    let mut rng = Rng::with_seed(seed);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..cases).map(|_| differences[rng.usize(..cases)]).sum::<f64>() / cases as f64)
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    Interval { low: percentile(&means, 0.025), high: percentile(&means, 0.975) }
}

/// Linear interpolation between the two nearest samples, as numpy does.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}
