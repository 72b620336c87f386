//! Why a request to a model failed. [`crate::retry`] decides what to do about it; [`crate::fault`] finds the
//! kind in a server's answer.

use serde::{Deserialize, Serialize};

/// A failed attempt. It never holds a key or a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}{}", status.map(|status| format!(" (HTTP {status})")).unwrap_or_default())]
pub struct ModelError {
    /// What went wrong, in the terms that decide about a retry.
    pub kind: ErrorKind,
    /// The HTTP status, if one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The server's own words where there are any, else ours.
    pub message: String,
    /// How long the server asked us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// For scripts and cassettes: the line (from 1) that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<usize>,
}

impl ModelError {
    /// An error that did not come from a server's answer.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ModelError { kind, status: None, message: message.into(), retry_after_ms: None, source_line: None }
    }

    /// The attempt was given up because `cancel` fired.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }
}

/// What went wrong with an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection: name, route, refusal, TLS.
    Connect,
    /// The server gave up waiting (408, 504 from a proxy counts as `Server`), or connecting took too long.
    Timeout,
    /// Connected, but nothing came for the silence limit.
    Silence,
    /// The stream broke off before its end.
    Cut,
    /// Too many requests for now (429).
    RateLimited,
    /// The server is there and still loads its model.
    Loading,
    /// The server failed (5xx, 409, an error in mid-stream).
    Server,
    /// The conversation does not fit the model's context.
    Overflow,
    /// No key, a wrong key, or no permission.
    Auth,
    /// The account has nothing left.
    Quota,
    /// The server will not take this request as it is (other 4xx).
    Invalid,
    /// A script or cassette has no line left.
    Exhausted,
    /// What came is not the format we speak.
    Protocol,
    /// We were told to stop.
    Cancelled,
}

impl ErrorKind {
    /// Whether another attempt with the same request may succeed.
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

    /// Whether, once retries are used up, the model counts as unreachable rather than as having refused.
    pub fn unreachable(self) -> bool {
        self.retriable()
    }
}
