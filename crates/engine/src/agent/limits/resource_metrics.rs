//! Resources used by a task, as reported in results and events.

use fusee_lang::TaskResult;
use serde::{Deserialize, Serialize};

/// Resources used by a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMetrics {
    /// Number of assistant messages.
    pub turns: u32,
    /// Input tokens of all model calls, as reported.
    pub input_tokens: u64,
    /// Output tokens of all model calls, as reported.
    pub output_tokens: u64,
    /// Largest context size, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub peak_context_tokens: u64,
    /// Active time in milliseconds: the duration of all steps, without waiting for the user.
    #[serde(skip_serializing_if = "is_zero")]
    pub active_ms: u64,
    /// Part of the active time spent on model calls, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub model_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ResourceMetrics {
    /// Notes the metrics in a result: all of them for a failure, else only what is the same in every run.
    pub fn note_in(self, result: &mut TaskResult) {
        let same = Self { peak_context_tokens: 0, active_ms: 0, model_ms: 0, ..self };
        result.note("metrics", if result.is_ok() { same } else { self });
    }
}
