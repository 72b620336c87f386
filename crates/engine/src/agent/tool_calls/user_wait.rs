//! Waiting for the user until an answer, a cancellation or a timeout. Never counted as working time.

use std::time::Duration;

use fusee_model::CancellationToken;
use serde::{Deserialize, Serialize};

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoAnswer {
    /// The task or turn was cancelled.
    Cancelled,
    /// The time limit was reached.
    OutOfTime,
}

/// Waits for an answer, at most `limit_s` seconds.
pub(crate) async fn within<T>(
    limit_s: u64,
    cancel: &CancellationToken,
    answer: impl Future<Output = T>,
) -> Result<T, NoAnswer> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(NoAnswer::Cancelled),
        answer = answer => Ok(answer),
        () = tokio::time::sleep(Duration::from_secs(limit_s)) => Err(NoAnswer::OutOfTime),
    }
}
