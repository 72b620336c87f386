//! Finds models when none is configured: keys in the environment, servers on this machine.
//!
//! The model list is fetched with one hand-written HTTP request: the model crate's client keeps connections
//! open and waits for slow servers, which is not wanted for a quick probe.

use std::time::Duration;

use fusee::engine::model::connection::provider::{PROVIDERS, Provider};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::model_selection::own_url;
use crate::process::environment::Environment;

#[cfg(test)]
mod tests;

/// Time limit for a server to answer. A refused connection fails at once; a server that is loading a model,
/// or a busy machine, needs longer.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum size of a response.
const MAX_BYTES: u64 = 1 << 20;

/// Models that were found.
#[derive(Debug, Default)]
pub(crate) struct DiscoveredModels {
    /// Providers whose key is set.
    pub(crate) keys: Vec<&'static Provider>,
    /// Local servers that respond.
    pub(crate) servers: Vec<LocalServer>,
}

/// A server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalServer {
    pub(crate) provider: &'static Provider,
    pub(crate) base_url: String,
    pub(crate) models: Vec<String>,
}

/// Probes all sources concurrently.
pub(crate) async fn probe_all(environment: &Environment) -> DiscoveredModels {
    let keyed = |provider: &&Provider| key(provider, environment).is_some();
    let keys = PROVIDERS.iter().filter(keyed).collect();
    let own = PROVIDERS.iter().filter(|provider| provider.key_variable.is_none());
    let asked = futures_util::future::join_all(own.map(|provider| ask(provider, environment))).await;
    DiscoveredModels { keys, servers: asked.into_iter().flatten().collect() }
}

fn key<'e>(provider: &Provider, environment: &'e Environment) -> Option<&'e str> {
    provider.key_variable.and_then(|name| environment.text(name))
}

/// Fetches the model list of one server.
async fn ask(provider: &'static Provider, environment: &Environment) -> Option<LocalServer> {
    let base_url = base_url(provider, environment);
    let (address, path) = address(&base_url)?;
    let models = tokio::time::timeout(TIMEOUT, list(&address, &path)).await.ok().flatten()?;
    Some(LocalServer { provider, base_url, models })
}

/// Base URL of a self-hosted provider: from the environment, or its default port. An invalid variable is
/// reported when the server is used.
pub(crate) fn base_url(provider: &Provider, environment: &Environment) -> String {
    own_url(provider, environment).unwrap_or_else(|| provider.base_url.to_owned())
}

/// `host:port` and the path of the model list.
fn address(base_url: &str) -> Option<(String, String)> {
    let (address, path) = base_url.strip_prefix("http://")?.split_once('/')?;
    Some((address.to_owned(), format!("/{}/models", path.trim_end_matches('/'))))
}

async fn list(address: &str, path: &str) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // HTTP/1.0 responses are not chunked and end with the connection, unless the server sends a length.
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let (mut answer, mut stream) = (Vec::new(), stream.take(MAX_BYTES));
    while stream.read_buf(&mut answer).await.ok()? > 0 && !is_whole(&answer) {}
    names(&answer)
}

/// Whether a response with a Content-Length is complete.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = head_end(answer) else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + HEAD_END.len() + length)
}

const HEAD_END: &[u8] = b"\r\n\r\n";

fn head_end(answer: &[u8]) -> Option<usize> {
    answer.windows(HEAD_END.len()).position(|window| window == HEAD_END)
}

/// The model ids in a complete HTTP response.
fn names(answer: &[u8]) -> Option<Vec<String>> {
    let (head, body) = answer.split_at(head_end(answer)?);
    if !head.starts_with(b"HTTP/1.") || head.get(9..12) != Some(b"200") {
        return None;
    }
    let body: Value = serde_json::from_slice(body.get(HEAD_END.len()..)?).ok()?;
    let entries = body["data"].as_array()?;
    Some(entries.iter().filter_map(|entry| entry["id"].as_str()).map(str::to_owned).collect())
}
