//! Model request errors. [`crate::retry`] decides how to handle them; [`crate::error_classifier`] classifies a server's
//! error response.

mod context_size;

use serde::{Deserialize, Serialize};

/// A failed attempt. Never contains a key or a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}{}", status.map(|status| format!(" (HTTP {status})")).unwrap_or_default())]
pub struct ModelError {
    /// Classification that determines whether to retry.
    pub kind: ErrorKind,
    /// HTTP status, if a response arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The server's own message if there is one, otherwise ours.
    pub message: String,
    /// Delay requested by the server, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// For scripts and cassettes: the line (from 1) that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<usize>,
}

impl ModelError {
    /// Creates an error that is not based on a server's response.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ModelError { kind, status: None, message: message.into(), retry_after_ms: None, source_line: None }
    }

    /// The context size in tokens that the server states, if the conversation exceeds it.
    pub fn context_tokens(&self) -> Option<u64> {
        let overflows = self.kind == ErrorKind::Overflow;
        overflows.then(|| context_size::stated(&self.message)).flatten()
    }

    /// The error of an attempt cancelled by its token.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }
}

/// Classification of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection: DNS, routing, refused, or TLS.
    Connect,
    /// The server timed out waiting (408; 504 from a proxy counts as `Server`), or connecting timed out.
    Timeout,
    /// Connected, but nothing arrived within the silence limit.
    Silence,
    /// The stream ended prematurely.
    Cut,
    /// Too many requests (429).
    RateLimited,
    /// The server is up but still loading its model.
    Loading,
    /// The server failed (5xx, 409, or an error in mid-stream).
    Server,
    /// The conversation exceeds the model's context window.
    Overflow,
    /// Missing key, wrong key, or no permission.
    Auth,
    /// The account's quota or credit is exhausted.
    Quota,
    /// The server rejects this request (other 4xx).
    Invalid,
    /// A script or cassette has no lines left.
    Exhausted,
    /// The response is not in the expected format.
    Protocol,
    /// Cancelled by the caller.
    Cancelled,
}

impl ErrorKind {
    /// Whether retrying the same request may succeed.
    pub fn retriable(self) -> bool {
        match self {
            ErrorKind::Connect
            | ErrorKind::Timeout
            | ErrorKind::Silence
            | ErrorKind::Cut
            | ErrorKind::RateLimited
            | ErrorKind::Loading
            | ErrorKind::Server => true,
            ErrorKind::Overflow
            | ErrorKind::Auth
            | ErrorKind::Quota
            | ErrorKind::Invalid
            | ErrorKind::Exhausted
            | ErrorKind::Protocol
            | ErrorKind::Cancelled => false,
        }
    }

    /// Whether, once retries are exhausted, the model counts as unreachable rather than as having rejected
    /// the request.
    pub fn unreachable(self) -> bool {
        self.retriable()
    }
}

/// The first characters of `text`, on one line, for error messages.
pub(crate) fn excerpt(text: &str, chars: usize) -> String {
    let mut short: String =
        text.trim().chars().take(chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}
