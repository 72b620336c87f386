//! Flow control of the connection: while too many requests wait for their response to be written, nothing more is read.
//! Without this a client that only writes would fill the memory with responses.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

/// Requests that were read and whose response is not written yet.
const MAX_IN_FLIGHT: usize = 256;

/// A transport that reads only while few requests are in flight.
pub(crate) struct LimitedTransport<T> {
    inner: T,
    in_flight: Arc<InFlight>,
}

#[derive(Default)]
struct InFlight {
    ids: Mutex<HashSet<RequestId>>,
    freed: Notify,
}

impl InFlight {
    /// Waits until another request may be read.
    async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            if self.ids.lock().len() < MAX_IN_FLIGHT {
                return;
            }
            freed.await;
        }
    }

    /// Adds a request; false if one with this id is in flight.
    fn add(&self, id: &RequestId) -> bool {
        self.ids.lock().insert(id.clone())
    }

    fn remove(&self, id: &RequestId) {
        self.ids.lock().remove(id);
        self.freed.notify_one();
    }
}

impl<T> LimitedTransport<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, in_flight: Arc::default() }
    }
}

impl<T: Transport<RoleServer> + 'static> Transport<RoleServer> for LimitedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let (send, in_flight) = (self.inner.send(item), Arc::clone(&self.in_flight));
        async move {
            let sent = send.await;
            id.iter().for_each(|id| in_flight.remove(id));
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.in_flight.room().await;
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(request) if !self.in_flight.add(&request.id) => {
                    let error = ErrorData::invalid_request("a request with this id is in progress", None);
                    // The client learns it from the other response too, if this one cannot be sent.
                    let _ = self.inner.send(JsonRpcMessage::error(error, Some(request.id.clone()))).await;
                    continue;
                }
                // A cancelled request gets no response.
                JsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                        cancelled.params.request_id.iter().for_each(|id| self.in_flight.remove(id));
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
