//! One attempt at a model request: sending it, its result, and the form the journal stores.

use std::time::Duration;

use fusee_journal::StepKind;
use fusee_journal::event::EventDelta;
use fusee_model::{
    Conversation, ErrorKind, Model, ModelError, Reply, ReplyDelta as Piece, RequestOptions, RetryPolicy,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::reply_watch::ReplyWatch;
use crate::agent::conversation::external_changes::FileSnapshot;
use crate::agent::limits::Limits;
use crate::agent::task::AgentTask;

/// Timeout for tasks without a time limit; the model client still limits how long a server may stay silent.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// One attempt at a request, as stored in the journal.
#[derive(Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// Text added to the conversation right before sending, because files had changed since the run was
    /// interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) preface: Option<String>,
    /// The files named in `preface`, so that each change is reported once.
    #[serde(default, skip_serializing_if = "FileSnapshot::is_empty")]
    #[serde(rename = "told")]
    pub(crate) reported: FileSnapshot,
    /// Time from sending the request to the first piece of the reply, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wait_ms: Option<u64>,
    #[serde(flatten)]
    pub(crate) result: AttemptResult,
}

impl Attempt {
    /// An attempt without a preface.
    pub(crate) fn new(result: AttemptResult) -> Self {
        Self { preface: None, reported: FileSnapshot::default(), wait_ms: None, result }
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
    /// The task's own time limit was reached first.
    OutOfTime(bool),
}

impl AttemptResult {
    /// Tells the model about a reply it gave in an earlier process.
    pub(crate) fn notify(&self, model: &dyn Model) {
        match self {
            Self::Reply(reply) => model.replayed(Ok(reply)),
            Self::Error { error, .. } => model.replayed(Err(error)),
            Self::OutOfTime(_) => {}
        }
    }
}

/// Tells a model about every reply in the journal. Without this, tasks running concurrently could take
/// replies from a script that another task had already consumed.
pub(crate) fn remember(model: &dyn Model, steps: &[fusee_journal::StepRow]) {
    for step in steps.iter().filter(|step| step.kind == StepKind::Model) {
        let Some(result) = step.result.clone() else { continue };
        if let Ok(attempt) = serde_json::from_value::<Attempt>(result) {
            attempt.result.notify(model);
        }
    }
}

/// First pause while a server loads its model; doubles with each retry up to `LONGEST_LOADING_PAUSE_MS`.
const LOADING_PAUSE_MS: u64 = 500;
const LONGEST_LOADING_PAUSE_MS: u64 = 5_000;

/// Tracks the wait for a server that is loading its model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLoading {
    /// Working time at the first such response.
    pub(crate) since_ms: u64,
    /// Number of such responses.
    pub(crate) tries: u32,
}

impl ServerLoading {
    /// The next pause in milliseconds; `None` once no time is left.
    fn pause(self, left_ms: u64, asked_ms: Option<u64>) -> Option<u64> {
        let own = (LOADING_PAUSE_MS << self.tries.min(8)).min(LONGEST_LOADING_PAUSE_MS);
        (left_ms > 0).then(|| asked_ms.unwrap_or(own).max(1).min(left_ms))
    }
}

/// A server that has not answered since its last reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outage {
    /// Working time at the first failure.
    pub(crate) since_ms: Option<u64>,
    /// Set while the server is loading its model.
    pub(crate) loading: Option<ServerLoading>,
}

impl Outage {
    /// The pause before the next attempt in milliseconds, if there is to be one, after a failed attempt of `took_ms`.
    /// `patience_s` bounds the whole outage; without it each kind of failure has its own limit.
    fn pause(self, failure: &ModelError, this: AttemptState, took_ms: u64, jitter: f64) -> Option<u64> {
        let (limits, asked) = (this.limits, failure.retry_after_ms);
        let now_ms = this.began_ms.saturating_add(took_ms);
        let left = |limit_s: u64, since_ms: u64| {
            limit_s.saturating_mul(1000).saturating_sub(now_ms.saturating_sub(since_ms))
        };
        let patience = limits.patience_s.map(|limit_s| left(limit_s, self.since_ms.unwrap_or(this.began_ms)));
        if failure.kind == ErrorKind::Loading {
            let loading = self.loading.unwrap_or(ServerLoading { since_ms: this.began_ms, tries: 0 });
            let own = || left(limits.loading_timeout_s, loading.since_ms);
            return loading.pause(patience.unwrap_or_else(own), asked);
        }
        if !failure.kind.retriable() {
            return None;
        }
        // A server that accepts requests and stays silent is not out of reach: waiting for it is no use.
        let unlimited = patience.is_some() && failure.kind != ErrorKind::Silence;
        let max_retries = if unlimited { u32::MAX } else { limits.retry_policy.max_retries };
        let policy = RetryPolicy { max_retries, ..limits.retry_policy };
        let delay = policy.delay(this.attempt, asked, jitter)?;
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        match patience {
            None => Some(delay_ms),
            Some(left) if left == 0 || asked.is_some_and(|asked| asked > left) => None,
            Some(left) => Some(delay_ms.min(left)),
        }
    }
}

/// What an attempt depends on besides the conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptState {
    /// Counts from 1; attempts answered with "still loading" are not counted.
    pub(crate) attempt: u32,
    /// Working time before the attempt.
    pub(crate) began_ms: u64,
    /// Remaining working time, if limited.
    pub(crate) left_ms: Option<u64>,
    /// How long the server has not answered.
    pub(crate) outage: Outage,
    /// Limits in force for this attempt.
    pub(crate) limits: Limits,
}

/// Sends the request once. A failure includes the delay before the next attempt, if there is to be one. Also returns how
/// many milliseconds passed until the first piece of the reply.
pub(crate) async fn send(
    task: &AgentTask,
    conversation: &Conversation,
    options: &RequestOptions,
    this: AttemptState,
    mut watch: ReplyWatch,
) -> (AttemptResult, Option<u64>) {
    let (engine, branch) = (&task.engine, &task.branch);
    let session = &task.session;
    let stop = watch.stop();
    let (begun, mut wait_ms) = (Instant::now(), None);
    let mut show = |piece: Piece<'_>| {
        watch.see(&piece);
        if !matches!(piece, Piece::Waiting { .. } | Piece::Started) && wait_ms.is_none() {
            wait_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        }
        match piece {
            Piece::Text(text) => engine.publish_delta(branch, EventDelta::Text(text.to_owned())),
            Piece::Reasoning(text) => engine.publish_delta(branch, EventDelta::Reasoning(text.to_owned())),
            Piece::Waiting { .. } | Piece::Started | Piece::ToolCall { .. } | Piece::ToolArguments { .. } => {
            }
        }
    };
    let reply = session.model.send(conversation, options, &mut show, &stop);
    let result = within(this.left_ms, reply).await;
    if let Some(reply) = watch.stopped_reply(&result) {
        return (AttemptResult::Reply(reply), wait_ms);
    }
    let result = match result {
        AttemptResult::Error { error, .. } => {
            let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let after_ms = this.outage.pause(&error, this, took_ms, (session.jitter)());
            AttemptResult::Error { error, after_ms }
        }
        other => other,
    };
    (result, wait_ms)
}

/// Awaits a reply within the remaining time.
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
