//! What a task may use up. All of it is checked in one place, `turns.rs`.

use fusee_model::{Price, RetryPolicy};
use serde::{Deserialize, Serialize};

/// Bounds of one task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Assistant messages.
    pub max_turns: u32,
    /// Tokens the context may hold at once.
    pub max_tokens: u64,
    /// The share of `max_tokens` from which the context is compacted.
    pub compaction_threshold: f64,
    /// Silence of one model call, in seconds.
    pub timeout_s: u64,
    /// Working time of the whole task, in seconds. Waiting for a person does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_timeout_s: Option<u64>,
    /// How long one question waits for a person, in seconds. Without an answer it is a refusal.
    pub approval_timeout_s: u64,
    /// How long a server may take to load its model before it counts as unreachable, in seconds.
    pub loading_timeout_s: u64,
    /// What it may cost, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// What the model's tokens cost, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Who tells of the turns that a compaction takes away.
    #[serde(skip_serializing_if = "SummaryBy::is_rule")]
    pub compaction_summary: SummaryBy,
    /// Who orders the files that a search finds.
    #[serde(skip_serializing_if = "RankBy::is_words")]
    pub memory_ranking: RankBy,
    /// How failed requests are made again.
    pub retry_policy: RetryPolicy,
}

/// Who orders the files that a search for a task finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankBy {
    /// The words that they share with the task.
    #[default]
    Words,
    /// The model, in one request before the task; the words where it fails.
    Model,
}

impl RankBy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    fn is_words(&self) -> bool {
        *self == Self::Words
    }
}

/// Who tells of the turns that a compaction takes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryBy {
    /// The runtime, one line a turn.
    #[default]
    Rule,
    /// The model, in one request beside the conversation; the rule where it fails.
    Model,
}

impl SummaryBy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    fn is_rule(&self) -> bool {
        *self == Self::Rule
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 50,
            max_tokens: 100_000,
            compaction_threshold: 0.75,
            timeout_s: 300,
            task_timeout_s: None,
            approval_timeout_s: 3600,
            loading_timeout_s: 600,
            budget_usd: None,
            price: None,
            compaction_summary: SummaryBy::Rule,
            memory_ranking: RankBy::Words,
            retry_policy: RetryPolicy::default(),
        }
    }
}
