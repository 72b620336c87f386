//! Token counts: an estimate by bytes that is corrected by the counts servers report, and an exact count
//! whose vocabulary is loaded only on demand.

use serde::{Deserialize, Serialize};

/// Initial number of bytes per token. English prose has 4.4, code 3.5, JSON 3.
const BYTES_PER_TOKEN: f64 = 3.6;
/// Bounds of the correction; beyond them a reported count is wrong (a truncated prompt, or a count of
/// something else).
const SMALLEST: f64 = 0.25;
const LARGEST: f64 = 4.0;
/// Smaller counts say nothing about the ratio: a chat template alone takes tens of tokens.
const FEWEST: u64 = 64;

/// Estimates token counts from byte counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimator {
    factor: f64,
    /// Whether any count was reported.
    corrected: bool,
}

impl Default for Estimator {
    fn default() -> Self {
        Estimator { factor: 1.0, corrected: false }
    }
}

impl Estimator {
    /// Estimated number of tokens in `bytes` bytes. Zero only for zero bytes.
    pub fn count(&self, bytes: usize) -> u64 {
        (bytes as f64 / BYTES_PER_TOKEN * self.factor).ceil() as u64
    }

    /// Adjusts the estimate to a reported count. The first report has full weight, later ones half, so that a
    /// single odd prompt does not distort the rest.
    pub fn correct(&mut self, estimated: u64, reported: u64) {
        if estimated < FEWEST || reported < FEWEST {
            return;
        }
        let target = self.factor * reported as f64 / estimated as f64;
        let weight = if self.corrected { 0.5 } else { 1.0 };
        self.factor = (self.factor + (target - self.factor) * weight).clamp(SMALLEST, LARGEST);
        self.corrected = true;
    }
}

/// Exact number of tokens of `text` in o200k, the vocabulary of OpenAI's current models. The first call loads
/// it, which takes time and memory. `None` only if the vocabulary is not part of this build.
pub fn exact_count(text: &str) -> Option<usize> {
    Some(tiktoken::get_encoding("o200k_base")?.count(text))
}

#[cfg(test)]
mod tests;
