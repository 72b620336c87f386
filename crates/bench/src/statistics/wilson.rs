//! The Wilson score interval of a proportion, which stays inside 0 to 1 and is accurate for few cases.

use super::{Interval, normal};

/// Interval of the pass rate at this confidence level, such as 0.95. Without trials nothing is known: 0 to 1.
pub fn wilson(passed: u64, trials: u64, level: f64) -> Interval {
    if trials == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let n = trials as f64;
    let p = passed as f64 / n;
    let z = normal::quantile(0.5 + level / 2.0);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let (centre, scale) = (p + z * z / (2.0 * n), 1.0 + z * z / n);
    // Exact at the ends, where rounding would leave a trace.
    let low = if passed == 0 { 0.0 } else { (centre - spread) / scale };
    let high = if passed == trials { 1.0 } else { (centre + spread) / scale };
    Interval { low, high }
}
