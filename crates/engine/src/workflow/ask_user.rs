//! `ask-user`: a program's question to the user. The answer is a step, so the user is never asked twice. The
//! approver shows the question.

use fusee_journal::event::Event;
use fusee_journal::{RunAborted, StepKind};
use fusee_lang::{EffectFailure, ResumeInput};
use serde_json::{Value as Json, json};

use super::driver::{EffectAnswer, WorkflowDriver};

/// Reason shown with the question.
const REASON: &str = "the workflow has a question";

impl WorkflowDriver<'_> {
    /// Asks the user and waits without a time limit; waiting for the user is not active time.
    pub(super) async fn ask(&mut self, question: &str) -> Result<EffectAnswer, RunAborted> {
        let arguments = json!({ "question": question });
        let call_id = format!("{}:{}", self.branch, self.effects);
        self.emit(Event::ApprovalRequested {
            call_id: call_id.clone(),
            name: "ask_user".to_owned(),
            arguments: arguments.clone(),
            reason: REASON.to_owned(),
        });
        let call = self.call(StepKind::Wait, "ask_user", arguments);
        let (approver, cancel) = (&self.context.session.approval.approver, &self.cancel);
        let body = async move {
            match cancel.run_until_cancelled(approver.ask_user(question)).await {
                Some(answer) => json!({ "answer": answer }),
                None => json!({ "cancelled": true }),
            }
        };
        let said: Json = self.context.engine.step(call, body).await?.value;
        let answer = said["answer"].as_str().map(str::to_owned);
        let (approved, reason) = (answer.is_some(), answer.clone());
        let reason = reason.or_else(|| Some("nobody answered".to_owned()));
        self.emit(Event::ApprovalResolved { call_id, approved, reason });
        if said["cancelled"] == Json::Bool(true) {
            return Ok(EffectAnswer::Cancelled);
        }
        Ok(EffectAnswer::Go(match answer {
            Some(answer) => ResumeInput::Json(Json::String(answer)),
            None => ResumeInput::Failed(nobody()),
        }))
    }
}

fn nobody() -> EffectFailure {
    EffectFailure {
        kind: "TASK_FAILURE".to_owned(),
        reason: Some("tool_execution_error".to_owned()),
        message: "no user is available to answer".to_owned(),
        cause: None,
    }
}
