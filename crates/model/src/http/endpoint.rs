//! Connection to a server: address, headers, TLS, proxy, and the connection pool shared by all models on it.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, RequestBuilder, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::rate_gate::RateGate;
use super::root_cause;
use crate::wire::stream::DeltaSink;
use crate::{Connection, ErrorKind, ModelError, OpenError, Reply, ReplyDelta, Secret, WallClock, Wire};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Detects connections whose peer has silently gone away.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Maximum number of idle connections per server.
const MAX_IDLE: usize = 512;

/// Bytes of a request that a server on this machine is expected to read within the silence limit: about 4 000 tokens.
const LOCAL_PROMPT: usize = 16 << 10;

/// A server and the connections to it.
pub(crate) struct Endpoint {
    client: Client,
    base: Url,
    headers: HeaderMap,
    secrets: Vec<Secret>,
    /// Address for display, without password and query.
    pub(super) shown: String,
    /// The proxy that requests go through, without its password.
    proxy: Option<String>,
    pub(super) silence: Duration,
    pub(super) gate: RateGate,
    pub(super) clock: WallClock,
}

impl Endpoint {
    pub(crate) fn new(
        base_url: &str,
        settings: &Connection,
        clock: WallClock,
    ) -> Result<Endpoint, OpenError> {
        let base = parse_base(base_url, settings.wire)?;
        let mut shown = base.clone();
        // These fail only for addresses without a host.
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.set_query(None);
        let mut secrets: Vec<Secret> = settings.headers.iter().map(|(_, value)| value.clone()).collect();
        secrets.extend(settings.api_key.clone());
        secrets.extend(base.password().map(Secret::new));
        Ok(Endpoint {
            client: client(&base, settings)?,
            headers: headers(settings)?,
            proxy: shown_proxy(&base, settings),
            base,
            secrets,
            shown: shown.as_str().trim_end_matches('/').to_owned(),
            silence: settings.silence,
            gate: RateGate::default(),
            clock,
        })
    }

    /// POST request to `path` under the base address, with all headers.
    pub(super) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(self.address(path)).headers(self.headers.clone())
    }

    /// GET request; a `path` with a leading slash is relative to the parent of the version path.
    pub(super) fn ask(&self, path: &str) -> RequestBuilder {
        self.client.get(self.address(path)).headers(self.headers.clone())
    }

    fn address(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let base = self.base.path().trim_end_matches('/');
        if let Some(beside) = path.strip_prefix('/') {
            let root = base.strip_suffix("/v1").unwrap_or(base);
            url.set_path(&format!("{root}/{beside}"));
        } else {
            url.set_path(&format!("{base}/{path}"));
        }
        url
    }

    /// Whether the connection is unencrypted, which is the case only for self-hosted servers.
    pub(super) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    /// How long the server may be silent over a request of this many bytes before it sends its first data. A server on
    /// this machine reads the prompt at the speed of this machine, so a long one takes proportionally longer.
    pub(super) fn prompt_silence(&self, bytes: usize) -> Duration {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let local = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let parts = u32::try_from(bytes.div_ceil(LOCAL_PROMPT)).unwrap_or(u32::MAX).max(1);
        if local { self.silence.saturating_mul(parts) } else { self.silence }
    }

    /// The error of a request that got no response.
    pub(super) fn unsent(&self, error: &reqwest::Error) -> ModelError {
        let cause = root_cause(error);
        let (kind, message) = if error.is_connect() {
            let message = match &self.proxy {
                None => format!("cannot reach {}: {cause}", self.shown),
                Some(proxy) => format!(
                    "cannot reach {} through the proxy {proxy} (from HTTPS_PROXY, HTTP_PROXY or ALL_PROXY; NO_PROXY excepts \
                     hosts): {cause}",
                    self.shown
                ),
            };
            (ErrorKind::Connect, message)
        } else if error.is_timeout() {
            (ErrorKind::Timeout, format!("{} took too long: {cause}", self.shown))
        } else if error.is_builder() {
            (ErrorKind::Invalid, format!("cannot make a request to {}: {cause}", self.shown))
        } else {
            (ErrorKind::Cut, format!("{} closed the connection without a response: {cause}", self.shown))
        };
        ModelError::new(kind, self.redact(&message))
    }

    /// Removes all our secrets from `text`.
    pub(super) fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    fn is_echoed(&self, text: &str) -> bool {
        self.secrets.iter().any(|secret| !secret.reveal().is_empty() && text.contains(secret.reveal()))
    }

    /// Passes a fragment on without our keys, which a server may echo.
    pub(super) fn redact_delta(&self, delta: ReplyDelta<'_>, sink: &mut DeltaSink<'_>) {
        match delta {
            ReplyDelta::Text(text) if self.is_echoed(text) => sink(ReplyDelta::Text(&self.redact(text))),
            ReplyDelta::Reasoning(text) if self.is_echoed(text) => {
                sink(ReplyDelta::Reasoning(&self.redact(text)));
            }
            ReplyDelta::ToolArguments { index, fragment } if self.is_echoed(fragment) => {
                sink(ReplyDelta::ToolArguments { index, fragment: &self.redact(fragment) });
            }
            ReplyDelta::ToolCall { index, name } if self.is_echoed(name) => {
                sink(ReplyDelta::ToolCall { index, name: &self.redact(name) });
            }
            other => sink(other),
        }
    }

    /// The reply without our keys in any of its fields: names, ids and what is sent back to the server unread, too.
    pub(super) fn redact_reply(&self, reply: Reply) -> Reply {
        match serde_json::to_string(&reply) {
            Ok(text) if self.is_echoed(&text) => {
                serde_json::from_str(&self.redact(&text)).unwrap_or_default()
            }
            _ => reply,
        }
    }

    /// The error without our keys: its message may quote what the server sent.
    pub(super) fn redact_error(&self, mut error: ModelError) -> ModelError {
        error.message = self.redact(&error.message);
        error
    }
}

/// The proxy for requests to this address, as shown to the user.
fn shown_proxy(base: &Url, settings: &Connection) -> Option<String> {
    let mut proxy = Url::parse(settings.proxy.as_deref()?).ok()?;
    let host = base.host_str().unwrap_or_default();
    let is_direct = |entry: &str| {
        let entry = entry.trim().trim_start_matches('.');
        entry == "*" || entry == host || (!entry.is_empty() && host.ends_with(&format!(".{entry}")))
    };
    if settings.no_proxy.as_deref().unwrap_or_default().split(',').any(is_direct) {
        return None;
    }
    // These fail only for addresses without a host.
    let _ = proxy.set_username("").and_then(|()| proxy.set_password(None));
    Some(proxy.as_str().trim_end_matches('/').to_owned())
}

fn parse_base(base_url: &str, wire: Wire) -> Result<Url, OpenError> {
    let wrong = |why: &str| OpenError::Settings(format!("invalid base URL `{base_url}`: {why}"));
    // Users paste the full endpoint address.
    let trimmed = base_url.trim().trim_end_matches('/');
    let trimmed = trimmed.strip_suffix(&format!("/{}", wire.path())).unwrap_or(trimmed);
    let mut url = Url::parse(trimmed).map_err(|error| wrong(&error.to_string()))?;
    match (url.scheme(), url.has_host()) {
        ("http" | "https", true) => {
            // In this API the base address has no version, but users often include it.
            let path = url.path().trim_end_matches('/').to_owned();
            if wire == Wire::Anthropic && !path.ends_with("/v1") {
                url.set_path(&format!("{path}/v1"));
            }
            Ok(url)
        }
        _ => Err(wrong("it must start with http:// or https:// and include a host")),
    }
}

fn headers(settings: &Connection) -> Result<HeaderMap, OpenError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    // A stream compressed by an intermediary arrives in bursts; without this header it is free to compress.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let hidden = |name: &str, value: &str| {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| OpenError::Settings(format!("the value of `{name}` is not valid in a header")))?;
        value.set_sensitive(true);
        Ok(value)
    };
    if let Some(key) = &settings.api_key {
        let key = key.reveal().trim();
        match settings.wire {
            Wire::Anthropic => headers.insert("x-api-key", hidden("the API key", key)?),
            Wire::Chat | Wire::Responses => {
                headers.insert(AUTHORIZATION, hidden("the API key", &format!("Bearer {key}"))?)
            }
        };
    }
    if settings.wire == Wire::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        if let (Some((_, beta)), Some(_)) = (settings.traits.computer_tool.names(), settings.traits.display) {
            headers.insert("anthropic-beta", HeaderValue::from_static(beta));
        }
    }
    for (name, value) in &settings.headers {
        let known = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| OpenError::Settings(format!("invalid header name `{name}`")))?;
        headers.insert(known, hidden(name, value.reveal())?);
    }
    Ok(headers)
}

/// Client for an address other than a model's, configured like those for models.
pub(crate) fn client_for(url: &str, settings: &Connection) -> Result<Client, OpenError> {
    client(&parse_base(url, Wire::default())?, settings)
}

/// Client that connects to the host of `url` at these addresses only, whatever its name resolves to.
pub(crate) fn client_at(
    url: &Url,
    addresses: &[SocketAddr],
    settings: &Connection,
) -> Result<Client, OpenError> {
    let host = url.host_str().unwrap_or_default();
    build(builder().resolve_to_addrs(host, addresses), url, settings)
}

fn client(base: &Url, settings: &Connection) -> Result<Client, OpenError> {
    build(builder(), base, settings)
}

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("fusee/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .pool_max_idle_per_host(MAX_IDLE)
        // A redirected POST loses its body or its key; report the new address as an error instead.
        .redirect(Policy::none())
        // Proxy environment variables are read by the app.
        .no_proxy()
}

fn build(mut builder: ClientBuilder, base: &Url, settings: &Connection) -> Result<Client, OpenError> {
    let wrong =
        |what: &str, error: &reqwest::Error| OpenError::Settings(format!("{what}: {}", root_cause(error)));
    let mut encrypted = base.scheme() == "https";
    if let Some(address) = &settings.proxy {
        let proxy = Proxy::all(address).map_err(|error| wrong("invalid proxy address", &error))?;
        let direct = settings.no_proxy.as_deref().and_then(NoProxy::from_string);
        builder = builder.proxy(proxy.no_proxy(direct));
        encrypted |= address.starts_with("https");
    }
    let tls = if encrypted { with_roots(settings.ca_file.as_deref())? } else { without_roots()? };
    builder.tls_backend_preconfigured(tls).build().map_err(|error| wrong("cannot set up HTTP", &error))
}

/// TLS with the system's certificate authorities and those in `ca_file`.
fn with_roots(ca_file: Option<&Path>) -> Result<rustls::ClientConfig, OpenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut extra = Vec::new();
    if let Some(path) = ca_file {
        let wrong = |why: &dyn std::fmt::Display| {
            OpenError::Settings(format!("cannot read certificates from {}: {why}", path.display()))
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
            extra.push(certificate.map_err(|error| wrong(&error))?);
        }
        if extra.is_empty() {
            return Err(wrong(&"the file contains none"));
        }
    }
    let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(extra, provider.clone())
        .map_err(|error| OpenError::Settings(format!("cannot read the system's certificates: {error}")))?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls_fault)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// TLS configuration for plain HTTP. The client requires one, and this one does not read certificates (0.2 ms
/// instead of 5 ms).
fn without_roots() -> Result<rustls::ClientConfig, OpenError> {
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(tls_fault)?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
    Ok(config)
}

fn tls_fault(error: rustls::Error) -> OpenError {
    OpenError::Settings(format!("cannot set up TLS: {error}"))
}

#[cfg(test)]
mod tests;
