//! A connection that a command asked Fusee's proxy for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host and port that a command wanted to reach, and whether it could.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkAccess {
    /// The host as the command named it.
    pub host: String,
    /// TCP port that the command asked for.
    pub port: u16,
    /// Whether the connection was made.
    pub verdict: NetworkVerdict,
    /// Why the connection was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkVerdict {
    /// The host is allowed and was reached.
    Allowed,
    /// The host is not allowed.
    Refused,
    /// The host is allowed and could not be reached.
    Failed,
}

impl NetworkVerdict {
    /// The name in the event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}
