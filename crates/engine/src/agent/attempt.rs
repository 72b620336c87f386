//! One attempt at a request: what is sent, what comes back, and the form in which the journal keeps it.

use std::time::Duration;

use fusee_journal::Kind;
use fusee_journal::event::Delta;
use fusee_model::{
    CancellationToken, Conversation, Delta as Piece, ErrorKind, Model, ModelError, Reply, RequestOptions,
};
use serde::{Deserialize, Serialize};

use super::task::AgentTask;

/// Where a task has no limit of time, the silence of a model has.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// One attempt at a request, as the journal keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// What was added to the conversation right before sending, because the world had moved on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) preface: Option<String>,
    #[serde(flatten)]
    pub(crate) result: AttemptResult,
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

/// Sends it once. Whether it is sent again, and when, is said with a failure.
pub(crate) async fn send(
    task: &AgentTask,
    conversation: &Conversation,
    options: &RequestOptions,
    attempt: u32,
    left_ms: Option<u64>,
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
    match within(left_ms, reply).await {
        AttemptResult::Error { error, .. } => {
            let retry = error.kind.retriable() && error.kind != ErrorKind::Cancelled;
            let delay = retry
                .then(|| session.limits.retry_policy.delay(attempt, error.retry_after_ms, (session.jitter)()))
                .flatten();
            let after_ms = delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
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
