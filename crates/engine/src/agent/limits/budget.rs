//! What tasks have used of their limits, and what remains. `limits.rs` defines the limits.

use super::cost::Charges;
use super::resource_metrics::ResourceMetrics;

/// Resources used by one task or by several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// Number of model replies.
    pub turns: u32,
    /// Token usage of all model requests, at their prices.
    pub charges: Charges,
    /// Working time: the sum of the step durations.
    pub active_ms: u64,
    /// The part of the working time spent on model requests.
    pub model_ms: u64,
    /// Largest context size, in tokens.
    pub peak_context_tokens: u64,
}

impl Spent {
    /// Adds the resources used elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        self.turns = self.turns.saturating_add(other.turns);
        self.charges.extend(&other.charges);
        self.active_ms += other.active_ms;
        self.model_ms += other.model_ms;
        // The contexts of two tasks are separate, so the larger one is the peak.
        self.peak_context_tokens = self.peak_context_tokens.max(other.peak_context_tokens);
    }

    /// Input and output tokens of all model requests.
    pub(crate) fn tokens(&self) -> u64 {
        let usage = self.charges.usage();
        usage.input_tokens + usage.output_tokens
    }

    /// The resources as reported in results and events.
    pub fn metrics(&self) -> ResourceMetrics {
        let usage = self.charges.usage();
        ResourceMetrics {
            turns: self.turns,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            peak_context_tokens: self.peak_context_tokens,
            active_ms: self.active_ms,
            model_ms: self.model_ms,
        }
    }
}

/// What remains of the limits of a task, shared by all its subtasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remaining {
    /// Remaining model replies.
    pub turns: u32,
    /// Remaining working time in milliseconds, if limited.
    pub ms: Option<u64>,
    /// Remaining budget in US dollars, if limited and the price is known.
    pub usd: Option<f64>,
    /// Tokens of context that the model's server accepts, if it rejected a larger conversation.
    pub context_tokens: Option<u64>,
}
