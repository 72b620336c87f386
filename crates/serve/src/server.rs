//! The server: bound to an address, with the URL that lets a browser in.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use fusee::engine::run::RunControl;
use fusee::journal::RunId;
use fusee::launch::Launcher;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::access::{self, Access, AccessError};
use crate::site::Site;
use crate::{api, connection};

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Address to bind; port 0 takes a free one.
    pub address: SocketAddr,
    /// The token that lets clients in. It must not be guessable.
    pub token: String,
    /// Whether the token is the user's own, from a file, and not made for this server.
    pub own_token: bool,
    /// Further names that the server is reached by.
    pub allow_hosts: Vec<String>,
    /// Whether nothing may be started, answered or changed.
    pub read_only: bool,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings would let others in.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// Address that the listener is bound to.
        address: SocketAddr,
        /// Error text of the system.
        cause: std::io::Error,
    },
}

/// A bound server.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    site: Site,
    mcp: Router,
}

impl Server {
    /// Binds the address. Clients wait until [`Self::run`]. Must be called in a runtime.
    pub fn bind(options: ServeOptions, launcher: Arc<dyn Launcher>) -> Result<Self, ServeError> {
        let ServeOptions { address, token, own_token, allow_hosts, read_only } = options;
        access::check_address(address, own_token, &allow_hosts)?;
        let bind = |cause| ServeError::Bind { address, cause };
        let listener = std::net::TcpListener::bind(address).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let listener = TcpListener::from_std(listener).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let access = Access::new(address, &token, &allow_hosts)?;
        let site = Site::new(launcher, access, read_only);
        Ok(Self { listener, address, token, site, mcp: Router::new() })
    }

    /// Also answers at [`MCP_PATH`](crate::MCP_PATH) with `router`, to clients that have the token.
    #[must_use]
    pub fn with_mcp(self, router: Router) -> Self {
        Self { mcp: router, ..self }
    }

    /// The URL that lets a browser in.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token)
    }

    /// A URL that lets one browser in once. Unlike the token, `code` may be seen by others afterwards, as the arguments
    /// of a program can be.
    pub fn url_once(&self, code: &str) -> String {
        self.site.access.allow_once(code);
        format!("http://{}/#token={code}", self.address)
    }

    /// Serves in the background.
    pub fn spawn(self) -> ServerHandle {
        let (site, address, token) = (self.site.clone(), self.address, self.token.clone());
        ServerHandle { site, address, token, serving: tokio::spawn(self.run()).abort_handle() }
    }

    /// Serves until the future is dropped.
    pub async fn run(self) {
        connection::accept(self.listener, api::router(self.site, self.mcp)).await;
    }
}

/// A server in the background; it ends when this is dropped.
pub struct ServerHandle {
    site: Site,
    address: SocketAddr,
    token: String,
    serving: AbortHandle,
}

impl ServerHandle {
    /// The URL that lets a browser in.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token)
    }

    /// The URL of a run's page, which lets a browser in.
    pub fn url_of(&self, run: &RunId) -> String {
        format!("http://{}/runs/{run}#token={}", self.address, self.token)
    }

    /// The same for one browser, once: `code` may be seen by others afterwards, as the arguments of a program can be.
    pub fn url_once(&self, run: &RunId, code: &str) -> String {
        self.site.access.allow_once(code);
        format!("http://{}/runs/{run}#token={code}", self.address)
    }

    /// Makes a run of this process known, so that it can be stopped and its deltas be seen.
    pub fn add(&self, run: RunControl, journal: &Path) {
        self.site.live.add(journal, run);
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
