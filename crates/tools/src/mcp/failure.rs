//! Why a server gives no answer.

use std::time::Duration;

use rmcp::model::ErrorData;

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
    /// Whether the user has to log in.
    pub needs_login: bool,
}

/// Reason why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RequestFailure {
    /// The connection is lost or could not be made.
    Gone(String),
    /// No response within this time.
    Silent(Duration),
    /// The server answered with a JSON-RPC error.
    Refused(ErrorData),
    /// The server wants the user to log in.
    LoginRequired,
}

impl RequestFailure {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Gone(why) => why.clone(),
            Self::Silent(limit) => format!("no answer within {} s", limit.as_secs_f64()),
            Self::Refused(error) => format!("{} (code {})", shortened(&error.message), error.code.0),
            Self::LoginRequired => "it wants a login".to_owned(),
        }
    }
}

/// At most [`MAX_ERROR`] bytes of a message, which a server can make as long as it likes.
pub(super) fn shortened(message: &str) -> String {
    match message.len() {
        ..=MAX_ERROR => message.to_owned(),
        all => format!("{}… ({all} bytes)", &message[..message.floor_char_boundary(MAX_ERROR)]),
    }
}
