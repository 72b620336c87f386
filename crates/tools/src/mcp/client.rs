//! Client for one server: connects on first use, reconnects after the server exits, lists its tools and calls
//! them.

use std::sync::Arc;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use super::failure::{McpError, RequestFailure};
use super::request::{Arrival, Patience, PendingRequest};
use super::{ServerSettings, ToolList};

/// Maximum connection attempts per process; a server that keeps exiting is given up.
const MAX_CONNECTS: u32 = 5;
/// Maximum pages of a tool list.
const MAX_PAGES: usize = 20;

/// An MCP server, connected on demand.
#[derive(Debug)]
pub struct McpClient {
    pub(super) settings: ServerSettings,
    state: Mutex<ClientState>,
}

#[derive(Debug, Default)]
struct ClientState {
    connection: Option<Arc<Connection>>,
    connects: u32,
}

impl McpClient {
    /// Creates the client without connecting.
    #[must_use]
    pub fn new(settings: ServerSettings) -> Self {
        Self { settings, state: Mutex::default() }
    }

    /// Name of the server, and prefix of its tools' names.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Lists the server's tools, filtered and sanitized.
    pub async fn list_tools(&self) -> Result<ToolList, McpError> {
        self.list().await.map_err(|failure| McpError {
            server: self.settings.name.clone(),
            why: failure.describe(),
            needs_login: failure == RequestFailure::LoginRequired,
        })
    }

    async fn list(&self) -> Result<ToolList, RequestFailure> {
        let (mut list, mut cursor) = (ToolList::default(), None);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let silence = self.settings.timeout;
            let patience = Patience { silence, until: Instant::now() + silence };
            let mut pending = self.send(request).await?;
            let page = loop {
                // A question before any call is declined by dropping it.
                if let Arrival::Answer(page) = self.next(&mut pending, patience, &|_| {}).await? {
                    break page;
                }
            };
            let mut page = serde_json::to_value(page).unwrap_or_default();
            if let Some(tools) = page.get("tools").and_then(Value::as_array) {
                list.add(tools, &self.settings.name, &self.settings.lists);
            }
            cursor = match page.get_mut("nextCursor").map(Value::take) {
                Some(Value::String(cursor)) => Some(cursor),
                _ => return Ok(list),
            };
        }
        list.leave_out(format!("the list of tools has more than {MAX_PAGES} pages"));
        Ok(list)
    }

    /// Sends a request once. If the connection is lost, the next request reconnects; this one is not repeated
    /// because its outcome is unknown.
    pub(super) async fn send(&self, request: ClientRequest) -> Result<PendingRequest, RequestFailure> {
        let connection = self.connected().await?;
        let sent = PendingRequest::send(Arc::clone(&connection), request).await;
        if let Err(failure) = &sent {
            self.forget(&connection, failure).await;
        }
        sent
    }

    /// Waits for what the server sends in response.
    pub(super) async fn next(
        &self,
        pending: &mut PendingRequest,
        patience: Patience,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Arrival, RequestFailure> {
        let arrival = pending.next(patience, progress).await;
        if let Err(failure) = &arrival {
            self.forget(&pending.connection, failure).await;
        }
        arrival
    }

    /// Whether the server has announced other tools since the last time this was asked.
    pub(super) async fn take_tools_changed(&self) -> bool {
        let state = self.state.lock().await;
        state.connection.as_ref().is_some_and(|connection| connection.handler.take_tools_changed())
    }

    async fn forget(&self, lost: &Arc<Connection>, failure: &RequestFailure) {
        if matches!(failure, RequestFailure::Gone(_)) {
            let mut state = self.state.lock().await;
            state.connection.take_if(|known| Arc::ptr_eq(known, lost));
        }
    }

    async fn connected(&self) -> Result<Arc<Connection>, RequestFailure> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok(Arc::clone(connection));
        }
        if state.connects >= MAX_CONNECTS {
            let why = format!("it has ended {MAX_CONNECTS} times and is not started again");
            return Err(RequestFailure::Gone(why));
        }
        state.connects += 1;
        let connection = Arc::new(Connection::open(&self.settings).await?);
        state.connection = Some(Arc::clone(&connection));
        Ok(connection)
    }
}
