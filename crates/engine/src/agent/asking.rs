//! `ask_user`: a question of the model to the person, whose answer is a step. Who asks is the approver's half.

use fusee_journal::event::Event;
use fusee_journal::{BoxFuture, Call, Kind, Recorded, Stop};
use fusee_model::ToolCall;
use fusee_tools::ToolOutput;
use serde_json::{Value, json};

use super::calling::Called;
use super::driver::Driver;

/// Why a person is asked, for those who show the question.
const REASON: &str = "the model has a question";

/// What the model is told when nobody answers.
const NOBODY: &str = "Nobody is there to answer. Decide yourself and say in your answer what you assumed, or \
                      finish as blocked.";

impl Driver<'_> {
    /// Asks, and waits as long as it takes: waiting for a person is not working time.
    pub(crate) async fn ask_person(
        &mut self,
        call: &ToolCall,
        question: String,
    ) -> Result<(Called, Recorded), Stop> {
        self.emit(Event::ApprovalRequested {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: json!({ "question": question }),
            reason: REASON.to_owned(),
        });
        let step = Call {
            branch: self.task.branch.clone(),
            kind: Kind::Wait,
            callee: "ask_user".to_owned(),
            args: json!({ "question": question }),
        };
        let (approver, cancel) = (&self.session().gatekeeper.approver, &self.task.cancel);
        let body = Box::new(move || {
            let ask = async move {
                json!(cancel.run_until_cancelled(approver.ask_user(&question)).await.flatten())
            };
            Box::pin(ask) as BoxFuture<'_, Value>
        });
        let answer: Option<String> = self.engine().step(step, body).await?.read()?;
        self.emit(Event::ApprovalResolved {
            call_id: call.id.clone(),
            approved: answer.is_some(),
            reason: answer.clone().or_else(|| Some("nobody answered".to_owned())),
        });
        let output = answer.map_or_else(|| ToolOutput::error(NOBODY), ToolOutput::done);
        self.answer_step(call, Called::plain(output)).await
    }
}
