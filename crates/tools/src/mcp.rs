//! Model Context Protocol client: tools provided by other programs and servers.
//!
//! A [`McpClient`] is a program connected through its standard streams (`program`) or a URL connected over HTTP
//! (`http`). It is connected on first use and reconnected after it exits. Its tools become
//! [`Tool`](crate::Tool)s whose names are prefixed with the server's name (`tool`). The app and the user
//! decide which servers are used. rmcp speaks the protocol; what bounds a server is here.

mod call;
mod client;
mod connection;
pub mod deferral;
mod failure;
mod flow_control;
mod handler;
mod http;
mod login;
mod program;
mod question;
mod request;
mod result;
mod session;
mod tool;
mod tool_list;

use std::path::PathBuf;
use std::time::Duration;

use crate::sandbox::{CommandEnvironment, ForkServer};

pub use client::McpClient;
pub use failure::McpError;
pub use login::{Login, LoginError, RegisteredClient, stored_tokens};
pub use session::OpenSessions;
pub use tool::McpTool;
pub use tool_list::{OfferedTool, ToolList};

/// Configuration of one server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Name of the server, and prefix of its tools' names.
    pub name: String,
    /// Transport used to connect to the server.
    pub reach: Transport,
    /// Filter for the server's tools.
    pub lists: ToolLists,
    /// Maximum time for connecting, and for one response without a sign of progress.
    pub timeout: Duration,
}

/// Allow list and block list for the tools of a server.
#[derive(Clone, Debug, Default)]
pub struct ToolLists {
    /// Allowed tools; all if `None`.
    pub allow: Option<Vec<String>>,
    /// Blocked tools; takes precedence over `allow`.
    pub block: Vec<String>,
}

/// Transport to a server.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A program that is started and connected through stdin and stdout.
    Program(ProgramSettings),
    /// A URL, over streamable HTTP.
    Address {
        /// Endpoint of the server.
        url: String,
        /// Headers sent with every request, including credentials.
        headers: Vec<(String, String)>,
        /// HTTP client for the connection.
        client: reqwest::Client,
        /// File with the token of a login, if there may be one.
        login: Option<PathBuf>,
        /// The client that logged in, unless it registered itself.
        registered: Option<RegisteredClient>,
        /// Where the session is counted.
        sessions: OpenSessions,
    },
}

/// How to start a server program.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables of the program.
    pub environment: CommandEnvironment,
    /// Working directory.
    pub directory: PathBuf,
    /// File for the program's stderr; discarded if `None`.
    pub log: Option<PathBuf>,
    /// Starts the program, and ends it when this process exits.
    pub fork_server: ForkServer,
}
