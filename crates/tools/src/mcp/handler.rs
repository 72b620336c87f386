//! What a server sends on its own: progress of calls, questions to the user, and the news that its tools changed.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, ExtensionCapabilities, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, TASKS_EXTENSION_ID,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{mpsc, oneshot};

/// Messages for one call that wait to be read; further ones are dropped.
const MAX_WAITING: usize = 64;

/// A message from the server during a call.
#[derive(Debug)]
pub(super) enum CallMessage {
    Progress(String),
    Question(Box<ElicitRequestParams>, oneshot::Sender<ElicitResult>),
}

/// Receives what a server sends, and passes it to the calls.
#[derive(Debug, Default)]
pub(super) struct Handler {
    calls: Mutex<Vec<(ProgressToken, mpsc::Sender<CallMessage>)>>,
    tools_changed: AtomicBool,
}

impl Handler {
    /// Passes messages about this call on from now on.
    pub(super) fn add_call(&self, token: ProgressToken) -> mpsc::Receiver<CallMessage> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        self.calls.lock().push((token, sender));
        receiver
    }

    pub(super) fn remove_call(&self, token: &ProgressToken) {
        self.calls.lock().retain(|(known, _)| known != token);
    }

    /// Whether the server has announced other tools since the last time this was asked.
    pub(super) fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::Relaxed)
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        let tasks = (TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new());
        capabilities.extensions = Some(ExtensionCapabilities::from([tasks]));
        let name = Implementation::new("fusee", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let calls = self.calls.lock();
        if let Some((_, call)) = calls.iter().find(|(token, _)| *token == progress.progress_token) {
            // A server that reports faster than it is read loses reports.
            let _ = call.try_send(CallMessage::Progress(describe(&progress)));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    /// A question belongs to the oldest call in progress; without one, or with too many questions, it is declined.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (reply, answer) = oneshot::channel();
        let call = self.calls.lock().first().map(|(_, call)| call.clone());
        let is_asked =
            call.is_some_and(|call| call.try_send(CallMessage::Question(Box::new(request), reply)).is_ok());
        let declined = ElicitResult::new(ElicitationAction::Decline);
        Ok(if is_asked { answer.await.unwrap_or(declined) } else { declined })
    }
}

/// One line about the progress of a call.
fn describe(progress: &ProgressNotificationParam) -> String {
    let number = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    let text = progress.message.as_deref().map(|text| text.lines().next().unwrap_or_default());
    match text.filter(|text| !text.is_empty()) {
        Some(text) => format!("{number} {}", &text[..text.floor_char_boundary(MAX_LINE)]),
        None => number,
    }
}

/// Maximum bytes of a progress message that are shown.
pub(super) const MAX_LINE: usize = 200;
