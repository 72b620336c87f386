//! What becomes of an answer before its task ends: others may take it, refuse it, or have a further task done for it.

use fusee_journal::event::TaskError;
use fusee_journal::{BoxFuture, Stop};
use fusee_model::Message;

use super::spawn::{Left, Spent};
use super::turns::Ending;

/// Decides about the answer of a task. It may take steps on branches of its own.
pub(crate) trait Conclude: Send + Sync {
    /// What the task ends with, and what was used up for it beside its own turns. `said` is its conversation.
    fn conclude<'a>(
        &'a self,
        answer: String,
        left: Left,
        said: &'a [Message],
    ) -> BoxFuture<'a, Result<(Conclusion, Spent), Stop>>;
}

/// The end of a task that had an answer.
pub(crate) enum Conclusion {
    /// It is this one.
    Answer(String),
    /// It fails all the same; the answer is kept.
    Failed {
        /// What there is of it.
        answer: String,
        /// Why.
        error: TaskError,
    },
}

/// How the task ends, the answer that is kept of it where it fails, and what that used up.
pub(super) async fn concluded(
    ending: Ending,
    conclude: Option<&dyn Conclude>,
    left: Left,
    said: &[Message],
) -> Result<(Ending, Option<String>, Spent), Stop> {
    let (Ending::Completed { answer }, Some(conclude)) = (&ending, conclude) else {
        return Ok((ending, None, Spent::default()));
    };
    let (conclusion, spent) = conclude.conclude(answer.clone(), left, said).await?;
    Ok(match conclusion {
        Conclusion::Answer(answer) => (Ending::Completed { answer }, None, spent),
        Conclusion::Failed { answer, error } => {
            (Ending::Failed { error, unreachable: false }, Some(answer), spent)
        }
    })
}
