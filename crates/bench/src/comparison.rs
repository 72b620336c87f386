//! Comparison of two results, paired by case and attempt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::results::TrialResult;
use crate::statistics::{CaseDifference, cases_needed, mcnemar, paired_interval, paired_permutation};

/// Seed of the bootstrap and of sampled permutations.
const SEED: u64 = 1;

/// Comparison of two results A and B.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "BenchComparison")]
pub struct Comparison {
    /// Cases that both have.
    pub cases: usize,
    /// Pass rate of A, from 0 to 1.
    pub a: f64,
    /// Pass rate of B.
    pub b: f64,
    /// `a - b`.
    pub difference: f64,
    /// 95 % bootstrap interval of the difference.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Two-sided p value: exact McNemar with one attempt per case, else paired permutation.
    pub p: f64,
    /// Cases with different results, those that A lost first.
    pub flipped: Vec<Flip>,
    /// Cases needed to detect a difference of `points` with 80 % power; null if the results allow no estimate.
    pub needed: Option<u64>,
    /// The difference that `needed` is about, in points of 0 to 100.
    pub points: f64,
    /// Name of the test.
    pub test: &'static str,
    /// Attempts per case, at most.
    pub attempts: usize,
    /// Cases whose attempts differ within A or within B.
    pub flaky: Vec<String>,
    /// Trials that only one side has, or that were not graded, and therefore were not compared.
    pub unpaired: usize,
}

/// A case with different results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flip {
    /// Folder name of the case that flipped.
    pub case: String,
    /// Result of A: passed or not, or the pass rate with several attempts.
    pub a: Value,
    /// Result of B.
    pub b: Value,
    /// Run ids of the case's attempts in the first job.
    pub a_runs: Vec<String>,
    /// Run ids of the case's attempts in the second job.
    pub b_runs: Vec<String>,
}

#[derive(Default)]
struct CasePairs<'r> {
    pairs: Vec<(&'r TrialResult, &'r TrialResult)>,
}

impl CasePairs<'_> {
    fn passed(&self) -> (usize, usize) {
        let a = self.pairs.iter().filter(|(a, _)| a.passed).count();
        (a, self.pairs.iter().filter(|(_, b)| b.passed).count())
    }

    fn difference(&self) -> CaseDifference {
        let (a, b) = self.passed();
        CaseDifference { difference: a as i64 - b as i64, attempts: self.pairs.len() as u64 }
    }

    fn is_flaky(&self) -> bool {
        let (a, b) = self.passed();
        let mixed = |passed: usize| passed > 0 && passed < self.pairs.len();
        mixed(a) || mixed(b)
    }
}

/// Compares two results. `points` is the difference that `needed` is about.
pub fn compare(a: &[TrialResult], b: &[TrialResult], points: f64) -> Comparison {
    let key = |result: &TrialResult| (result.case.clone(), result.attempt);
    let of_b: BTreeMap<(String, u32), &TrialResult> =
        b.iter().filter(|result| result.is_graded()).map(|result| (key(result), result)).collect();
    let mut cases: BTreeMap<&str, CasePairs<'_>> = BTreeMap::new();
    let mut paired = 0;
    for result in a.iter().filter(|result| result.is_graded()) {
        if let Some(other) = of_b.get(&key(result)) {
            cases.entry(&result.case).or_default().pairs.push((result, other));
            paired += 1;
        }
    }
    let count = cases.len();
    let attempts = cases.values().map(|case| case.pairs.len()).max().unwrap_or_default();
    let differences: Vec<CaseDifference> = cases.values().map(CasePairs::difference).collect();
    let rates: Vec<f64> = differences.iter().map(|case| case.rate()).collect();
    let mean = |of: &dyn Fn(&CasePairs<'_>) -> f64| match count {
        0 => 0.0,
        count => cases.values().map(of).sum::<f64>() / count as f64,
    };
    let rate_a = mean(&|case| case.passed().0 as f64 / case.pairs.len() as f64);
    let rate_b = mean(&|case| case.passed().1 as f64 / case.pairs.len() as f64);
    let difference = rate_a - rate_b;
    let interval = paired_interval(&rates, SEED);
    let wins = |sign: i64| differences.iter().filter(|case| case.difference.signum() == sign).count() as u64;
    let (test, p) = match attempts {
        0 | 1 => ("McNemar, exact", mcnemar(wins(1), wins(-1))),
        _ => ("paired permutation", paired_permutation(&differences, SEED)),
    };
    let spread: f64 = rates.iter().map(|rate| (rate - difference).powi(2)).sum();
    let variance = if count > 1 { spread / (count - 1) as f64 } else { f64::NAN };
    Comparison {
        cases: count,
        a: rate_a,
        b: rate_b,
        difference,
        low: interval.low,
        high: interval.high,
        p,
        flipped: flips(&cases, attempts),
        needed: cases_needed(points / 100.0, variance),
        points,
        test,
        attempts,
        flaky: cases.iter().filter(|(_, case)| case.is_flaky()).map(|(name, _)| (*name).to_owned()).collect(),
        unpaired: a.len() + b.len() - 2 * paired,
    }
}

fn flips(cases: &BTreeMap<&str, CasePairs<'_>>, attempts: usize) -> Vec<Flip> {
    let value = |passed: usize, of: usize| match attempts {
        0 | 1 => json!(passed == of),
        _ => json!(passed as f64 / of as f64),
    };
    let mut flips: Vec<(i64, Flip)> = cases
        .iter()
        .filter(|(_, case)| case.difference().difference != 0)
        .map(|(name, case)| {
            let ((a, b), of) = (case.passed(), case.pairs.len());
            let flip = Flip {
                case: (*name).to_owned(),
                a: value(a, of),
                b: value(b, of),
                a_runs: case.pairs.iter().map(|(a, _)| a.run.clone()).collect(),
                b_runs: case.pairs.iter().map(|(_, b)| b.run.clone()).collect(),
            };
            (case.difference().difference.signum(), flip)
        })
        .collect();
    flips.sort_by(|one, other| (one.0, &one.1.case).cmp(&(other.0, &other.1.case)));
    flips.into_iter().map(|(_, flip)| flip).collect()
}

#[cfg(test)]
mod tests;
