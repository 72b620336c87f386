//! The messages of JSON-RPC as far as they are needed: requests out, answers in, and what a server asks in between.

use serde_json::{Value, json};

/// A message from a server.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// The answer to a request of ours.
    Answer(u64, Result<Value, Refusal>),
    /// A request of the server's; this is the answer to it.
    Asked(Value),
    /// Something it tells, which nobody here needs.
    Told,
}

/// A server that does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

/// Our request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Something we tell.
pub(super) fn notice(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

/// Reads a message; `None` is none.
pub(super) fn read(text: &[u8]) -> Option<Incoming> {
    let message: Value = serde_json::from_slice(text).ok()?;
    (message.get("jsonrpc")?.as_str()? == "2.0").then(|| understand(message)).flatten()
}

fn understand(mut message: Value) -> Option<Incoming> {
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        let Some(id) = message.get("id") else { return Some(Incoming::Told) };
        // Answers to those that every client must answer; we offered nothing else.
        return Some(Incoming::Asked(match method {
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
        return Some(Incoming::Answer(id, Err(Refusal { code, message: words.to_owned() })));
    }
    Some(Incoming::Answer(id, Ok(message.get_mut("result").map(Value::take).unwrap_or_default())))
}

#[cfg(test)]
mod tests;
