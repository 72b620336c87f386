//! `ask_user`: a question from the model to the user. The answer is a journal step; the approver does the
//! asking.

use std::time::Duration;

use fusee_journal::event::Event;
use fusee_journal::{RunAborted, StepMeta};
use fusee_model::ToolCall;
use fusee_tools::ToolOutput;
use serde_json::json;

use crate::agent::execution::Execution;
use crate::agent::tool_calls::call_hooks;
use crate::agent::tool_calls::tool_executor::CallRecord;
use crate::approval::{ASK_USER, ApprovalQuestion, NoAnswer, UserWait};

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
    let asked = json!({ "question": question });
    let (call_id, name, reason) = (call.id.clone(), call.name.clone(), REASON.to_owned());
    let asked = ApprovalQuestion { call_id, name, arguments: asked, reason };
    call_hooks::notify(&run.executor(), &asked).await?;
    let wait = UserWait {
        engine: run.engine(),
        branch: &run.task.branch,
        call_id: &call.id,
        limit: Duration::from_secs(run.session().limits.approval_timeout_s),
        cancel: run.cancel(),
    };
    let approver = &run.session().approval.approver;
    let ask = async { approver.ask_user(&question).await };
    let said = wait.text(ASK_USER, json!({ "question": question }), ask).await?;
    let answer = said.as_ref().ok().cloned().flatten();
    run.emit(Event::ApprovalResolved {
        call_id: call.id.clone(),
        approved: answer.is_some(),
        reason: answer.clone().or_else(|| Some("nobody answered".to_owned())),
    });
    if said == Err(NoAnswer::Cancelled) {
        return run.answer(call, CallRecord::stopped()).await;
    }
    let output = answer.map_or_else(|| ToolOutput::error(NOBODY), ToolOutput::done);
    run.answer(call, CallRecord::plain(output)).await
}
