//! HTTP requests of rmcp's streamable HTTP transport, with a bound on every response. rmcp does the rest: sessions,
//! protocol versions, event streams and their reconnection.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

/// Maximum bytes of a response in JSON, and of one event of a stream.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of an error response's body included in the error.
const MAX_SHOWN: usize = 300;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Why there is no usable response.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct HttpError {
    message: String,
    /// Whether the server could not be reached, or broke off.
    pub(super) is_unreachable: bool,
}

type Failure = StreamableHttpError<HttpError>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A reqwest client for rmcp.
#[derive(Clone, Debug)]
pub(super) struct HttpClient(pub(super) Client);

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let had_session = session.is_some();
        let headers = request_headers(headers, session, token, "application/json, text/event-stream")?;
        let request = self.0.post(&*uri).headers(headers).header(CONTENT_TYPE, "application/json");
        let response = send(&uri, request.body(serde_json::to_vec(&message)?)).await?;
        let status = response.status();
        let expects_answer = matches!(message, JsonRpcMessage::Request(_));
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_success() && !expects_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let session = header(SESSION).map(str::to_owned);
        if status.is_success()
            && header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"))
        {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        let body = read(&uri, response).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) if status.is_success() || matches!(answer, JsonRpcMessage::Error(_)) => {
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            _ => Err(answered(&uri, status, &body)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let headers = request_headers(headers, Some(session), token, "application/json")?;
        // A server may refuse to end sessions; nothing depends on it.
        send(&uri, self.0.delete(&*uri).headers(headers)).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut headers = request_headers(headers, session, token, "text/event-stream")?;
        if let Some(id) = last_event {
            headers.insert(LAST_EVENT, header_value(&id)?);
        }
        let response = send(&uri, self.0.get(&*uri).headers(headers)).await?;
        match response.status() {
            status if status.is_success() => Ok(events(response)),
            status if status.is_client_error() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(answered(&uri, status, b"")),
        }
    }
}

fn request_headers(
    given: Headers,
    session: Option<Arc<str>>,
    token: Option<String>,
    accept: &'static str,
) -> Result<HeaderMap, Failure> {
    let mut headers: HeaderMap = given.into_iter().collect();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    if let Some(session) = session {
        headers.insert(SESSION, header_value(&session)?);
    }
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, header_value(&format!("Bearer {token}"))?);
    }
    Ok(headers)
}

fn header_value(text: &str) -> Result<HeaderValue, Failure> {
    let wrong = |_| failure("a value that the server gave cannot be sent as a header".to_owned(), false);
    let mut value = HeaderValue::from_str(text).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Sends a request. A server that wants a login is an error.
async fn send(uri: &str, request: RequestBuilder) -> Result<Response, Failure> {
    let unreachable =
        |error: reqwest::Error| failure(format!("{uri} cannot be reached: {}", root(&error)), true);
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(response);
    }
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => {
            let challenge = challenge.unwrap_or("Bearer").to_owned();
            Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        (_, Some(challenge)) => {
            let challenge = challenge.to_owned();
            Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        (_, None) => Ok(response),
    }
}

/// Reads a response of at most [`MAX_BYTES`].
async fn read(uri: &str, mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        let broken = |error: reqwest::Error| failure(format!("the answer broke off: {}", root(&error)), true);
        let Some(chunk) = response.chunk().await.map_err(broken)? else { return Ok(body) };
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(failure(format!("the answer of {uri} has more than {MAX_BYTES} bytes"), true));
        }
        body.extend_from_slice(&chunk);
    }
}

/// The events of a response, each of at most [`MAX_BYTES`].
fn events(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let chunks = stream::try_unfold((response, 0), |(mut response, open)| async move {
        let chunk = response.chunk().await.map_err(|error| std::io::Error::other(root(&error)))?;
        let Some(chunk) = chunk else { return Ok(None) };
        let ended = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].map(|end| memchr::memmem::rfind(&chunk, end));
        let open = ended.into_iter().flatten().max().map_or(open + chunk.len(), |at| chunk.len() - at);
        if open > MAX_BYTES {
            return Err(std::io::Error::other(format!("an event has more than {MAX_BYTES} bytes")));
        }
        Ok(Some((chunk, (response, open))))
    });
    SseStream::from_bytes_stream(chunks).boxed()
}

fn answered(uri: &str, status: StatusCode, body: &[u8]) -> Failure {
    let shown = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN)]).trim().to_owned();
    failure(format!("{uri} answered {status}: {shown}"), false)
}

fn failure(message: String, is_unreachable: bool) -> Failure {
    StreamableHttpError::Client(HttpError { message, is_unreachable })
}

/// The innermost cause; reqwest's outer errors do not describe what happened.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
