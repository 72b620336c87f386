//! Approvals as permission requests to the client. A question that is answered elsewhere first is withdrawn.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallUpdate,
};
use fusee::approval::{ApprovalAnswer, ApprovalExtent, ApprovalQuestion, ApprovalScope, Approver};
use fusee::journal::BoxFuture;

use crate::connection::Connection;
use crate::tool_call;

const ALLOW: &str = "allow";
const ALLOW_SESSION: &str = "allow_session";
const REJECT: &str = "reject";

/// Asks the user of the client.
pub(crate) struct ClientApprover {
    pub(crate) connection: Arc<Connection>,
    pub(crate) session: String,
    pub(crate) workspace: std::path::PathBuf,
}

impl Approver for ClientApprover {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let ApprovalQuestion { call_id, name, arguments, reason } = question;
            let call = ToolCallUpdate::from(tool_call::started(call_id, name, arguments, &self.workspace));
            let request = RequestPermissionRequest::new(self.session.clone(), call, options());
            let answer = self.connection.request("session/request_permission", &request).await;
            match answer.map(|answer: RequestPermissionResponse| answer.outcome) {
                Ok(RequestPermissionOutcome::Selected(chosen)) => match &*chosen.option_id.0 {
                    ALLOW => ApprovalAnswer::yes(),
                    ALLOW_SESSION => ApprovalAnswer {
                        lasts: ApprovalScope::Session,
                        extent: ApprovalExtent::Wider,
                        ..ApprovalAnswer::yes()
                    },
                    _ => ApprovalAnswer::no("the user refused"),
                },
                Ok(_) => ApprovalAnswer::no("the user cancelled the question"),
                Err(error) => {
                    ApprovalAnswer::no(format!("the user could not be asked ({reason}): {}", error.message))
                }
            }
        })
    }

    /// A question of the model is answered by the user's next message, see `turn.rs`.
    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::pending())
    }
}

fn options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new(ALLOW, "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new(ALLOW_SESSION, "Allow in this run", PermissionOptionKind::AllowAlways),
        PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce),
    ]
}
