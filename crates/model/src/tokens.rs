//! How many tokens a text has: an estimate by bytes that learns from what servers report, and an exact count
//! that is only loaded where somebody asks for it.

use serde::{Deserialize, Serialize};

/// Bytes a token, before anything was reported. English prose has 4.4, code 3.5, JSON 3.
const BYTES_PER_TOKEN: f64 = 3.6;
/// The correction stays within these; beyond them a report is wrong (a cut prompt, a count of something else).
const SMALLEST: f64 = 0.25;
const LARGEST: f64 = 4.0;
/// Reports on less than this say nothing about a ratio: a chat template alone has some tens of tokens.
const FEWEST: u64 = 64;

/// Estimates tokens by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimator {
    factor: f64,
    /// Something was reported.
    corrected: bool,
}

impl Default for Estimator {
    fn default() -> Self {
        Estimator { factor: 1.0, corrected: false }
    }
}

impl Estimator {
    /// About how many tokens so many bytes are. Never zero for more than zero bytes.
    pub fn count(&self, bytes: usize) -> u64 {
        (bytes as f64 / BYTES_PER_TOKEN * self.factor).ceil() as u64
    }

    /// Learns that what was `estimated` was `reported` as so many. The first report counts whole, later ones
    /// by half, so that one odd prompt does not swing the rest.
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

/// Exactly how many tokens `text` has in o200k, the vocabulary of OpenAI's current models. The first call
/// loads it, which costs time and memory; without a call nothing is loaded. `None` only if the vocabulary
/// is not part of this build.
pub fn exact_count(text: &str) -> Option<usize> {
    Some(tiktoken::get_encoding("o200k_base")?.count(text))
}

#[cfg(test)]
mod tests;
