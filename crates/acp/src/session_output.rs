//! What a session sends to its client.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{SessionNotification, SessionUpdate};

use crate::connection::Connection;

/// Sends the updates of one session.
pub(crate) struct SessionOutput {
    pub(crate) connection: Arc<Connection>,
    pub(crate) session: String,
}

impl SessionOutput {
    /// Sends an update. Waits while the client does not read.
    pub(crate) async fn update(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.session.clone(), update);
        self.connection.notify("session/update", &notification).await;
    }
}
