//! Actions of the turn machine, which the turn manager performs, and the ends of a task.

use fusee_journal::event::ErrorDetail;
use fusee_model::ToolCall;

use crate::agent::flow::Feedback;

/// The next action.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send the conversation; `attempt` counts from 1.
    Ask { attempt: u32 },
    /// Wait before the next attempt.
    Wait { after_ms: u64 },
    /// Execute these calls, in order.
    Call(Vec<GuardedCall>),
    /// Send this message to the model and ask again.
    Say(&'static str),
    /// Tell the model why its answer was rejected, and ask again.
    Reject(Feedback),
    /// Apply the rules of the task and its verification to an answer in words.
    Review,
    /// Check the form of the final answer; a rejected `last` answer fails the task.
    Check { answer: String, last: bool },
    /// Tell the model what is wrong with the form of its answer, and ask again.
    Correct { problem: String },
    /// Ask the user whether the task continues.
    Pause,
    /// Compact the conversation; `accepted_tokens` is set if the server rejected it, and is the size to aim for
    /// from now on.
    Compact { accepted_tokens: Option<u64> },
    /// Perform the runtime's last actions.
    Settle(TaskEnd),
    /// Let the answer handler decide about the final answer.
    Handle { answer: String },
    /// End the task.
    End(TaskEnd),
}

/// A call with the loop detector's verdict.
#[derive(Debug)]
pub(crate) struct GuardedCall {
    pub(crate) call: ToolCall,
    pub(crate) verdict: CallVerdict,
}

/// Whether a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    Run,
    /// The same call appears earlier in the same reply, at this index.
    Duplicate(usize),
    /// The call was repeated this many times in a row.
    Repeated(u32),
}

/// Final state of the task, with what it leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskEnd {
    Completed {
        answer: String,
    },
    Failed {
        error: ErrorDetail,
        /// The model could not be reached despite all retries.
        unreachable: bool,
    },
    Cancelled,
}
