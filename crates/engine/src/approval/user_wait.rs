//! Questions to the user as durable waits: answered by the approver of this process, or from outside with a signal
//! that [`signal_name`] names. The answer is a journal step, so nobody is asked twice. The wait is not working time.

use std::time::Duration;

use fusee_journal::{Branch, DurableRun, RunAborted, StepRequest};
use fusee_model::CancellationToken;
use serde::{Deserialize, Serialize};

use super::{ApprovalAnswer, ApprovalQuestion, Approver};

/// Appended to the refusal when an approval question got no answer.
pub(crate) const UNANSWERED_ADVICE: &str = "; go on without it, or finish as blocked";

/// Step name of a question whose answer is text.
pub(crate) const ASK_USER: &str = "ask_user";

/// Step name of the question how to continue after a turn was stopped.
pub(crate) const AFTER_STOP: &str = "after_stop";

/// Step name of an approval question.
const APPROVAL: &str = "approval";

/// Name of the signal that answers a question: an [`ApprovalAnswer`] for an approval, a string for `ask_user`. Task
/// and call id are those of the question's `approval_requested` event.
#[must_use]
pub fn signal_name(task: &Branch, call_id: &str) -> String {
    format!("{task} {call_id}")
}

/// Answer to a question from outside the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OutsideAnswer {
    /// Whether a call may run.
    Approval(ApprovalAnswer),
    /// Text for a question of the model or a workflow.
    Text(String),
}

impl OutsideAnswer {
    /// Whether it answers the questions of this step name.
    pub(crate) fn answers(&self, question: &str) -> bool {
        match self {
            Self::Approval(_) => question == APPROVAL,
            Self::Text(_) => question == ASK_USER || question == AFTER_STOP,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoAnswer {
    /// The task or turn was cancelled.
    Cancelled,
    /// The time limit was reached.
    OutOfTime,
}

/// A question in the journal, and what may end the wait for its answer.
pub(crate) struct UserWait<'a> {
    pub(crate) engine: &'a dyn DurableRun,
    pub(crate) branch: &'a Branch,
    pub(crate) call_id: &'a str,
    pub(crate) limit: Duration,
    pub(crate) cancel: &'a CancellationToken,
}

/// Result of waiting for an approval, as stored in the journal.
#[derive(Serialize, Deserialize)]
struct ApprovalWait {
    #[serde(flatten)]
    answer: ApprovalAnswer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unanswered: Option<NoAnswer>,
}

/// Result of waiting for a text, as stored in the journal.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum TextWait {
    /// The answer; `None` if there is nobody to answer.
    Text(Option<String>),
    Unanswered {
        unanswered: NoAnswer,
    },
    /// The answer to a workflow, as version 0.1 recorded it.
    Workflow {
        answer: Option<String>,
    },
    /// A cancelled question of a workflow, as version 0.1 recorded it.
    WorkflowCancelled {
        cancelled: bool,
    },
}

impl UserWait<'_> {
    /// Asks for approval of a call. `None` if it was cancelled meanwhile.
    pub(crate) async fn approval(
        &self,
        approver: &dyn Approver,
        question: ApprovalQuestion,
    ) -> Result<(ApprovalAnswer, Option<NoAnswer>), RunAborted> {
        let args = serde_json::to_value(&question).unwrap_or_default();
        let unanswered =
            |reason: &str, why| ApprovalWait { answer: ApprovalAnswer::no(reason), unanswered: Some(why) };
        let late = format!("nobody answered within {} s{UNANSWERED_ADVICE}", self.limit.as_secs());
        let late = unanswered(&late, NoAnswer::OutOfTime);
        let ask = async {
            match self.cancel.run_until_cancelled(approver.ask(&question)).await {
                Some(answer) => ApprovalWait { answer, unanswered: None },
                None => unanswered("cancelled", NoAnswer::Cancelled),
            }
        };
        let ApprovalWait { answer, unanswered } = self.wait(APPROVAL, args, late, ask).await?;
        Ok((answer, unanswered))
    }

    /// Asks for a text. `Ok(None)` if there is nobody to answer.
    pub(crate) async fn text(
        &self,
        callee: &str,
        args: serde_json::Value,
        ask: impl Future<Output = Option<String>> + Send,
    ) -> Result<Result<Option<String>, NoAnswer>, RunAborted> {
        let late = TextWait::Unanswered { unanswered: NoAnswer::OutOfTime };
        let ask = async {
            match self.cancel.run_until_cancelled(ask).await {
                Some(text) => TextWait::Text(text),
                None => TextWait::Unanswered { unanswered: NoAnswer::Cancelled },
            }
        };
        Ok(match self.wait(callee, args, late, ask).await? {
            TextWait::Text(text) | TextWait::Workflow { answer: text } => Ok(text),
            TextWait::Unanswered { unanswered } => Err(unanswered),
            TextWait::WorkflowCancelled { .. } => Err(NoAnswer::Cancelled),
        })
    }

    async fn wait<T: Serialize + serde::de::DeserializeOwned>(
        &self,
        callee: &str,
        args: serde_json::Value,
        late: T,
        ask: impl Future<Output = T> + Send,
    ) -> Result<T, RunAborted> {
        let step = StepRequest::new(self.branch, fusee_journal::StepKind::Wait, callee).with_args(args);
        let signal = signal_name(self.branch, self.call_id);
        let waited = self.engine.wait(step, signal, (self.limit, late), ask).await?;
        Ok(waited.value)
    }
}

#[cfg(test)]
mod tests;
