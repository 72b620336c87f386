//! Models behind HTTP: transfers bytes between a conversation and a server. [`crate::wire::stream`] decodes them,
//! [`crate::error_classifier`] classifies error responses; `endpoint` connects, `rate_gate` limits the rate, `context_size`
//! queries the context size.

mod context_size;
pub(crate) mod endpoint;
pub(crate) mod list_models;
mod rate_gate;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use reqwest::header::{CONTENT_ENCODING, DATE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Body, Response};
use tokio::time::{Instant, timeout, timeout_at};

use self::endpoint::Endpoint;
use crate::schema_calls::{AddedMessages, SchemaRequest};
use crate::wire::stream::{Decoder, DeltaSink, ReplyProgress};
use crate::{
    BoxFuture, CancellationToken, Conversation, Dialect, ErrorKind, Model, ModelError, Reply, ReplyDelta,
    RequestOptions, call_protocol, error_classifier, retry,
};

/// Limits in bytes and time for reading the body of an error response.
const MAX_REFUSAL: usize = 64 << 10;
const REFUSAL_TIME: Duration = Duration::from_secs(10);
/// Comments and pings, which a server sends while it is busy, extend the time limit at most this many times.
const PINGS: u32 = 4;
/// After the model has stopped, usage figures follow immediately or not at all.
const TRAILER_TIME: Duration = Duration::from_secs(5);
/// A finished response is drained in the background for this long, so that its connection can be reused.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Client for an address other than a model's, with the same TLS, proxy and timeout settings.
pub fn http_client(url: &str, settings: &crate::Connection) -> Result<reqwest::Client, crate::OpenError> {
    endpoint::client_for(url, settings)
}

/// Client with the same settings that connects to the host of `url` at these addresses only.
pub fn http_client_at(
    url: &reqwest::Url,
    addresses: &[std::net::SocketAddr],
    settings: &crate::Connection,
) -> Result<reqwest::Client, crate::OpenError> {
    endpoint::client_at(url, addresses, settings)
}

/// A model on an HTTP server.
pub struct HttpModel {
    name: String,
    /// Model id on the server.
    id: String,
    dialect: Dialect,
    endpoint: Arc<Endpoint>,
    /// Context size reported by the server; `None` until queried.
    context: tokio::sync::Mutex<Option<Option<u64>>>,
}

impl HttpModel {
    pub(crate) fn new(name: &str, id: &str, dialect: Dialect, endpoint: Arc<Endpoint>) -> Self {
        let context = tokio::sync::Mutex::default();
        HttpModel { name: name.to_owned(), id: id.to_owned(), dialect, endpoint, context }
    }

    async fn request(
        &self,
        conversation: &Conversation,
        more: Option<AddedMessages<'_>>,
        options: &RequestOptions,
        sink: &mut DeltaSink<'_>,
    ) -> Result<Reply, ModelError> {
        self.endpoint.gate.pass(sink).await;
        let id = if options.model.is_empty() { &self.id } else { &options.model };
        let body = conversation.body_with(more, id, options);
        let first = self.endpoint.prompt_silence(body.len());
        let request = self.endpoint.post(self.dialect.wire.path()).body(Body::wrap(body));
        let response = match timeout(first, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.endpoint.unsent(&error)),
            Err(_) => return Err(self.silence(first)),
        };
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let reply = self.reply(response, first, conversation.messages().len(), sink).await;
        reply.map_err(|error| self.endpoint.redact_error(error))
    }

    async fn reply(
        &self,
        mut response: Response,
        first: Duration,
        seed: usize,
        sink: &mut DeltaSink<'_>,
    ) -> Result<Reply, ModelError> {
        let coding = response.headers().get(CONTENT_ENCODING).filter(|coding| *coding != "identity");
        if let Some(coding) = coding {
            let message = format!("the reply is compressed ({coding:?}), which was not requested");
            return Err(ModelError::new(ErrorKind::Protocol, message));
        }
        let sink: &mut DeltaSink<'_> = &mut |delta| self.endpoint.redact_delta(delta, sink);
        let mut decoder = Decoder::new(self.dialect.wire, seed);
        let mut progress = ReplyProgress::Open;
        let mut started = false;
        let silence = self.endpoint.silence;
        let (mut byte_limit, mut data_limit) =
            (Instant::now() + first, Instant::now() + first.max(silence * PINGS));
        while progress != ReplyProgress::Done {
            match timeout_at(byte_limit.min(data_limit), response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    if !std::mem::replace(&mut started, true) {
                        sink(ReplyDelta::Started);
                    }
                    let (was, received) = (progress, decoder.received());
                    progress = decoder.feed(&bytes, sink)?;
                    byte_limit = Instant::now() + silence;
                    match (was, progress) {
                        (ReplyProgress::Open, ReplyProgress::Open) if decoder.received() > received => {
                            data_limit = Instant::now() + silence * PINGS;
                        }
                        // Nothing extends the time for the trailer.
                        (ReplyProgress::Open, ReplyProgress::Stopped) => {
                            data_limit = Instant::now() + TRAILER_TIME.min(silence)
                        }
                        _ => {}
                    }
                }
                Ok(Ok(None)) => break,
                // The model had stopped: the reply is complete, only the usage figures may be missing.
                _ if progress == ReplyProgress::Stopped => break,
                Ok(Err(error)) => {
                    let message = format!("the reply ended prematurely: {}", root_cause(&error));
                    return Err(ModelError::new(ErrorKind::Cut, message));
                }
                Err(_) => return Err(self.silence(if started { silence } else { first })),
            }
        }
        if progress == ReplyProgress::Done {
            drain(response);
        }
        decoder.finish(sink).map(|reply| self.endpoint.redact_reply(reply))
    }

    async fn refusal(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let retry_after_ms = self.retry_after(response.headers());
        let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).map(str::to_owned);
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(bytes)) = response.chunk().await {
                let room = MAX_REFUSAL - body.len();
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if body.len() == MAX_REFUSAL {
                    break;
                }
            }
        };
        // Whatever arrived until the timeout is enough to classify the error.
        let _ = timeout(REFUSAL_TIME.min(self.endpoint.silence), reading).await;
        let mut error =
            error_classifier::in_response(status, retry_after_ms, &String::from_utf8_lossy(&body));
        if let Some(to) = location {
            error.message = format!("{} ({to})", error.message);
        }
        error.message = self.endpoint.redact(&error.message);
        if error.kind == ErrorKind::Loading {
            // The answer about the context size was meaningless while the model was loading.
            *self.context.lock().await = None;
        }
        if let (Some(ms @ ..=retry::MAX_RETRY_AFTER_MS), true) =
            (error.retry_after_ms, error.kind.retriable())
        {
            self.endpoint.gate.hold(Duration::from_millis(ms));
        }
        error
    }

    fn retry_after(&self, headers: &HeaderMap) -> Option<u64> {
        let text = |value: &reqwest::header::HeaderValue| value.to_str().ok().map(str::to_owned);
        let exact = headers.get("retry-after-ms").and_then(text).and_then(|ms| ms.trim().parse::<f64>().ok());
        if let Some(ms) = exact.filter(|ms| ms.is_finite() && *ms >= 0.0) {
            return Some(ms as u64);
        }
        let asked = headers.get(RETRY_AFTER).and_then(text)?;
        // A date refers to the server's clock, so prefer its own `Date` header.
        let theirs = headers.get(DATE).and_then(text).and_then(|date| retry::http_date(&date));
        retry::retry_after_ms(&asked, theirs.map_or_else(self.endpoint.clock, Into::into))
    }

    fn silence(&self, limit: Duration) -> ModelError {
        let message = format!("{} sent nothing for {} s", self.endpoint.shown, limit.as_secs_f64());
        ModelError::new(ErrorKind::Silence, message)
    }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::cancelled()),
                outcome = call_protocol::attempt(self, self.dialect, conversation, options, sink) => outcome,
            }
        })
    }

    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async {
            let mut known = self.context.lock().await;
            if known.is_none() {
                *known = Some(context_size::ask(&self.endpoint, &self.id).await);
            }
            known.flatten()
        })
    }

    fn parameters<'a>(&'a self) -> BoxFuture<'a, Option<f64>> {
        Box::pin(context_size::parameters(&self.endpoint, &self.id))
    }

    fn slots<'a>(&'a self) -> BoxFuture<'a, Option<u32>> {
        Box::pin(context_size::slots(&self.endpoint))
    }
}

impl SchemaRequest for HttpModel {
    fn exchange<'a>(
        &'a self,
        conversation: &'a Conversation,
        more: Option<AddedMessages<'a>>,
        options: &'a RequestOptions,
        sink: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(self.request(conversation, more, options, sink))
    }
}

/// Drains a finished response: immediately if the data is there, otherwise in the background for a while.
fn drain(mut response: Response) {
    let mut rest = Box::pin(async move { while let Ok(Some(_)) = response.chunk().await {} });
    if rest.as_mut().now_or_never().is_none() {
        tokio::spawn(timeout(DRAIN_TIME, rest));
    }
}

/// The innermost cause of an error, which is the informative one.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match error.source() {
        // The outermost message would contain the address, which may include a password.
        None => "the request failed".to_owned(),
        Some(_) => cause.to_string(),
    }
}

#[cfg(test)]
mod tests;
