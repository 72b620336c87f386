//! Tools of other programs and servers: the client side of the Model Context Protocol.
//!
//! A [`Server`] is a program spoken to over its streams (`program`) or an address spoken to over HTTP (`address`); it is
//! started when it is first needed and again when it has ended. What it offers becomes [`Tool`](crate::Tool)s whose names
//! begin with the server's (`remote`). Whether a server is to be used at all is the app's half, and the user's.

mod address;
mod answer;
mod message;
mod offer;
mod program;
mod remote;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use crate::sandbox::{Environment, Keeper};

pub use offer::{Offer, Offered};
pub use remote::Remote;
pub use server::{McpError, Server};

/// A server as the user describes it.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// What its tools' names begin with.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Which of its tools are used.
    pub lists: Lists,
    /// How long one answer may take.
    pub timeout: Duration,
}

/// Which tools of a server are used.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// These; all if there is no list.
    pub allow: Option<Vec<String>>,
    /// But not these.
    pub block: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// A program that is started and spoken to over its streams.
    Program(ProgramSettings),
    /// An address, over HTTP.
    Address {
        /// Where.
        url: String,
        /// Headers of every request, keys among them.
        headers: Vec<(String, String)>,
        /// Makes the connections.
        client: reqwest::Client,
    },
}

/// A program that is a server.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The variables it sees.
    pub environment: Environment,
    /// Where it runs.
    pub directory: PathBuf,
    /// Where it writes what is not for us; nowhere if there is no place.
    pub log: Option<PathBuf>,
    /// Starts it, and ends it with us.
    pub keeper: Keeper,
}
