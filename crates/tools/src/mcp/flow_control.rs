//! Flow control of a connection: requests of a server that does not read their responses are dropped. Without this a
//! server that only writes would fill the memory with responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Maximum requests of a server whose response is not written yet.
const MAX_UNANSWERED: usize = 64;

/// A transport that drops requests while too many are unanswered.
pub(super) struct LimitedTransport<T> {
    inner: T,
    unanswered: Arc<AtomicUsize>,
}

impl<T> LimitedTransport<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, unanswered: Arc::default() }
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for LimitedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (send, unanswered) = (self.inner.send(item), Arc::clone(&self.unanswered));
        async move {
            let sent = send.await;
            if is_answer {
                // Errors about messages that are no requests were not counted.
                let _ = unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if matches!(message, JsonRpcMessage::Request(_)) {
                if self.unanswered.load(Ordering::Relaxed) >= MAX_UNANSWERED {
                    continue;
                }
                self.unanswered.fetch_add(1, Ordering::Relaxed);
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
