//! The worker: serves the engine's requests, each of which is one attempt to work on a run.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fusee::journal::Clock;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use tokio::net::{TcpListener, TcpSocket};

use crate::scratch::{WorkerParts, lock};
use crate::tenant::TenantPlaces;
use crate::{BlobStore, Engine, EngineError, RunHost, service, takeover};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Settings and parts of a worker.
pub struct WorkerOptions {
    /// The engine whose runs it executes.
    pub engine: Engine,
    /// Where it listens.
    pub listen: SocketAddr,
    /// URL at which the engine reaches it [default: that of `listen`].
    pub advertised: Option<String>,
    /// Folder for journals and workspaces of its runs, used by no other worker.
    pub folder: PathBuf,
    /// The blob store that all workers and clients share.
    pub blobs: BlobStore,
    /// Starts runs in this process.
    pub host: Arc<dyn RunHost>,
    /// Time of the journals.
    pub clock: Arc<dyn Clock>,
    /// Public keys of engines whose requests are served [default: those of anyone].
    pub identity_keys: Vec<String>,
    /// Maximum number of concurrent runs per tenant [default: no limit].
    pub tenant_limit: Option<usize>,
}

/// A worker that listens.
pub struct Worker {
    parts: Arc<WorkerParts>,
    listener: TcpListener,
    advertised: String,
    endpoint: Endpoint,
    /// Keeps other workers out of the folder.
    _lock: File,
}

impl Worker {
    /// Listens, and registers the worker with the engine once it serves. Workers on one machine may listen on the same
    /// address: if one dies, the engine reaches another.
    pub async fn start(options: WorkerOptions) -> Result<Self, EngineError> {
        let WorkerOptions { engine, listen, advertised, folder, blobs, host, clock, .. } = options;
        let tenants = TenantPlaces::new(options.tenant_limit);
        let parts = Arc::new(WorkerParts::new(engine, blobs, host, clock, tenants, folder.clone()));
        let endpoint = service::endpoint(Arc::clone(&parts), &options.identity_keys)?;
        let lock = lock(&folder)?;
        let listener = bind(listen)
            .map_err(|error| EngineError::Listen { address: listen.to_string(), cause: error.to_string() })?;
        let address = listener.local_addr().unwrap_or(listen);
        let advertised = advertised.unwrap_or_else(|| format!("http://{address}"));
        Ok(Self { parts, listener, advertised, endpoint, _lock: lock })
    }

    /// URL at which the engine reaches the worker.
    pub fn advertised(&self) -> &str {
        &self.advertised
    }

    /// Serves until the future is dropped. Calls `registered` once the worker is registered with the engine.
    pub async fn serve(self, registered: impl FnOnce(&str) + Send) -> Result<(), EngineError> {
        let endpoint = HyperEndpoint::new(self.endpoint);
        let accepting = accept(self.listener, endpoint);
        let registering = async {
            let deployment = self.parts.engine.register(&self.advertised).await?;
            registered(&deployment);
            takeover::watch(self.parts.engine.clone(), deployment).await;
            Ok(())
        };
        tokio::select! {
            () = accepting => Ok(()),
            failed = registering => failed,
        }
    }
}

async fn accept(listener: TcpListener, endpoint: HyperEndpoint) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: connections that end free some.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Entries are small, and the run waits for the answer to each.
        let _ = stream.set_nodelay(true);
        let connection = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), endpoint.clone());
        tokio::spawn(async move {
            // The engine connects again.
            let _ = connection.await;
        });
    }
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
