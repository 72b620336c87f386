//! Fusee as an agent of the Agent Client Protocol: editors hold conversations with it over a pair of streams.
//!
//! [`serve`] answers one client. A session is a chain of runs, each continuing the one before; their ids follow from the
//! session's, so that a session can be loaded from the journal by another process. `update.rs` maps the events of a
//! run to what the client shows, live and when a session is loaded.

mod agent;
mod command;
mod connection;
mod editor;
mod permission;
mod prompt;
mod report;
mod session;
mod session_output;
mod settings;
mod tool_call;
mod turn;
mod update;

use std::sync::Arc;

use connection::{Connection, Incoming, Lines};
use fusee::launch::Launcher;
use tokio::io::{AsyncRead, AsyncWrite};

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum AcpServeError {
    /// Reading from the client failed.
    #[error("cannot read from the ACP client: {0}")]
    Read(#[from] std::io::Error),
}

/// Serves one client until it closes `input`. Runs that are still working stay open and are continued when their
/// session is loaded again.
pub async fn serve(
    launcher: Arc<dyn Launcher>,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), AcpServeError> {
    let (connection, writer) = Connection::open(output);
    let agent = Arc::new(agent::Agent::new(launcher, Arc::clone(&connection)));
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next().await? {
        match connection.receive(&line).await {
            Some(Incoming { id: Some(id), method, params }) => agent.request(id, &method, params).await,
            Some(Incoming { id: None, method, params }) => agent.notification(&method, params),
            None => {}
        }
    }
    connection.close();
    drop((agent, connection));
    // What was written before the client closed its end is still delivered, if it reads.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(1), writer).await;
    Ok(())
}
