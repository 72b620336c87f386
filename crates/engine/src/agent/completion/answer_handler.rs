//! Decides about a final answer before its task ends: the answer handler may accept it, reject it, or run
//! another task on it. `machine.rs` ends the task accordingly.

use fusee_journal::event::ErrorDetail;
use fusee_journal::{BoxFuture, RunAborted};
use fusee_model::Message;

use crate::agent::limits::budget::{Remaining, Spent};

/// Decides about the answer of a task. It may record steps on its own branches.
pub(crate) trait AnswerHandler: Send + Sync {
    /// Returns how the task ends and what that consumed beyond the task's own turns. `conversation` is the task's
    /// conversation.
    fn conclude<'a>(
        &'a self,
        answer: String,
        left: Remaining,
        conversation: &'a [Message],
    ) -> BoxFuture<'a, Result<(Conclusion, Spent), RunAborted>>;
}

/// The end of a task that produced an answer.
#[derive(Debug)]
pub(crate) enum Conclusion {
    /// The task completes with this answer.
    Answer(String),
    /// The task fails, but the answer is kept.
    Failed {
        /// What the model said last, kept as a partial answer.
        answer: String,
        /// Why the task failed.
        error: ErrorDetail,
    },
}
