//! Fusee as a Model Context Protocol server. Other agents and editors start runs, wait for them, answer their
//! questions and read their results through tools.
//!
//! [`serve`] speaks the protocol over a pair of streams, [`router`] over HTTP; rmcp does the protocol, [`McpServer`] answers. Runs are
//! started and resumed through a `Launcher`, so they mean the same as on the command line. A
//! run's id survives the process: whichever server is asked for it next continues it.

mod arguments;
mod call_result;
mod calls;
mod flow_control;
mod http;
mod prompts;
mod question;
mod resources;
mod run_state;
mod runs;
mod server;
mod task_tools;
mod tasks;
mod tool_list;
mod wait;

use std::sync::Arc;

use flow_control::LimitedTransport;
use fusee::launch::Launcher;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

pub use http::router;
pub use server::McpServer;

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum McpServeError {
    /// The client did not begin the session as the protocol says.
    #[error("the MCP client did not start a session: {0}")]
    Handshake(String),
    /// The connection's task panicked.
    #[error("internal error: the MCP connection panicked: {0}")]
    Panicked(String),
}

/// Serves one client until it closes `input`. Runs that are still working stay open and can be continued by the next
/// server.
pub async fn serve(
    launcher: Arc<dyn Launcher>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), McpServeError> {
    let transport = LimitedTransport::new(AsyncRwTransport::new_server(input, output));
    let session = match rmcp::serve_server(McpServer::new(launcher), transport).await {
        Ok(session) => session,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpServeError::Handshake(error.to_string())),
    };
    match session.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(McpServeError::Panicked(error.to_string())),
        Ok(_) => Ok(()),
    }
}
