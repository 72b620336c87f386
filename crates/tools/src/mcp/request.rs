//! One request to a server: its answer, its progress, and the questions that the server has meanwhile.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientRequest, ElicitRequestParams, ElicitResult, ProgressToken, RequestId,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::connection::{Connection, ENDING, transport_failure};
use super::failure::RequestFailure;
use super::handler::CallMessage;

/// Maximum time for telling the server that a request is cancelled.
pub(super) const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum time between two lines about the progress of a call.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Maximum time without a sign of progress.
    pub(super) silence: Duration,
    /// When to give up in any case.
    pub(super) until: Instant,
}

/// What a server sent in response to a request.
pub(super) enum Arrival {
    Answer(Box<ServerResult>),
    /// A question to the user, and where its answer goes.
    Question(Box<ElicitRequestParams>, oneshot::Sender<ElicitResult>),
}

type Response = Result<Result<ServerResult, ServiceError>, oneshot::error::RecvError>;

/// A request that was sent. Dropping it without an answer cancels it on the server.
pub(super) struct PendingRequest {
    pub(super) connection: Arc<Connection>,
    response: oneshot::Receiver<Result<ServerResult, ServiceError>>,
    id: RequestId,
    token: ProgressToken,
    messages: mpsc::Receiver<CallMessage>,
    is_answered: bool,
}

impl PendingRequest {
    pub(super) async fn send(
        connection: Arc<Connection>,
        request: ClientRequest,
    ) -> Result<Self, RequestFailure> {
        let sent = connection.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let RequestHandle { rx: response, id, progress_token: token, .. } = match sent {
            Ok(handle) => handle,
            Err(_) => return Err(RequestFailure::Gone(connection.end_reason().await)),
        };
        let messages = connection.handler.add_call(token.clone());
        Ok(Self { connection, response, id, token, messages, is_answered: false })
    }

    /// Waits for the answer or a question. Progress is passed on as lines.
    pub(super) async fn next(
        &mut self,
        patience: Patience,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Arrival, RequestFailure> {
        let mut heard = Instant::now();
        let mut shown: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                response = &mut self.response => return self.answer(response).await,
                why = self.connection.ended() => {
                    // The last words of a program may still be on their way.
                    return match timeout(ENDING, &mut self.response).await {
                        Ok(response) => self.answer(response).await,
                        Err(_) => Err(RequestFailure::Gone(why)),
                    };
                }
                Some(message) = self.messages.recv() => match message {
                    CallMessage::Progress(text) => {
                        heard = Instant::now();
                        if shown.is_none_or(|shown| heard - shown >= PROGRESS_INTERVAL) {
                            shown = Some(heard);
                            progress(&format!("{text}\n"));
                        }
                    }
                    CallMessage::Question(question, reply) => return Ok(Arrival::Question(question, reply)),
                },
                () = sleep_until((heard + patience.silence).min(patience.until)) => {
                    return Err(RequestFailure::Silent(patience.silence));
                }
            }
        }
    }

    async fn answer(&mut self, response: Response) -> Result<Arrival, RequestFailure> {
        self.is_answered = true;
        match response {
            Ok(Ok(result)) => Ok(Arrival::Answer(Box::new(result))),
            Ok(Err(ServiceError::McpError(error))) => Err(RequestFailure::Refused(error)),
            Ok(Err(ServiceError::TransportSend(error))) if !self.connection.is_program() => {
                Err(transport_failure(&error).0)
            }
            Ok(Err(_)) | Err(_) => Err(RequestFailure::Gone(self.connection.end_reason().await)),
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.connection.handler.remove_call(&self.token);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_answered {
            return;
        }
        let (connection, id) = (Arc::clone(&self.connection), self.id.clone());
        runtime.spawn(async move {
            let reason = CancelledNotificationParam::new(Some(id), Some("cancelled by the user".to_owned()));
            // A server that does not read cannot be told.
            let _ = timeout(CANCEL_TIMEOUT, connection.peer.notify_cancelled(reason)).await;
        });
    }
}
