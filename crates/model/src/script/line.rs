//! Parses one line of a script or cassette. [`super::play`] plays it.

use regex::Regex;
use serde_json::Value;

use super::spanned_json::{FieldError, elements, fields, kind_of};
use crate::{
    ErrorKind, Message, ModelError, Reasoning, Reply, StopReason, ToolCall, Usage, error_classifier,
};

/// Which fields a line may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFields {
    /// Hand-written scripts.
    Script,
    /// The same without `match`, plus fields that only a real server provides.
    Cassette,
}

const SCRIPT: &[&str] =
    &["text", "reasoning", "tool_calls", "usage", "stop", "error", "cut_after", "delay_ms", "match"];
const CASSETTE: &[&str] = &[
    "request",
    "text",
    "reasoning",
    "opaque",
    "tool_calls",
    "usage",
    "stop",
    "error",
    "cut_after",
    "delay_ms",
];
const CALL: &[&str] = &["id", "name", "arguments"];
const USAGE: &[&str] = &["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"];
const SCRIPT_ERROR: &[&str] = &["status", "retry_after", "message"];
const CASSETTE_ERROR: &[&str] = &["kind", "status", "retry_after", "message"];
const REQUEST: &[&str] = &["hash", "messages", "last", "added"];

/// A reply to be played.
#[derive(Debug)]
pub(crate) struct ScriptLine {
    /// Line number, from 1.
    pub(crate) number: usize,
    /// Answers only requests whose last message matches.
    pub(crate) pattern: Option<Regex>,
    /// Preferred for the request with this hash.
    pub(crate) hash: Option<String>,
    /// Messages the recorded request added to the conversation, compared with the current request.
    pub(crate) added: Option<Vec<Message>>,
    pub(crate) delay_ms: u64,
    pub(crate) reply: Reply,
    /// Cuts the stream after this many characters of the text.
    pub(crate) cut_after: Option<usize>,
    /// Fails with this error after the text.
    pub(crate) error: Option<ModelError>,
}

impl ScriptLine {
    /// Parses one line. All problems are added to `faults`.
    pub(crate) fn parse(
        text: &str,
        number: usize,
        vocabulary: LineFields,
        faults: &mut Vec<FieldError>,
    ) -> Option<ScriptLine> {
        let before = faults.len();
        let mut line = ScriptLine {
            number,
            pattern: None,
            hash: None,
            added: None,
            delay_ms: 0,
            reply: Reply { source_line: Some(number), ..Reply::default() },
            cut_after: None,
            error: None,
        };
        let mut reasoning = Reasoning::default();
        let mut stop = None;
        let allowed = if vocabulary == LineFields::Script { SCRIPT } else { CASSETTE };
        for field in fields(text, 0, allowed, faults) {
            match field.key.as_ref() {
                "text" => line.reply.text = field.read("a string", faults).unwrap_or_default(),
                "reasoning" => reasoning.text = field.read("a string", faults).unwrap_or_default(),
                "opaque" => reasoning.opaque = field.read("a list", faults).unwrap_or_default(),
                "tool_calls" => {
                    for (index, (call, at)) in
                        elements(field.value, field.value_at, faults).into_iter().enumerate()
                    {
                        line.reply.tool_calls.extend(parse_call(call, at, number, index, faults));
                    }
                }
                "usage" => line.reply.usage = Some(parse_usage(field.value, field.value_at, faults)),
                "stop" => stop = field.read::<StopReason>("a string", faults),
                "error" => {
                    line.error = Some(parse_error(field.value, field.value_at, number, vocabulary, faults));
                }
                "cut_after" => line.cut_after = field.read("a number of characters", faults),
                "delay_ms" => line.delay_ms = field.read("a number of milliseconds", faults).unwrap_or(0),
                "match" => {
                    let pattern: String = field.read("a regular expression", faults).unwrap_or_default();
                    match Regex::new(&pattern) {
                        Ok(regex) => line.pattern = Some(regex),
                        Err(error) => faults.push(FieldError::new(field.value_at, regex_fault(&error))),
                    }
                }
                "request" => {
                    for field in fields(field.value, field.value_at, REQUEST, faults) {
                        if field.key == "hash" {
                            line.hash = field.read("a string", faults);
                        } else if field.key == "added" {
                            line.added = field.read("a list of messages", faults);
                        }
                    }
                }
                _ => {}
            }
        }
        line.reply.reasoning = (reasoning != Reasoning::default()).then_some(reasoning);
        line.reply.stop = stop.unwrap_or(match line.reply.tool_calls.is_empty() {
            true => StopReason::End,
            false => StopReason::ToolCalls,
        });
        (faults.len() == before).then_some(line)
    }
}

fn parse_call(
    text: &str,
    at: usize,
    number: usize,
    index: usize,
    faults: &mut Vec<FieldError>,
) -> Option<ToolCall> {
    let before = faults.len();
    let mut call =
        ToolCall { id: format!("call_{number}_{index}"), name: String::new(), arguments: "{}".into() };
    for field in fields(text, at, CALL, faults) {
        match field.key.as_ref() {
            "id" => call.id = field.read("a string", faults)?,
            "name" => call.name = field.read("a string", faults)?,
            // A string is used verbatim, so that malformed arguments can be tested.
            "arguments" if field.value.starts_with('"') => {
                call.arguments = field.read("a string", faults)?;
            }
            "arguments" if field.value.starts_with('{') => call.arguments = compact(field.value),
            _ => {
                let message =
                    format!("`arguments` must be an object or a string, not {}", kind_of(field.value));
                faults.push(FieldError::new(field.value_at, message));
            }
        }
    }
    if call.name.is_empty() && faults.len() == before {
        faults.push(FieldError::new(at, "a tool call needs a `name`"));
    }
    Some(call)
}

fn parse_usage(text: &str, at: usize, faults: &mut Vec<FieldError>) -> Usage {
    let mut usage = Usage::default();
    for field in fields(text, at, USAGE, faults) {
        let tokens = field.read("a number of tokens", faults).unwrap_or(0);
        match field.key.as_ref() {
            "input_tokens" => usage.input_tokens = tokens,
            "output_tokens" => usage.output_tokens = tokens,
            "cached_tokens" => usage.cached_tokens = tokens,
            _ => usage.reasoning_tokens = tokens,
        }
    }
    usage
}

fn parse_error(
    text: &str,
    at: usize,
    number: usize,
    vocabulary: LineFields,
    faults: &mut Vec<FieldError>,
) -> ModelError {
    let (mut status, mut retry_after, mut message, mut kind) = (None, None, String::new(), None);
    let allowed = if vocabulary == LineFields::Script { SCRIPT_ERROR } else { CASSETTE_ERROR };
    for field in fields(text, at, allowed, faults) {
        match field.key.as_ref() {
            "status" => {
                status = field.read::<u16>("an HTTP status", faults);
                if status.is_some_and(|status| !(300..600).contains(&status)) {
                    faults.push(FieldError::new(field.value_at, "`status` must be between 300 and 599"));
                }
            }
            "retry_after" => {
                retry_after = field.read::<f64>("a number of seconds", faults);
                if retry_after.is_some_and(|seconds| seconds < 0.0) {
                    faults.push(FieldError::new(field.value_at, "`retry_after` must not be negative"));
                }
            }
            "message" => message = field.read("a string", faults).unwrap_or_default(),
            _ => kind = field.read::<ErrorKind>("a kind of error", faults),
        }
    }
    let retry_after_ms = retry_after.map(|seconds| (seconds * 1_000.0).round() as u64);
    // Classified like a server's response, so that a script can use the messages of real servers.
    let body = Value::from(message.as_str()).to_string();
    let read = error_classifier::in_response(status.unwrap_or(500), retry_after_ms, &body);
    ModelError {
        kind: kind.unwrap_or(read.kind),
        status,
        message: if message.is_empty() { read.message } else { message },
        retry_after_ms,
        source_line: Some(number),
    }
}

/// The text of an object without white space between its parts, with the keys in order.
fn compact(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}

fn regex_fault(error: &regex::Error) -> String {
    let message = error.to_string();
    let last = message.lines().last().unwrap_or_default().trim();
    format!("`match` is not a regular expression: {}", last.trim_start_matches("error: "))
}
