//! What becomes of an answer before its task ends: others may take it, refuse it, or have a further task done for it.

use fusee_journal::event::TaskError;
use fusee_journal::{BoxFuture, Stop};

use super::turns::Ending;

/// Decides about the answer of a task. It may take steps on branches of its own.
pub(crate) trait Conclude: Send + Sync {
    /// What the task ends with; `turns` is how many it took.
    fn conclude<'a>(&'a self, answer: String, turns: u32) -> BoxFuture<'a, Result<Conclusion, Stop>>;
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

/// How the task ends, and the answer that is kept of it where it fails.
pub(super) async fn concluded(
    ending: Ending,
    conclude: Option<&dyn Conclude>,
    turns: u32,
) -> Result<(Ending, Option<String>), Stop> {
    match (ending, conclude) {
        (Ending::Completed { answer }, Some(conclude)) => match conclude.conclude(answer, turns).await? {
            Conclusion::Answer(answer) => Ok((Ending::Completed { answer }, None)),
            Conclusion::Failed { answer, error } => {
                Ok((Ending::Failed { error, unreachable: false }, Some(answer)))
            }
        },
        (ending, _) => Ok((ending, None)),
    }
}
