//! Access to the web on behalf of a model: pages ([`WebClient`]) and search services ([`SearchService`]).
//!
//! Hosts are allowed by the same rules as those of commands (`crate::host_proxy`). A name is resolved once and the
//! connection goes to the addresses that were checked; redirects are followed here, so that each is checked like a first
//! request. The tools are in `tool/fetch_url.rs` and `tool/web_search.rs`.

mod markdown;
mod robots;
mod search;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use serde::{Deserialize, Serialize};

use crate::host_proxy::{self, HostGate, HostRules, ProxyError};
use robots::Robots;

pub(crate) use markdown::to_markdown;
pub use search::{SearchHit, SearchService, SearchSettings};

/// Maximum bytes of a page that are read; the rest is not fetched.
pub(crate) const MAX_PAGE: usize = 4 << 20;
/// Maximum bytes of a `robots.txt`, as RFC 9309 requires.
const MAX_ROBOTS: usize = 500 << 10;
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;
/// Maximum number of sites whose `robots.txt` is remembered; others are fetched again.
const MAX_SITES: usize = 100;
/// Time limit of one request; each redirect is another one.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Time limit of a `robots.txt`.
const ROBOTS_LIMIT: Duration = Duration::from_secs(5);

/// Whether pages are fetched that a site's `robots.txt` disallows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsPolicy {
    /// They are not.
    #[default]
    Obey,
    /// `robots.txt` is not read.
    Ignore,
}

/// Makes an HTTP client for the host of a URL; with addresses, it connects to no others.
pub type ClientFactory = Arc<dyn Fn(&Url, &[SocketAddr]) -> Result<Client, String> + Send + Sync>;

/// Why a page was not fetched; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WebError(String);

/// A fetched page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Address after all redirects.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    /// Value of its `Content-Type` header.
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body is longer than what was read.
    pub(crate) is_cut: bool,
}

/// Fetches pages from the hosts that a run may reach.
pub struct WebClient {
    rules: HostRules,
    gate: Arc<dyn HostGate>,
    robots: RobotsPolicy,
    clients: ClientFactory,
    /// What `robots.txt` says, by origin.
    sites: Mutex<HashMap<String, Arc<Robots>>>,
}

impl WebClient {
    /// A client with these rules; `gate` is asked about other hosts if the rules say so, and learns of every connection.
    #[must_use]
    pub fn new(
        rules: HostRules,
        gate: Arc<dyn HostGate>,
        robots: RobotsPolicy,
        clients: ClientFactory,
    ) -> Self {
        Self { rules, gate, robots, clients, sites: Mutex::default() }
    }

    /// Fetches a page, following redirects.
    pub(crate) async fn get(&self, url: &str) -> Result<Page, WebError> {
        let mut url = parse(url)?;
        for _ in 0..=MAX_REDIRECTS {
            let (host, port) = host_and_port(&url)?;
            let admitted = self.admit(&host, port).await;
            let fetched = match admitted {
                Err(reason) => Err(ProxyError::Refused(reason)),
                Ok(()) => tokio::time::timeout(TIME_LIMIT, self.fetch(&url, &host, port))
                    .await
                    .unwrap_or_else(|_| Err(ProxyError::Failed(timed_out(&url)))),
            };
            self.gate.report(&host, port, &fetched.as_ref().map(drop).map_err(Clone::clone));
            match fetched.map_err(|error| WebError(error.to_string()))? {
                Fetched::Page(page) => return Ok(page),
                Fetched::Disallowed => {
                    return Err(WebError(format!(
                        "the robots.txt of {host} disallows {url}; only the user can change that, with \
                         web.robots = \"ignore\""
                    )));
                }
                Fetched::Redirect(location) => {
                    let next = url.join(&location);
                    let next = next.map_err(|_| WebError(format!("{url} redirects to `{location}`")))?;
                    url = parse(next.as_str())?;
                }
            }
        }
        Err(WebError(format!("{url}: more than {MAX_REDIRECTS} redirects")))
    }

    async fn admit(&self, host: &str, port: u16) -> Result<(), String> {
        if self.rules.allows(host) {
            return Ok(());
        }
        match self.rules.ask {
            true => self.gate.admit(host, port).await,
            false => Err(format!(
                "{host} is not one of the allowed hosts; only the user can allow more, with network.allow"
            )),
        }
    }

    /// Makes one request.
    async fn fetch(&self, url: &Url, host: &str, port: u16) -> Result<Fetched, ProxyError> {
        let addresses = host_proxy::resolve(host, port).await?;
        let client = (self.clients)(url, &addresses).map_err(ProxyError::Failed)?;
        if self.robots == RobotsPolicy::Obey && !self.robots_of(&client, url).await.allow(url) {
            return Ok(Fetched::Disallowed);
        }
        let accept = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1";
        let response = client.get(url.clone()).header(ACCEPT, accept).send().await;
        let response = response.map_err(|error| failed(url, &error))?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        if response.status().is_redirection()
            && let Some(location) = header(LOCATION)
        {
            return Ok(Fetched::Redirect(location.to_owned()));
        }
        let content_type = header(CONTENT_TYPE).unwrap_or_default().to_owned();
        let (status, url) = (response.status(), url.clone());
        let (body, is_cut) = read(response, MAX_PAGE).await.map_err(|error| failed(&url, &error))?;
        Ok(Fetched::Page(Page { url, status, content_type, body, is_cut }))
    }

    /// What the `robots.txt` of a site says. It is read once per run.
    async fn robots_of(&self, client: &Client, url: &Url) -> Arc<Robots> {
        let site = url.origin().ascii_serialization();
        if let Some(known) = self.sites.lock().get(&site) {
            return Arc::clone(known);
        }
        let found = match url.join("/robots.txt") {
            Ok(file) => tokio::time::timeout(ROBOTS_LIMIT, read_robots(client, file)).await.ok(),
            Err(_) => None,
        };
        // A site that cannot be reached disallows everything, says RFC 9309.
        let found = Arc::new(found.flatten().unwrap_or_else(Robots::nothing));
        let mut sites = self.sites.lock();
        if sites.len() < MAX_SITES {
            sites.insert(site, Arc::clone(&found));
        }
        found
    }
}

/// Result of one request.
enum Fetched {
    Page(Page),
    Redirect(String),
    Disallowed,
}

/// `None` if the server cannot say.
async fn read_robots(client: &Client, file: Url) -> Option<Robots> {
    let response = client.get(file).send().await.ok()?;
    let status = response.status();
    if status.is_server_error() {
        return None;
    }
    if !status.is_success() {
        return Some(Robots::everything());
    }
    let (body, _) = read(response, MAX_ROBOTS).await.ok()?;
    Some(Robots::read(&String::from_utf8_lossy(&body)))
}

/// Reads at most `limit` bytes of a body; returns whether there were more.
pub(super) async fn read(mut response: Response, limit: usize) -> reqwest::Result<(Vec<u8>, bool)> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body, true));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, false))
}

fn parse(text: &str) -> Result<Url, WebError> {
    let url = Url::parse(text.trim()).map_err(|error| WebError(format!("`{text}` is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(WebError(format!("`{text}` is not a URL that begins with http:// or https://")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WebError("a URL with a user name or password is not fetched".to_owned()));
    }
    Ok(url)
}

fn host_and_port(url: &Url) -> Result<(String, u16), WebError> {
    let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
    match (host, url.port_or_known_default()) {
        (Some(host), Some(port)) => Ok((host, port)),
        _ => Err(WebError(format!("`{url}` has no host"))),
    }
}

fn timed_out(url: &Url) -> String {
    format!("{url}: no answer within {} s", TIME_LIMIT.as_secs())
}

fn failed(url: &Url, error: &reqwest::Error) -> ProxyError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    ProxyError::Failed(format!("{url}: {cause}"))
}
