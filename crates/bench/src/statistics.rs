//! Statistics of pass/fail results. Pure: the same input gives the same figures, random methods are seeded.
//!
//! [`compare()`](crate::comparison) uses them to compare two results; `summary` and the report use the intervals.

mod bootstrap;
mod mcnemar;
mod normal;
mod pass_at_k;
mod permutation;
mod power;
mod wilson;

pub use bootstrap::paired_interval;
pub use mcnemar::mcnemar;
pub use pass_at_k::{pass_at_k, pass_hat_k};
pub use permutation::{CaseDifference, paired_permutation};
pub use power::cases_needed;
pub use wilson::wilson;

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

#[cfg(test)]
mod tests;
