//! Client for one server: connects on first use, reconnects after the server exits, lists its tools and calls
//! them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::http::HttpSession;
use super::jsonrpc::RpcError;
use super::stdio::StdioServer;
use super::{ServerSettings, ToolList, Transport};

/// Protocol revisions that this client speaks, oldest first. The newest is offered, and a server chooses.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Maximum connection attempts per process; a server that keeps exiting is given up.
const MAX_CONNECTS: u32 = 5;
/// Maximum pages of a tool list.
const MAX_PAGES: usize = 20;
/// Maximum bytes of a server's error message.
const MAX_ERROR: usize = 2000;

/// Error that makes a server unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` cannot be used: {why}")]
pub struct McpError {
    /// Name of the server.
    pub server: String,
    /// Reason, without the server's name.
    pub why: String,
}

/// Reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestFailure {
    /// The connection is lost or could not be made.
    Gone(String),
    /// No response within this time.
    Silent(Duration),
    /// The server answered with a JSON-RPC error.
    Refused(RpcError),
}

impl RequestFailure {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Gone(why) => why.clone(),
            Self::Silent(limit) => format!("no answer within {} s", limit.as_secs_f64()),
            Self::Refused(refusal) => format!("{} (code {})", shortened(&refusal.message), refusal.code),
        }
    }
}

/// At most [`MAX_ERROR`] bytes of a message, which a server can make as long as it likes.
fn shortened(message: &str) -> String {
    match message.len() {
        ..=MAX_ERROR => message.to_owned(),
        all => format!("{}… ({all} bytes)", &message[..message.floor_char_boundary(MAX_ERROR)]),
    }
}

/// An MCP server, connected on demand.
#[derive(Debug)]
pub struct McpClient {
    settings: ServerSettings,
    link: Mutex<ClientState>,
}

#[derive(Debug, Default)]
struct ClientState {
    link: Option<Arc<McpConnection>>,
    connects: u32,
}

#[derive(Debug)]
enum McpConnection {
    Program(StdioServer),
    Address(HttpSession),
}

impl McpConnection {
    async fn request(&self, method: &str, params: &Value, limit: Duration) -> Result<Value, RequestFailure> {
        match self {
            Self::Program(program) => program.request(method, params, limit).await,
            Self::Address(address) => address.request(method, params, limit).await,
        }
    }

    async fn notify(&self, method: &str) -> Result<(), RequestFailure> {
        match self {
            Self::Program(program) => program.notify(method).await,
            Self::Address(address) => address.notify(method).await,
        }
    }

    /// Speaks the revision that the server has chosen from now on.
    fn set_revision(&self, revision: &'static str) {
        match self {
            // Messages over standard streams do not say it.
            Self::Program(_) => {}
            Self::Address(address) => address.set_revision(revision),
        }
    }
}

/// The revision in a server's answer to `initialize`.
fn chosen_revision(answer: &Value) -> Result<&'static str, RequestFailure> {
    let chosen = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    REVISIONS.into_iter().find(|known| *known == chosen).ok_or_else(|| {
        let known = REVISIONS.join(", ");
        let chosen = shortened(&chosen.escape_default().to_string());
        RequestFailure::Gone(format!("it speaks revision `{chosen}` of the protocol, not one of {known}"))
    })
}

impl McpClient {
    /// Creates the client without connecting.
    #[must_use]
    pub fn new(settings: ServerSettings) -> Self {
        Self { settings, link: Mutex::default() }
    }

    /// Name of the server, and prefix of its tools' names.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Lists the server's tools, filtered and sanitized.
    pub async fn list_tools(&self) -> Result<ToolList, McpError> {
        let (mut offer, mut cursor) = (ToolList::default(), None);
        for _ in 0..MAX_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor: Value| json!({ "cursor": cursor }));
            let mut page = self.ask("tools/list", &params).await.map_err(|fault| self.error(&fault))?;
            if let Some(tools) = page.get("tools").and_then(Value::as_array) {
                offer.add(tools, &self.settings.name, &self.settings.lists);
            }
            cursor = page.get_mut("nextCursor").map(Value::take).filter(Value::is_string);
            if cursor.is_none() {
                return Ok(offer);
            }
        }
        offer.left_out.push(format!("the list of tools has more than {MAX_PAGES} pages"));
        Ok(offer)
    }

    /// Calls a tool.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, RequestFailure> {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends a request once. If the connection is lost, the next request reconnects; this one is not repeated
    /// because its outcome is unknown.
    async fn ask(&self, method: &str, params: &Value) -> Result<Value, RequestFailure> {
        let link = self.connected().await?;
        let answer = link.request(method, params, self.settings.timeout).await;
        if matches!(answer, Err(RequestFailure::Gone(_))) {
            let mut connection = self.link.lock().await;
            if connection.link.as_ref().is_some_and(|known| Arc::ptr_eq(known, &link)) {
                connection.link = None;
            }
        }
        answer
    }

    async fn connected(&self) -> Result<Arc<McpConnection>, RequestFailure> {
        let mut connection = self.link.lock().await;
        if let Some(link) = &connection.link {
            return Ok(Arc::clone(link));
        }
        if connection.connects >= MAX_CONNECTS {
            let why = format!("it has ended {MAX_CONNECTS} times and is not started again");
            return Err(RequestFailure::Gone(why));
        }
        connection.connects += 1;
        let link = match &self.settings.reach {
            Transport::Program(program) => McpConnection::Program(StdioServer::start(program)?),
            Transport::Address { url, headers, client } => {
                McpConnection::Address(HttpSession::new(url, headers, client)?)
            }
        };
        let hello = json!({
            "protocolVersion": REVISIONS[REVISIONS.len() - 1],
            "capabilities": {},
            "clientInfo": { "name": "fusee", "version": env!("CARGO_PKG_VERSION") },
        });
        let limit = self.settings.timeout;
        let answer = link.request("initialize", &hello, limit).await?;
        link.set_revision(chosen_revision(&answer)?);
        let told = tokio::time::timeout(limit, link.notify("notifications/initialized")).await;
        told.unwrap_or(Err(RequestFailure::Silent(limit)))?;
        let link = Arc::new(link);
        connection.link = Some(Arc::clone(&link));
        Ok(link)
    }

    fn error(&self, fault: &RequestFailure) -> McpError {
        McpError { server: self.settings.name.clone(), why: fault.describe() }
    }
}
