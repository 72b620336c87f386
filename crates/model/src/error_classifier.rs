//! Classifies a server's error response: extracts the message from the common shapes of error bodies and
//! derives the kind of error. The phrases are data, in `error_phrases`.

mod error_phrases;

use serde_json::Value;

use crate::error::excerpt;
use crate::{ErrorKind, ModelError};

/// Maximum length of a message; some servers echo the entire request.
const MAX_MESSAGE: usize = 1_000;

/// The error for a response with this status and body.
pub fn in_response(status: u16, retry_after_ms: Option<u64>, body: &str) -> ModelError {
    let said = ErrorBody::read(body);
    let retry_after_ms = retry_after_ms.or_else(|| said.retry_after_hint_ms());
    let message =
        if said.message.is_empty() { status_words(status).to_owned() } else { said.message.clone() };
    ModelError {
        kind: kind(status, &said, retry_after_ms),
        status: Some(status),
        message,
        retry_after_ms,
        source_line: None,
    }
}

/// The error inside a reply that started successfully, or `None` if `text` contains no error.
pub fn in_reply(text: &str) -> Option<ModelError> {
    let said = ErrorBody::read(text);
    if !said.structured {
        return None;
    }
    let retry_after_ms = said.retry_after_hint_ms();
    // The request was accepted, so without a status the server is at fault.
    let status = said.status.filter(|status| (400..600).contains(status));
    let message =
        if said.message.is_empty() { "the server reported an error".into() } else { said.message.clone() };
    Some(ModelError {
        kind: kind(status.unwrap_or(500), &said, retry_after_ms),
        status,
        message,
        retry_after_ms,
        source_line: None,
    })
}

/// Contents of an error body.
#[derive(Debug, Default)]
struct ErrorBody {
    /// Whether the body was JSON in one of the known shapes.
    structured: bool,
    message: String,
    /// `code`, `type` and `status`, lower-case, separated by spaces.
    code: String,
    status: Option<u16>,
}

impl ErrorBody {
    fn read(body: &str) -> ErrorBody {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => ErrorBody::from_json(&value),
            Err(_) => ErrorBody { message: plain_words(body), ..ErrorBody::default() },
        }
    }

    fn from_json(value: &Value) -> ErrorBody {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = match &value["error"] {
            error @ Value::Object(_) => error,
            _ => value,
        };
        let message = message_of(error).or_else(|| message_of(value)).unwrap_or_default();
        // OpenRouter wraps the message of the upstream provider.
        let behind = error["metadata"]["raw"].as_str().map(|raw| ErrorBody::read(raw).message);
        let message = match behind {
            Some(behind) if !behind.is_empty() && !message.contains(&behind) => {
                format!("{message}: {behind}")
            }
            _ => message,
        };
        // llama.cpp states the size beside its message.
        let message = match error["n_ctx"].as_u64().filter(|size| !message.contains(&size.to_string())) {
            Some(size) => format!("{message} (context size {size})"),
            None => message,
        };
        let word = |key: &str| error[key].as_str().unwrap_or_default().to_lowercase();
        let status = ["code", "status", "status_code"].into_iter().find_map(|key| {
            let number = error[key].as_u64().or_else(|| error[key].as_str()?.parse().ok())?;
            u16::try_from(number).ok()
        });
        ErrorBody {
            structured: value.is_object(),
            message: excerpt(&message, MAX_MESSAGE),
            code: format!("{} {} {}", word("code"), word("type"), word("status")),
            status,
        }
    }

    /// Delay stated only in the message: "Please try again in 6.2s", "retry in 12s", "in 340ms".
    fn retry_after_hint_ms(&self) -> Option<u64> {
        let lower = self.message.to_lowercase();
        let (_, after) = ["try again in ", "retry in ", "retry after "]
            .iter()
            .find_map(|words| lower.split_once(words))?;
        let digits = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
        let amount: f64 = after[..digits].trim_end_matches('.').parse().ok()?;
        let unit = after[digits..].trim_start();
        let ms = if unit.starts_with("ms") || unit.starts_with("milli") {
            amount
        } else if unit.starts_with('m') && !unit.starts_with("mo") {
            amount * 60_000.0
        } else if unit.starts_with('s') || unit.is_empty() {
            amount * 1_000.0
        } else {
            return None;
        };
        Some(ms as u64)
    }
}

fn kind(status: u16, said: &ErrorBody, retry_after_ms: Option<u64>) -> ErrorKind {
    let lower = said.message.to_lowercase();
    let says =
        |table: &[error_phrases::ErrorPhrase]| table.iter().any(|wording| wording.is_in(&lower, &said.code));
    match status {
        401 => ErrorKind::Auth,
        402 => ErrorKind::Quota,
        _ if says(error_phrases::OVERFLOW) => ErrorKind::Overflow,
        _ if says(error_phrases::QUOTA) => ErrorKind::Quota,
        // Some providers use the same phrase for a per-minute limit, but then they state when to retry.
        _ if says(error_phrases::QUOTA_UNLESS_TIMED) && retry_after_ms.is_none() => ErrorKind::Quota,
        _ if says(error_phrases::AUTH) => ErrorKind::Auth,
        403 => ErrorKind::Auth,
        503 if says(error_phrases::LOADING) => ErrorKind::Loading,
        _ if says(error_phrases::RATE_LIMITED) => ErrorKind::RateLimited,
        408 => ErrorKind::Timeout,
        425 | 429 => ErrorKind::RateLimited,
        409 | 500.. => ErrorKind::Server,
        _ if says(error_phrases::OVERLOADED) => ErrorKind::Server,
        _ => ErrorKind::Invalid,
    }
}

fn message_of(value: &Value) -> Option<String> {
    if let Some(words) = value.as_str() {
        return Some(words.to_owned());
    }
    for key in ["message", "error", "detail", "msg", "error_description", "errors"] {
        match &value[key] {
            Value::String(words) if !words.is_empty() => return Some(words.clone()),
            // FastAPI and others: a list of errors.
            Value::Array(list) if !list.is_empty() => {
                let words: Vec<_> = list.iter().filter_map(message_of).collect();
                return Some(words.join("; "));
            }
            inner @ Value::Object(_) => return message_of(inner),
            _ => {}
        }
    }
    None
}

/// Text of a body that is not JSON; for a web page, its title.
fn plain_words(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let end = lower[start..].find("</title>")? + start;
        body.get(start + "<title>".len()..end)
    });
    excerpt(title.unwrap_or(body), 300)
}

fn status_words(status: u16) -> &'static str {
    match status {
        300..=399 => "the server redirects to another address; use that one as the base URL",
        401 => "the server requires an API key, or rejects the given one",
        403 => "the server denies access",
        404 => "nothing found at this address; check the base URL and the model name",
        407 => "the proxy requires a user name and a password; put them into its address",
        408 => "the server timed out waiting for the request",
        413 => "the request is too large for the server",
        429 => "too many requests",
        500 => "the server failed",
        502 => "a proxy got no response from the server",
        503 => "the server is unavailable",
        504 => "a proxy timed out waiting for the server",
        529 => "the server is overloaded",
        _ => "the server rejected the request without giving a reason",
    }
}

#[cfg(test)]
mod tests;
