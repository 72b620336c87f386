//! Power: how many cases a paired comparison needs to detect a difference.

use super::normal;

/// Two-sided significance level of the comparison.
const ALPHA: f64 = 0.05;

/// Probability of detecting an existing difference.
const POWER: f64 = 0.8;

/// Cases needed to detect a difference of pass rates of `difference` (0 to 1) if the per-case difference varies with
/// this variance: `((z₁ + z₂) σ / d)²`, at 5 % significance and 80 % power. `None` for a difference of zero.
///
/// The variance of a paired pass/fail difference cannot be below `d - d²` (every discordant case then favours the
/// same side), so smaller estimates, which few cases may give, are raised to it.
pub fn cases_needed(difference: f64, variance: f64) -> Option<u64> {
    let d = difference.abs();
    if d == 0.0 || !d.is_finite() || !variance.is_finite() {
        return None;
    }
    let variance = variance.max(d - d * d).max(0.0);
    let z = normal::quantile(1.0 - ALPHA / 2.0) + normal::quantile(POWER);
    Some(((z * z * variance / (d * d)).ceil() as u64).max(1))
}
