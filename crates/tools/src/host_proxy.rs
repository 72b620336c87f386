//! Network access by host name: a proxy for commands that have no network of their own.
//!
//! The proxy listens on a socket inside the network namespace of a sandbox and works outside of it. It understands
//! HTTP (`http`) and SOCKS5 (`socks`), asks its [`HostGate`] about every host, resolves names itself and connects to
//! the very address that it has checked (`address`). Names that are allowed are [`HostRules`]. The namespace is what
//! keeps a command from going around it.

pub mod address;
mod http;
mod rules;
mod socks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub use rules::{HostPatternError, HostRules};

/// Maximum number of connections at a time; more wait.
const MAX_CONNECTIONS: usize = 256;

/// Time in which a command has to say where it wants to go.
const GREETING_LIMIT: Duration = Duration::from_secs(30);

/// Time in which a host has to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Decides about hosts on behalf of a run, and learns the result of each connection.
pub trait HostGate: Send + Sync {
    /// Decides whether a host that no rule allows may be reached. `Err` is the reason for the command.
    fn admit<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<(), String>>;

    /// Reports a connection that was made (`Ok`) or why it was not.
    fn report(&self, host: &str, port: u16, result: &Result<(), ProxyError>);
}

/// Why a connection was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The host must not be reached.
    #[error("{0}")]
    Refused(String),
    /// The host could not be reached.
    #[error("{0}")]
    Failed(String),
}

/// The proxy of a sandbox.
pub struct HostProxy {
    rules: HostRules,
    /// The run whose commands use it; without one every host that is not allowed is refused.
    gate: RwLock<Option<Arc<dyn HostGate>>>,
}

impl std::fmt::Debug for HostProxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HostProxy").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Detaches a gate when it is dropped.
pub struct AttachedGate(Arc<HostProxy>);

impl Drop for AttachedGate {
    fn drop(&mut self) {
        *self.0.gate.write() = None;
    }
}

impl HostProxy {
    /// A proxy with these rules.
    #[must_use]
    pub fn new(rules: HostRules) -> Self {
        Self { rules, gate: RwLock::new(None) }
    }

    /// Asks this gate from now on, until the result is dropped.
    #[must_use]
    pub fn attach(self: &Arc<Self>, gate: Arc<dyn HostGate>) -> AttachedGate {
        *self.gate.write() = Some(gate);
        AttachedGate(Arc::clone(self))
    }

    /// Serves connections from a listening socket until the task is aborted.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let proxy = Arc::clone(&self);
                    tokio::spawn(async move {
                        // Whatever goes wrong with one connection is the command's to see.
                        let _ = proxy.handle(stream).await;
                        drop(slot);
                    });
                }
                // Out of descriptors, for instance: others may end meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn handle(&self, mut client: TcpStream) -> std::io::Result<()> {
        let greeting = async {
            let mut first = [0u8; 1];
            client.peek(&mut first).await?;
            if first[0] == socks::VERSION {
                socks::greet(&mut client).await
            } else {
                http::greet(&mut client).await
            }
        };
        let Ok(target) = tokio::time::timeout(GREETING_LIMIT, greeting).await else { return Ok(()) };
        let Some(target) = target? else { return Ok(()) };
        let Target { host, port, reply } = target;
        match self.open(&host, port).await {
            Ok(mut server) => {
                reply.accept(&mut client, &mut server).await?;
                copy_bidirectional(&mut client, &mut server).await.map(|_| ())
            }
            Err(error) => reply.refuse(&mut client, &error).await,
        }
    }

    /// Connects to a host, if that is allowed.
    async fn open(&self, host: &str, port: u16) -> Result<TcpStream, ProxyError> {
        let gate = self.gate.read().clone();
        let result = match self.admit(host, port, gate.as_deref()).await {
            Ok(()) => connect(host, port).await,
            Err(reason) => Err(ProxyError::Refused(reason)),
        };
        if let Some(gate) = gate {
            gate.report(host, port, &result.as_ref().map(|_| ()).map_err(Clone::clone));
        }
        result
    }

    async fn admit(&self, host: &str, port: u16, gate: Option<&dyn HostGate>) -> Result<(), String> {
        if self.rules.allows(host) {
            return Ok(());
        }
        match gate {
            Some(gate) if self.rules.ask => gate.admit(host, port).await,
            _ => Err(format!("{host} is not one of the allowed hosts")),
        }
    }
}

/// Where a command wants to go, and how it is answered.
struct Target {
    host: String,
    port: u16,
    reply: Reply,
}

/// How a command is answered.
enum Reply {
    /// With the status line of a tunnel.
    HttpTunnel,
    /// By passing its request on: the beginning of the request as the server is to see it.
    HttpForward(Vec<u8>),
    /// With the reply of SOCKS5.
    Socks,
}

impl Reply {
    async fn accept(&self, client: &mut TcpStream, server: &mut TcpStream) -> std::io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        match self {
            Self::HttpTunnel => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await,
            Self::HttpForward(head) => server.write_all(head).await,
            Self::Socks => client.write_all(&socks::reply(socks::GRANTED)).await,
        }
    }

    async fn refuse(&self, client: &mut TcpStream, error: &ProxyError) -> std::io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        let answer = match (self, error) {
            (Self::Socks, ProxyError::Refused(_)) => socks::reply(socks::NOT_ALLOWED).to_vec(),
            (Self::Socks, ProxyError::Failed(_)) => socks::reply(socks::UNREACHABLE).to_vec(),
            (_, ProxyError::Refused(_)) => http::answer("403 Forbidden", &error.to_string()),
            (_, ProxyError::Failed(_)) => http::answer("502 Bad Gateway", &error.to_string()),
        };
        client.write_all(&answer).await?;
        client.shutdown().await
    }
}

/// Connects to a host at an address that may be reached: resolves the name once and uses what was checked.
pub async fn connect(host: &str, port: u16) -> Result<TcpStream, ProxyError> {
    let addresses = resolve(host, port).await?;
    let mut last = ProxyError::Failed(format!("{host} has no address"));
    for address in addresses {
        match tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = ProxyError::Failed(format!("{host}:{port}: {error}")),
            Err(_) => last = ProxyError::Failed(format!("{host}:{port} did not answer")),
        }
    }
    Err(last)
}

/// The addresses of a host that may be reached; an error if there are none.
pub async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ProxyError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await;
    let found: Vec<SocketAddr> =
        found.map_err(|error| ProxyError::Failed(format!("{host} cannot be resolved: {error}")))?.collect();
    let public: Vec<SocketAddr> = found.iter().copied().filter(|it| address::is_public(it.ip())).collect();
    if public.is_empty() && !found.is_empty() {
        let reason = format!("{host} is an address of this machine or of a private network");
        return Err(ProxyError::Refused(reason));
    }
    Ok(public)
}
