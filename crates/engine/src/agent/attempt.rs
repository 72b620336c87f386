//! One attempt at a request: what is sent, what comes back, and the form in which the journal keeps it.

use std::time::Duration;

use fusee_journal::Kind;
use fusee_journal::event::Delta;
use fusee_model::{Conversation, Delta as Piece, ErrorKind, ModelError, Reply, RequestOptions};
use serde::{Deserialize, Serialize};

use super::task::AgentTask;

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

/// Tells a model of every answer that the journal holds. Tasks that run side by side would otherwise take from a script
/// what another of them had taken before.
pub(crate) fn remember(model: &dyn fusee_model::Model, steps: &[fusee_journal::StepRow]) {
    for step in steps.iter().filter(|step| step.kind == Kind::Model) {
        let Some(result) = step.result.clone() else { continue };
        match serde_json::from_value::<Attempt>(result).map(|attempt| attempt.result) {
            Ok(AttemptResult::Reply(reply)) => model.replayed(Ok(&reply)),
            Ok(AttemptResult::Error { error, .. }) => model.replayed(Err(&error)),
            Ok(AttemptResult::OutOfTime(_)) | Err(_) => {}
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
) -> AttemptResult {
    let session = &task.session;
    let (engine, branch) = (&task.engine, &task.branch);
    let mut show = |piece: Piece<'_>| match piece {
        Piece::Text(text) => engine.pass(branch, Delta::Text(text.to_owned())),
        Piece::Reasoning(text) => engine.pass(branch, Delta::Reasoning(text.to_owned())),
        Piece::Waiting { .. } | Piece::Started | Piece::ToolCall { .. } | Piece::ToolArguments { .. } => {}
    };
    let reply = session.model.send(conversation, options, &mut show, &task.cancel);
    let result = match left_ms {
        None => reply.await,
        Some(left) => match tokio::time::timeout(Duration::from_millis(left), reply).await {
            Ok(result) => result,
            Err(_) => return AttemptResult::OutOfTime(true),
        },
    };
    match result {
        Ok(reply) => AttemptResult::Reply(reply),
        Err(error) => {
            let retry = error.kind.retriable() && error.kind != ErrorKind::Cancelled;
            let delay = retry
                .then(|| session.limits.retry_policy.delay(attempt, error.retry_after_ms, (session.jitter)()))
                .flatten();
            let after_ms = delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            AttemptResult::Error { error, after_ms }
        }
    }
}
