//! Events of the turn machine: the results of its actions, and the usage at that time.

use fusee_model::{ModelError, Reply};

use super::action::TaskEnd;
use crate::agent::completion::answer_check::AcceptedAnswer;
use crate::agent::completion::answer_handler::Conclusion;
use crate::agent::flow::Feedback;
use crate::agent::limits::cost::Cost;

/// An event for the machine.
#[derive(Debug)]
pub(crate) enum TurnEvent {
    /// The task cannot start, with the reason.
    CannotStart(String),
    /// There is nothing to do; the answer is known without a model.
    NothingToDo(String),
    /// The conversation is set up.
    Ready,
    /// The model replied.
    Replied(Reply),
    /// An attempt failed; `after_ms` is the delay before the next one, if there is to be one.
    Failed { error: ModelError, after_ms: Option<u64> },
    /// The delay before a retry has elapsed.
    Waited,
    /// All calls of the reply have their results.
    Answered(CallResults),
    /// A compaction ran; `smaller` says whether it saved anything.
    Compacted { smaller: bool },
    /// The rules of the task and its verification were applied to an answer in words. A rejection says why,
    /// and `files` is the file state it applies to.
    Reviewed { rejected: Option<Feedback>, files: u64 },
    /// The final answer was checked: the accepted answer, or what is wrong with it.
    Checked(Result<AcceptedAnswer, String>),
    /// The user stopped the turn or the task during an action.
    Stopped,
    /// The user lets the task continue after a stop.
    Continue,
    /// The user ended the task.
    Cancelled,
    /// The task's time limit was reached during an action.
    OutOfTime,
    /// The runtime's last actions are done, for a task that ends like this.
    Settled(TaskEnd),
    /// The answer handler decided about the final answer.
    Handled(Conclusion),
}

/// Combined result of the calls of one reply.
#[derive(Debug, Default)]
pub(crate) struct CallResults {
    /// Set if the model called `finish`.
    pub(crate) finished: Option<FinishCall>,
    /// Whether a call was aborted, by the user or because the task's time was up.
    pub(crate) aborted: bool,
    /// Set if a call left the machine in a state in which the task cannot go on: the reason.
    pub(crate) failure: Option<String>,
    /// Set if the calls ended a stage or made the requested plan: its answer, which may be empty.
    pub(crate) stage_answer: Option<String>,
    /// Set if the calls completed the work: the verification command that passes.
    pub(crate) verified_by: Option<String>,
}

impl CallResults {
    /// Whether the task continues with another request, unless a limit is reached.
    pub(crate) fn continues(&self) -> bool {
        !self.aborted
            && self.failure.is_none()
            && self.finished.is_none()
            && self.stage_answer.is_none()
            && self.verified_by.is_none()
    }
}

/// Arguments of the model's `finish` call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinishCall {
    pub(crate) blocked: bool,
    pub(crate) summary: String,
}

/// Usage at the time of a decision, as measured by the runner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitUsage {
    /// Tokens in the next request.
    pub(crate) tokens: u64,
    /// Working time so far.
    pub(crate) active_ms: u64,
    /// Model replies in subtasks; the turn limit covers them.
    pub(crate) subtask_turns: u32,
    /// Money spent so far.
    pub(crate) cost: Cost,
}
