//! Who may send a request: exactly one Host, our own Origin, no other site, and the token of the printed URL, as a bearer
//! token or as the cookie that the page exchanges it for.
//!
//! A page of any other site can make a browser send requests to a loopback address, and can rebind its own name to it. The
//! Host and Origin checks stop both before the token is looked at.

use std::net::SocketAddr;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use parking_lot::Mutex;

use crate::problem::Problem;

/// Shortest token that is accepted from a file, in characters.
const SHORTEST_TOKEN: usize = 16;

/// What to do without a valid token.
const OPEN_THE_URL: &str = "open the URL that fusee printed";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why the settings for access are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The token could be guessed, or could not be sent in a header.
    #[error(
        "the token must have at least {SHORTEST_TOKEN} characters, all of them letters, digits, `-` or `_`"
    )]
    WeakToken,
    /// An address that other machines can reach needs a token of the user's own and the names it is reached by.
    #[error("{0} can be reached from other machines: pass --token-file and --allow-host")]
    NotLoopback(SocketAddr),
}

/// The rules of one server.
pub(crate) struct Access {
    token: blake3::Hash,
    cookie_name: String,
    cookie_value: String,
    hosts: Vec<String>,
    once: Mutex<Option<blake3::Hash>>,
}

impl Access {
    /// Rules of a server at `address`, which is also reached as `allow_hosts` (each with a port, or on that of the
    /// address).
    pub(crate) fn new(address: SocketAddr, token: &str, allow_hosts: &[String]) -> Result<Self, AccessError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if token.len() < SHORTEST_TOKEN || !token.chars().all(legal) {
            return Err(AccessError::WeakToken);
        }
        let with_port = |host: &String| match host.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => host.to_ascii_lowercase(),
            _ => format!("{}:{}", host.to_ascii_lowercase(), address.port()),
        };
        let hosts = std::iter::once(address.to_string()).chain(allow_hosts.iter().map(with_port)).collect();
        let cookie = blake3::derive_key("fusee serve 2026 session cookie", token.as_bytes());
        Ok(Self {
            token: blake3::hash(token.as_bytes()),
            cookie_name: format!("fusee-{}", address.port()),
            cookie_value: blake3::Hash::from(cookie).to_hex().to_string(),
            hosts,
            once: Mutex::new(None),
        })
    }

    /// Refuses a request that did not come from our own page or from a program that was given our address.
    pub(crate) fn check_source(&self, request: &Parts) -> Result<(), Problem> {
        let foreign = || {
            Problem::new(StatusCode::MISDIRECTED_REQUEST, "this request was sent to another host")
                .help(OPEN_THE_URL)
        };
        let host = only(&request.headers, &HOST).ok_or_else(foreign)?.to_ascii_lowercase();
        let target = request.uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
        if !self.hosts.contains(&host) || target.is_some_and(|target| target != host) {
            return Err(foreign());
        }
        let site = || Problem::new(StatusCode::FORBIDDEN, "requests from other sites are refused");
        if request.headers.contains_key(ORIGIN) {
            let origin = only(&request.headers, &ORIGIN).ok_or_else(site)?.to_ascii_lowercase();
            let ours = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if ours != Some(host.as_str()) {
                return Err(site());
            }
        }
        if request.headers.contains_key(SEC_FETCH_SITE) {
            match only(&request.headers, &SEC_FETCH_SITE) {
                Some("same-origin" | "none") => {}
                _ => return Err(site()),
            }
        }
        Ok(())
    }

    /// Refuses a request without the token or the cookie.
    pub(crate) fn check_token(&self, request: &Parts) -> Result<(), Problem> {
        if let Some(given) = only(&request.headers, &AUTHORIZATION) {
            let token = given.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            return match token.is_some_and(|(_, token)| self.is_token(token.trim())) {
                true => Ok(()),
                false => Err(unauthorized("invalid token")),
            };
        }
        let cookies = request.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let ours = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut given = ours.filter(|(name, _)| *name == self.cookie_name).peekable();
        if given.peek().is_none() {
            return Err(unauthorized("missing token"));
        }
        // Hashes are compared in constant time.
        let expected = blake3::hash(self.cookie_value.as_bytes());
        if !given.any(|(_, value)| blake3::hash(value.as_bytes()) == expected) {
            return Err(unauthorized("this session has ended"));
        }
        // A browser says where a request that changes something comes from; a form of an old browser may not.
        let reads = matches!(request.method, Method::GET | Method::HEAD);
        let known = request.headers.contains_key(ORIGIN) || request.headers.contains_key(SEC_FETCH_SITE);
        match reads || known {
            true => Ok(()),
            false => Err(Problem::new(StatusCode::FORBIDDEN, "missing Origin or Sec-Fetch-Site header")),
        }
    }

    /// Lets a browser in once with a code that is not the token.
    pub(crate) fn allow_once(&self, code: &str) {
        *self.once.lock() = Some(blake3::hash(code.as_bytes()));
    }

    /// Whether this may be exchanged for a cookie: the token, or the code that is used up by that.
    pub(crate) fn can_exchange(&self, given: &str) -> bool {
        let given_hash = blake3::hash(given.as_bytes());
        self.is_token(given) || self.once.lock().take_if(|code| *code == given_hash).is_some()
    }

    /// Whether this is the server's token.
    fn is_token(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == self.token
    }

    /// Header value that sets the cookie.
    pub(crate) fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name, self.cookie_value)
    }
}

/// Refuses settings that would let other machines in by accident.
pub(crate) fn check_address(
    address: SocketAddr,
    own_token: bool,
    allow_hosts: &[String],
) -> Result<(), AccessError> {
    match address.ip().is_loopback() || (own_token && !allow_hosts.is_empty()) {
        true => Ok(()),
        false => Err(AccessError::NotLoopback(address)),
    }
}

/// Answer to a wrong or missing token.
pub(crate) fn unauthorized(message: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, message).help(OPEN_THE_URL)
}

/// The value of a header that was sent exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}
