//! `ask-user`: a program's question to the user. The answer is a step, so the user is never asked twice. The
//! approver shows the question.

use std::time::Duration;

use fusee_journal::RunAborted;
use fusee_journal::event::Event;
use fusee_lang::{EffectFailure, ResumeInput};
use serde_json::{Value as Json, json};

use super::driver::{EffectAnswer, WorkflowDriver};
use crate::approval::{ASK_USER, NoAnswer, UserWait};

/// Reason shown with the question.
const REASON: &str = "the workflow has a question";

impl WorkflowDriver<'_> {
    /// Asks the user and waits without a time limit; waiting for the user is not active time.
    pub(super) async fn ask(&mut self, question: &str) -> Result<EffectAnswer, RunAborted> {
        let arguments = json!({ "question": question });
        let call_id = format!("{}:{}", self.branch, self.effects);
        self.emit(Event::ApprovalRequested {
            call_id: call_id.clone(),
            name: ASK_USER.to_owned(),
            arguments: arguments.clone(),
            reason: REASON.to_owned(),
        });
        let wait = UserWait {
            engine: &*self.context.engine,
            branch: &self.branch,
            call_id: &call_id,
            limit: Duration::MAX,
            cancel: &self.cancel,
        };
        let approver = &self.context.session.approval.approver;
        let ask = async { approver.ask_user(question).await };
        let said = wait.text(ASK_USER, arguments, ask).await?;
        let answer = said.as_ref().ok().cloned().flatten();
        let (approved, reason) = (answer.is_some(), answer.clone());
        let reason = reason.or_else(|| Some("nobody answered".to_owned()));
        self.emit(Event::ApprovalResolved { call_id, approved, reason });
        if said == Err(NoAnswer::Cancelled) {
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
