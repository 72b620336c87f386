//! One attempt at a request: what is sent, what comes back, and the form in which the journal keeps it.

use std::time::Duration;

use fusee_journal::Kind;
use fusee_journal::event::Delta;
use fusee_model::{
    CancellationToken, Conversation, Delta as Piece, ErrorKind, Model, ModelError, Reply, RequestOptions,
};
use serde::{Deserialize, Serialize};

use super::meanwhile::Known;
use super::task::AgentTask;

/// Where a task has no limit of time, the silence of a model has.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// One attempt at a request, as the journal keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// What was added to the conversation right before sending, because the world had moved on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) preface: Option<String>,
    /// The files that this was about, so that it is said once.
    #[serde(default, skip_serializing_if = "Known::is_empty")]
    pub(crate) told: Known,
    #[serde(flatten)]
    pub(crate) result: AttemptResult,
}

impl Attempt {
    /// One before which nothing was said.
    pub(crate) fn of(result: AttemptResult) -> Self {
        Self { preface: None, told: Known::default(), result }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AttemptResult {
    Reply(Reply),
    Error {
        error: ModelError,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// The task's own time ran out first.
    OutOfTime(bool),
}

impl AttemptResult {
    /// Tells the model of an answer that it gave before.
    pub(crate) fn tell(&self, model: &dyn Model) {
        match self {
            Self::Reply(reply) => model.replayed(Ok(reply)),
            Self::Error { error, .. } => model.replayed(Err(error)),
            Self::OutOfTime(_) => {}
        }
    }
}

/// Tells a model of every answer that the journal holds. Tasks that run side by side would otherwise take from a script
/// what another of them had taken before.
pub(crate) fn remember(model: &dyn Model, steps: &[fusee_journal::StepRow]) {
    for step in steps.iter().filter(|step| step.kind == Kind::Model) {
        let Some(result) = step.result.clone() else { continue };
        if let Ok(attempt) = serde_json::from_value::<Attempt>(result) {
            attempt.result.tell(model);
        }
    }
}

/// The first wait for a server that loads its model; each further one is twice as long, up to the longest.
const LOADING_PAUSE_MS: u64 = 500;
const LONGEST_LOADING_PAUSE_MS: u64 = 5_000;

/// How long a server that loads its model has been waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loading {
    /// The working time when it first said so.
    pub(crate) since_ms: u64,
    /// How often it has.
    pub(crate) tries: u32,
}

impl Loading {
    /// How long to wait after it says so once more; none if it has taken too long.
    fn pause(self, now_ms: u64, limit_s: u64, asked_ms: Option<u64>) -> Option<u64> {
        let left = limit_s.saturating_mul(1000).checked_sub(now_ms.saturating_sub(self.since_ms))?;
        let own = (LOADING_PAUSE_MS << self.tries.min(8)).min(LONGEST_LOADING_PAUSE_MS);
        (left > 0).then(|| asked_ms.unwrap_or(own).max(1).min(left))
    }
}

/// Which try it is, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Try {
    /// From 1; those that met a server that loads do not count.
    pub(crate) attempt: u32,
    /// Working time before it.
    pub(crate) now_ms: u64,
    /// What is left of it, if there is a limit.
    pub(crate) left_ms: Option<u64>,
    /// Since when the server loads its model, if it does.
    pub(crate) loading: Option<Loading>,
}

/// Sends it once. Whether it is sent again, and when, is said with a failure.
pub(crate) async fn send(
    task: &AgentTask,
    conversation: &Conversation,
    options: &RequestOptions,
    this: Try,
    cancel: &CancellationToken,
) -> AttemptResult {
    let (engine, branch) = (&task.engine, &task.branch);
    let mut show = |piece: Piece<'_>| match piece {
        Piece::Text(text) => engine.pass(branch, Delta::Text(text.to_owned())),
        Piece::Reasoning(text) => engine.pass(branch, Delta::Reasoning(text.to_owned())),
        Piece::Waiting { .. } | Piece::Started | Piece::ToolCall { .. } | Piece::ToolArguments { .. } => {}
    };
    let session = &task.session;
    let reply = session.model.send(conversation, options, &mut show, cancel);
    match within(this.left_ms, reply).await {
        AttemptResult::Error { error, .. } => {
            let (limits, asked) = (session.limits, error.retry_after_ms);
            let after_ms = if error.kind == ErrorKind::Loading {
                let loading = this.loading.unwrap_or(Loading { since_ms: this.now_ms, tries: 0 });
                loading.pause(this.now_ms, limits.loading_timeout_s, asked)
            } else if error.kind.retriable() {
                let delay = limits.retry_policy.delay(this.attempt, asked, (session.jitter)());
                delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
            } else {
                None
            };
            AttemptResult::Error { error, after_ms }
        }
        other => other,
    }
}

/// What came of a request within the time that is left.
pub(crate) async fn within(
    left_ms: Option<u64>,
    reply: impl Future<Output = Result<Reply, ModelError>>,
) -> AttemptResult {
    let limit = left_ms.map_or(FOREVER, Duration::from_millis);
    match tokio::time::timeout(limit, reply).await {
        Ok(Ok(reply)) => AttemptResult::Reply(reply),
        Ok(Err(error)) => AttemptResult::Error { error, after_ms: None },
        Err(_) => AttemptResult::OutOfTime(true),
    }
}
