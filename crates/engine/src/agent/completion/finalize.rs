//! Hook that processes an answer before its task ends: it may accept it, reject it, or run another task on
//! it.

use fusee_journal::event::ErrorDetail;
use fusee_journal::{BoxFuture, RunAborted};
use fusee_model::Message;

use crate::agent::machine::TaskEnd;
use crate::agent::tool_calls::subtask_tool::{Remaining, Spent};

/// Decides about the answer of a task. It may record steps on its own branches.
pub(crate) trait AnswerHandler: Send + Sync {
    /// Returns how the task ends and what that consumed beyond the task's own turns. `said` is the task's
    /// conversation.
    fn conclude<'a>(
        &'a self,
        answer: String,
        left: Remaining,
        said: &'a [Message],
    ) -> BoxFuture<'a, Result<(Conclusion, Spent), RunAborted>>;
}

/// The end of a task that produced an answer.
pub(crate) enum Conclusion {
    /// The task completes with this answer.
    Answer(String),
    /// The task fails, but the answer is kept.
    Failed {
        /// The answer.
        answer: String,
        /// Why the task failed.
        error: ErrorDetail,
    },
}

/// Returns how the task ends, the answer to keep if it fails, and what the hook consumed.
pub(crate) async fn concluded(
    ending: TaskEnd,
    conclude: Option<&dyn AnswerHandler>,
    left: Remaining,
    said: &[Message],
) -> Result<(TaskEnd, Option<String>, Spent), RunAborted> {
    let (TaskEnd::Completed { answer }, Some(conclude)) = (&ending, conclude) else {
        return Ok((ending, None, Spent::default()));
    };
    let (conclusion, spent) = conclude.conclude(answer.clone(), left, said).await?;
    Ok(match conclusion {
        Conclusion::Answer(answer) => (TaskEnd::Completed { answer }, None, spent),
        Conclusion::Failed { answer, error } => {
            (TaskEnd::Failed { error, unreachable: false }, Some(answer), spent)
        }
    })
}
