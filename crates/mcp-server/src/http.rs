//! The protocol over streamable HTTP: one path of an HTTP server that checks who may send requests.

use std::sync::Arc;

use axum::Router;
use fusee::launch::Launcher;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Semaphore;

use crate::McpServer;

/// Maximum sessions, and requests without one, at the same time; further ones are refused.
const MAX_SESSIONS: usize = 256;

/// A router that answers at `path`. All its clients share the runs. Who may send requests (Host, Origin, token) is
/// checked by the server that it becomes part of.
pub fn router(launcher: Arc<dyn Launcher>, path: &str) -> Router {
    let (server, sessions) = (McpServer::new(launcher), Arc::new(Semaphore::new(MAX_SESSIONS)));
    let answer = move || {
        let session = Arc::clone(&sessions).try_acquire_owned();
        let session = session.map_err(|_| std::io::Error::other("too many sessions"))?;
        Ok(server.clone().in_session(session))
    };
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    let service = StreamableHttpService::new(answer, Arc::new(LocalSessionManager::default()), config);
    Router::new().route_service(path, service)
}
