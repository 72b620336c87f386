//! Resource limits of a task. All of them are enforced in `machine.rs`.

pub(crate) mod budget;
pub(crate) mod cost;
pub(crate) mod loop_detector;
pub(crate) mod meter;
pub(crate) mod policy_change;
pub(crate) mod resource_metrics;

use std::time::Duration;

use fusee_model::{Price, RetryPolicy};
use serde::{Deserialize, Serialize};

/// Limits of one task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of model replies.
    pub max_turns: u32,
    /// Maximum tokens in the context at once.
    pub max_tokens: u64,
    /// Fraction of `max_tokens` at which the context is compacted.
    pub compaction_threshold: f64,
    /// How long a model call may stay silent, in seconds; may be a fraction.
    pub timeout_s: f64,
    /// Working time of the entire task, in seconds. Waiting for the user does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_timeout_s: Option<u64>,
    /// How long a question waits for an answer, in seconds. No answer counts as a refusal.
    pub approval_timeout_s: u64,
    /// How long a server may take to load its model before it counts as unreachable, in seconds.
    pub loading_timeout_s: u64,
    /// How long an unreachable model is waited for, in seconds, instead of the number of retries and the time to load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_s: Option<u64>,
    /// Cost limit, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// Price of the model that answers, if known: the only place where a task keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Author of the summary of the turns that a compaction removes.
    #[serde(skip_serializing_if = "SummaryBy::is_rule")]
    pub compaction_summary: SummaryBy,
    /// Method of ranking the files that a search finds.
    #[serde(skip_serializing_if = "RankBy::is_words")]
    pub memory_ranking: RankBy,
    /// Maximum nesting of subtasks.
    pub subtask_depth: u32,
    /// How failed requests are retried.
    pub retry_policy: RetryPolicy,
}

/// Method of ranking the files found for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankBy {
    /// Words the files share with the task.
    #[default]
    Words,
    /// The model, in one request before the task; falls back to words if it fails.
    Model,
}

impl RankBy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
    fn is_words(&self) -> bool {
        *self == Self::Words
    }
}

/// Author of the summary of the turns that a compaction removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryBy {
    /// The runtime, one line per turn.
    #[default]
    Rule,
    /// The model, in one request outside the conversation; falls back to the rule if it fails.
    Model,
}

impl SummaryBy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
    fn is_rule(&self) -> bool {
        *self == Self::Rule
    }
}

impl Limits {
    /// How long a model call may stay silent.
    pub fn silence(&self) -> Duration {
        Duration::try_from_secs_f64(self.timeout_s).unwrap_or(Duration::MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 50,
            max_tokens: 100_000,
            compaction_threshold: 0.75,
            timeout_s: 300.0,
            task_timeout_s: None,
            approval_timeout_s: 3600,
            loading_timeout_s: 600,
            patience_s: None,
            budget_usd: None,
            price: None,
            compaction_summary: SummaryBy::Rule,
            memory_ranking: RankBy::Words,
            subtask_depth: 5,
            retry_policy: RetryPolicy::default(),
        }
    }
}
