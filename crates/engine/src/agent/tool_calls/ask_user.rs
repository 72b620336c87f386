//! `ask_user`: a question from the model to the user. The answer is a journal step; the approver does the
//! asking.

use fusee_journal::event::Event;
use fusee_journal::{RunAborted, StepKind, StepMeta, StepRequest};
use fusee_model::ToolCall;
use fusee_tools::ToolOutput;
use serde_json::{Value, json};

use crate::agent::execution::Execution;
use crate::agent::tool_calls::tool_executor::CallRecord;
use crate::agent::tool_calls::user_wait::{NoAnswer, within};

/// Reason shown with the question.
const REASON: &str = "the model has a question";

/// Result for the model when there is no answer.
const NOBODY: &str = "Nobody is there to answer. Decide yourself and say in your answer what you assumed, or \
                      finish as blocked.";

/// Asks the user. The wait does not count as working time.
pub(super) async fn ask(
    run: &Execution<'_>,
    call: &ToolCall,
    question: String,
) -> Result<(CallRecord, StepMeta), RunAborted> {
    run.emit(Event::ApprovalRequested {
        call_id: call.id.clone(),
        name: call.name.clone(),
        arguments: json!({ "question": question }),
        reason: REASON.to_owned(),
    });
    let step = StepRequest::new(&run.task.branch, StepKind::Wait, "ask_user")
        .with_args(json!({ "question": question }));
    let (approver, cancel) = (&run.session().approval.approver, run.cancel());
    let limit_s = run.session().limits.approval_timeout_s;
    let body = async move {
        match within(limit_s, cancel, approver.ask_user(&question)).await {
            Ok(words) => json!(words),
            Err(why) => json!({ "unanswered": why }),
        }
    };
    let said: Value = run.engine().step(step, body).await?.value;
    let answer = said.as_str().map(str::to_owned);
    run.emit(Event::ApprovalResolved {
        call_id: call.id.clone(),
        approved: answer.is_some(),
        reason: answer.clone().or_else(|| Some("nobody answered".to_owned())),
    });
    if said["unanswered"] == json!(NoAnswer::Cancelled) {
        return run.answer(call, CallRecord::stopped()).await;
    }
    let output = answer.map_or_else(|| ToolOutput::error(NOBODY), ToolOutput::done);
    run.answer(call, CallRecord::plain(output)).await
}
