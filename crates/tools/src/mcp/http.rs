//! Streamable HTTP transport of MCP. Every request is a POST; the response arrives as JSON or as an event
//! stream that contains it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;

use super::client::RequestFailure;
use super::jsonrpc::{self, IncomingMessage};

/// Maximum size of a response.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of an error response's body included in the error.
const MAX_SHOWN: usize = 300;

/// Maximum time for ending a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A session with a server.
#[derive(Debug)]
pub(super) struct HttpSession {
    client: Client,
    url: String,
    headers: HeaderMap,
    session: Mutex<Option<HeaderValue>>,
    /// The revision that the server has chosen.
    revision: Mutex<Option<&'static str>>,
    next: AtomicU64,
}

impl HttpSession {
    pub(super) fn new(
        url: &str,
        given: &[(String, String)],
        client: &Client,
    ) -> Result<Self, RequestFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for (name, value) in given {
            let wrong = || RequestFailure::Gone(format!("the header `{name}` cannot be sent"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let (session, revision, next) = (Mutex::new(None), Mutex::new(None), AtomicU64::new(1));
        Ok(Self { client: client.clone(), url: url.to_owned(), headers, session, revision, next })
    }

    /// Names the revision in every further request.
    pub(super) fn set_revision(&self, revision: &'static str) {
        *self.revision.lock() = Some(revision);
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Value, RequestFailure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let exchange = async {
            let response = self.post(&jsonrpc::request(id, method, params)).await?;
            if let Some(session) = response.headers().get(SESSION) {
                *self.session.lock() = Some(session.clone());
            }
            self.answer(response, id).await
        };
        tokio::time::timeout(limit, exchange).await.unwrap_or(Err(RequestFailure::Silent(limit)))
    }

    pub(super) async fn notify(&self, method: &str) -> Result<(), RequestFailure> {
        self.post(&jsonrpc::notice(method)).await.map(drop)
    }

    async fn post(&self, message: &Value) -> Result<Response, RequestFailure> {
        let mut headers = self.headers.clone();
        let session = self.session.lock().clone();
        let had_session = session.is_some();
        headers.extend(session.map(|session| (SESSION, session)));
        let revision = *self.revision.lock();
        headers.extend(revision.map(|revision| (VERSION, HeaderValue::from_static(revision))));
        let request = self.client.post(&self.url).headers(headers).body(message.to_string());
        let mut response = request.send().await.map_err(|error| {
            RequestFailure::Gone(format!("{} cannot be reached: {}", self.url, root(&error)))
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(RequestFailure::Gone("it has forgotten the session".to_owned()));
        }
        let body = response.chunk().await.ok().flatten().unwrap_or_default();
        let shown = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN)]).trim().to_owned();
        Err(RequestFailure::Gone(format!("{} answered {status}: {shown}", self.url)))
    }

    /// Reads the response until the answer to this request arrives.
    async fn answer(&self, mut response: Response, id: u64) -> Result<Value, RequestFailure> {
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let streamed = kind.starts_with("text/event-stream");
        let (mut text, mut total) = (Vec::new(), 0);
        loop {
            let chunk = response.chunk().await;
            let chunk = chunk
                .map_err(|error| RequestFailure::Gone(format!("the answer broke off: {}", root(&error))))?;
            let Some(chunk) = chunk else { break };
            total += chunk.len();
            if total > MAX_BYTES {
                return Err(RequestFailure::Gone(format!("its answer has more than {MAX_BYTES} bytes")));
            }
            text.extend_from_slice(&chunk);
            if streamed && let Some(answer) = self.events(&mut text, id).await {
                return answer;
            }
        }
        if streamed {
            // The last event may be terminated by the end of the stream.
            text.extend_from_slice(b"\n\n");
            if let Some(answer) = self.events(&mut text, id).await {
                return answer;
            }
        } else if let Some(IncomingMessage::Answer(known, answer)) = jsonrpc::read(&text)
            && known == id
        {
            return answer.map_err(RequestFailure::Refused);
        }
        Err(RequestFailure::Gone("it gave no answer".to_owned()))
    }

    /// Consumes complete events from the front of `text`; returns the answer to this request if one contains
    /// it.
    async fn events(&self, text: &mut Vec<u8>, id: u64) -> Option<Result<Value, RequestFailure>> {
        while let Some((end, next)) = event_end(text) {
            let event: Vec<u8> = text.drain(..next).take(end).collect();
            match jsonrpc::read(&data(&event)) {
                Some(IncomingMessage::Answer(known, answer)) if known == id => {
                    return Some(answer.map_err(RequestFailure::Refused));
                }
                Some(IncomingMessage::Asked(answer)) => {
                    // Best effort: a server whose request goes unanswered has to cope with that.
                    let _ = self.post(&answer).await;
                }
                _ => {}
            }
        }
        None
    }
}

impl Drop for HttpSession {
    /// Ends the session on the server, if there is time for it.
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) =
            (self.session.get_mut().take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let mut headers = std::mem::take(&mut self.headers);
        headers.insert(SESSION, session);
        let revision = self.revision.get_mut().take();
        headers.extend(revision.map(|revision| (VERSION, HeaderValue::from_static(revision))));
        let request = self.client.delete(&self.url).headers(headers).timeout(CLOSE_TIMEOUT);
        // A server may refuse to end sessions; nothing depends on it.
        runtime.spawn(async move { drop(request.send().await) });
    }
}

/// Returns the end of the first event and the start of the next.
fn event_end(text: &[u8]) -> Option<(usize, usize)> {
    let at = |mark: &[u8]| memchr::memmem::find(text, mark).map(|at| (at, at + mark.len()));
    [at(b"\n\n"), at(b"\r\n\r\n")].into_iter().flatten().min()
}

/// The payload of an event: its `data:` lines, joined.
fn data(event: &[u8]) -> Vec<u8> {
    let lines = event.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    data.map(|data| data.strip_prefix(b" ").unwrap_or(data)).collect::<Vec<_>>().join(&b'\n')
}

/// The innermost cause; reqwest's outer errors do not describe what happened.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
