//! Looking for models when none is configured: keys in the environment, servers on this machine.
//!
//! A server is asked for its list with one plain request, by hand: the model crate's client keeps connections
//! and waits, which is not wanted for a look of a fifth of a second.

use std::time::Duration;

use fusee_engine::model::provider::{PROVIDERS, Provider};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::environment::Environment;

#[cfg(test)]
mod tests;

/// A server on this machine answers within this time or is not there.
const PATIENCE: Duration = Duration::from_millis(200);

/// No local list of models is longer.
const MOST_BYTES: u64 = 1 << 20;

/// What there is.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Providers whose key is set.
    pub(crate) keys: Vec<&'static Provider>,
    /// Servers that answer.
    pub(crate) servers: Vec<Server>,
}

/// A server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) provider: &'static Provider,
    pub(crate) models: Vec<String>,
}

/// Looks everywhere at once.
pub(crate) async fn look(environment: &Environment) -> Found {
    let keyed = |provider: &&Provider| key(provider, environment).is_some();
    let keys = PROVIDERS.iter().filter(keyed).collect();
    let own = PROVIDERS.iter().filter(|provider| provider.key_variable.is_none());
    let asked = futures_util::future::join_all(own.map(ask)).await;
    Found { keys, servers: asked.into_iter().flatten().collect() }
}

fn key<'e>(provider: &Provider, environment: &'e Environment) -> Option<&'e str> {
    provider.key_variable.and_then(|name| environment.text(name))
}

/// Asks one server what it has.
pub(crate) async fn ask(provider: &'static Provider) -> Option<Server> {
    let (address, path) = address(provider.base_url)?;
    let models = tokio::time::timeout(PATIENCE, list(&address, &path)).await.ok().flatten()?;
    Some(Server { provider, models })
}

/// `host:port` and the path of the list.
fn address(base_url: &str) -> Option<(String, String)> {
    let (address, path) = base_url.strip_prefix("http://")?.split_once('/')?;
    Some((address.to_owned(), format!("/{}/models", path.trim_end_matches('/'))))
}

async fn list(address: &str, path: &str) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // In version 1.0 an answer ends with its connection and comes in one piece.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(MOST_BYTES).read_to_end(&mut answer).await.ok()?;
    names(&answer)
}

/// The ids in a whole HTTP answer that holds a list of models.
fn names(answer: &[u8]) -> Option<Vec<String>> {
    let head_end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, body) = answer.split_at(head_end);
    if !head.starts_with(b"HTTP/1.") || head.get(9..12) != Some(b"200") {
        return None;
    }
    let body: Value = serde_json::from_slice(body.get(4..)?).ok()?;
    let entries = body["data"].as_array()?;
    Some(entries.iter().filter_map(|entry| entry["id"].as_str()).map(str::to_owned).collect())
}
