//! The subset of JSON-RPC that is needed: outgoing requests, incoming responses, and replies to server
//! requests.

use serde_json::{Value, json};

/// A message from a server.
#[derive(Debug, PartialEq)]
pub(super) enum IncomingMessage {
    /// The response to the request with this id.
    Answer(u64, Result<Value, RpcError>),
    /// A request from the server, as the reply to send.
    Asked(Value),
    /// A notification; all are ignored.
    Notification,
}

/// A JSON-RPC error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
}

/// Builds a request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Builds a notification.
pub(super) fn notice(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

/// Parses a message; `None` if it is not valid JSON-RPC 2.0.
pub(super) fn read(text: &[u8]) -> Option<IncomingMessage> {
    let message: Value = serde_json::from_slice(text).ok()?;
    (message.get("jsonrpc")?.as_str()? == "2.0").then(|| parse(message)).flatten()
}

fn parse(mut message: Value) -> Option<IncomingMessage> {
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        let Some(id) = message.get("id") else { return Some(IncomingMessage::Notification) };
        // Reply to the requests every client must support; no other capability was announced.
        return Some(IncomingMessage::Asked(match method {
            "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
            "roots/list" => json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } }),
            _ => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "not offered by this client" } })
            }
        }));
    }
    let id = message.get("id")?.as_u64()?;
    if let Some(error) = message.get("error") {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let words = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Some(IncomingMessage::Answer(id, Err(RpcError { code, message: words.to_owned() })));
    }
    Some(IncomingMessage::Answer(id, Ok(message.get_mut("result").map(Value::take).unwrap_or_default())))
}

#[cfg(test)]
mod tests;
