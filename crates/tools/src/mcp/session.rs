//! Sessions with servers over HTTP. They are ended on the server when a connection is dropped, and a process waits for
//! that before it exits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Maximum time for ending sessions.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Counts open sessions. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct OpenSessions(Arc<watch::Sender<usize>>);

/// A session that counts as open until this is dropped.
#[derive(Debug)]
pub(super) struct OpenSession(OpenSessions);

impl OpenSessions {
    pub(super) fn add(&self) -> OpenSession {
        self.0.send_modify(|open| *open += 1);
        OpenSession(self.clone())
    }

    /// Waits until no session is open, for at most two seconds.
    pub async fn ended(&self) {
        let mut open = self.0.subscribe();
        // What is still open then is left to the server.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, open.wait_for(|open| *open == 0)).await;
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}
