//! JSON-RPC over a pair of streams, one message per line. Reading stops while the client does not read, so nothing
//! grows without bound.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol_schema::v1::Error;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Longest message; longer ones are dropped and answered with an error.
const MAX_LINE: usize = 32 << 20;
/// Messages that wait for the client to read.
const OUTBOX: usize = 256;
/// Requests to the client that wait for its answer.
const MAX_PENDING: usize = 256;

type Answer = Result<Value, Error>;

/// The connection to the client.
pub(crate) struct Connection {
    outbox: mpsc::Sender<String>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    next_id: AtomicU64,
}

/// A request of the client; a notification has no id.
pub(crate) struct Incoming {
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// A request that the client has not answered; dropping it withdraws it.
struct PendingRequest<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.connection.pending.lock().remove(&self.id).is_some() {
            let message = json!({
                "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": self.id },
            });
            // If the outbox is full the client sees the request answered elsewhere a little later.
            let _ = self.connection.outbox.try_send(message.to_string());
        }
    }
}

impl Connection {
    /// Opens a connection that writes to `output`. The handle ends when everything is written.
    pub(crate) fn open(output: impl AsyncWrite + Send + Unpin + 'static) -> (Arc<Self>, JoinHandle<()>) {
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let writer = tokio::spawn(write(output, messages));
        let (pending, next_id) = (Mutex::default(), AtomicU64::new(1));
        (Arc::new(Self { outbox, pending, next_id }), writer)
    }

    /// Takes in a line of the client. Answers to our requests are delivered; what is no message is reported.
    pub(crate) async fn receive(&self, line: &Line) -> Option<Incoming> {
        let wrong = match line {
            Line::TooLong => Error::invalid_request(),
            Line::Message(bytes) => match serde_json::from_slice(bytes) {
                Err(_) => Error::parse_error(),
                Ok(Value::Object(mut fields)) => {
                    let id = fields.remove("id").filter(|id| !id.is_null());
                    let params = fields.remove("params").unwrap_or_default();
                    match (id, fields.remove("method")) {
                        (id, Some(Value::String(method))) => return Some(Incoming { id, method, params }),
                        (Some(id), None) => {
                            self.answered(&id, fields.remove("result"), fields.remove("error"));
                            return None;
                        }
                        _ => Error::invalid_request(),
                    }
                }
                Ok(_) => Error::invalid_request(),
            },
        };
        self.respond(&Value::Null, Err(wrong)).await;
        None
    }

    /// Delivers the client's answer to a request. An unknown id is ignored.
    fn answered(&self, id: &Value, result: Option<Value>, error: Option<Value>) {
        let Some(sender) = id.as_u64().and_then(|id| self.pending.lock().remove(&id)) else { return };
        let answer = match error {
            Some(error) => Err(serde_json::from_value(error).unwrap_or_else(|_| Error::internal_error())),
            None => Ok(result.unwrap_or_default()),
        };
        // Whoever asked may be gone.
        let _ = sender.send(answer);
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request and waits for the answer. Dropping the future withdraws the request.
    pub(crate) async fn request<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, Error> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        {
            let mut pending = self.pending.lock();
            if pending.len() >= MAX_PENDING {
                return Err(failed("too many requests wait for the client"));
            }
            pending.insert(id, sender);
        }
        let _withdraw = PendingRequest { connection: self, id };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let value = answer.await.map_err(|_| failed("the client has gone"))??;
        serde_json::from_value(value).map_err(|error| failed(&error.to_string()))
    }

    /// Answers a request of the client.
    pub(crate) async fn respond(&self, id: &Value, answer: Result<Value, Error>) {
        let message = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        self.send(&message).await;
    }

    /// Fails all requests that wait for the client.
    pub(crate) fn close(&self) {
        self.pending.lock().clear();
    }

    async fn send(&self, message: &Value) {
        // Fails only if the client has closed its end; the end of its input follows.
        let _ = self.outbox.send(message.to_string()).await;
    }
}

/// An internal error with this text.
pub(crate) fn failed(message: &str) -> Error {
    let mut error = Error::internal_error();
    message.clone_into(&mut error.message);
    error
}

/// An error about the parameters of a request.
pub(crate) fn invalid(message: &str) -> Error {
    let mut error = Error::invalid_params();
    message.clone_into(&mut error.message);
    error
}

async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<String>) {
    while let Some(mut letter) = messages.recv().await {
        letter.push('\n');
        if output.write_all(letter.as_bytes()).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

/// A line of the client.
pub(crate) enum Line {
    Message(Vec<u8>),
    /// More than [`MAX_LINE`] bytes, which were dropped.
    TooLong,
}

/// Reads lines of bounded length.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::new(input) }
    }

    /// The next line that is not empty; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        let (mut line, mut too_long) = (Vec::new(), false);
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                // A message without its newline is incomplete.
                return Ok(None);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let length = newline.map_or(available.len(), |at| at + 1);
            too_long |= line.len() + length > MAX_LINE;
            if too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(&available[..length]);
            }
            self.input.consume(length);
            if newline.is_none() {
                continue;
            }
            if too_long {
                return Ok(Some(Line::TooLong));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(Line::Message(line)));
            }
            line.clear();
        }
    }
}
