//! Generates what hostile servers send: texts, JSON values, and damaged copies of valid messages.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::arena::KEY;

/// Texts that broke something, somewhere.
const TEXTS: [&str; 22] = [
    "",
    "Done.",
    "\u{0}",
    "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J",
    "\u{202e}txt.exe",
    "\u{feff}{}",
    "```json\n{\"name\":\"shell\"}\n```",
    "<tool_call>{\"name\":\"shell\",\"arguments\":{}}</tool_call>",
    "</think>",
    "[DONE]",
    "data: {\"choices\":[]}",
    "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "../../../etc/passwd",
    "/dev/zero",
    "{{1+1}}",
    "%s%n%x",
    "\\u0000",
    "'; DROP TABLE runs; --",
    "🧨🧨🧨",
    "a\u{300}\u{301}\u{302}",
    "length",
    "stop",
];

/// A text: ordinary, odd, very long, or the user's own key.
pub(crate) fn text(random: &mut Rng) -> String {
    match random.u8(0..10) {
        0 => KEY.to_owned(),
        1 => format!("Incorrect API key provided: {KEY}."),
        2 => TEXTS[random.usize(0..TEXTS.len())].repeat(random.usize(1..4000)),
        3 => (0..random.usize(0..60)).map(|_| random.char(..)).collect(),
        _ => TEXTS[random.usize(0..TEXTS.len())].to_owned(),
    }
}

/// A JSON value of any kind, often of a kind that nobody expects.
pub(crate) fn value(random: &mut Rng, depth: usize) -> Value {
    match random.u8(0..12) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 => json!(random.i64(..)),
        3 => json!(u64::MAX),
        4 => json!(1e308),
        5 => json!(-0.0),
        6 if depth > 0 => (0..random.usize(0..4)).map(|_| value(random, depth - 1)).collect(),
        7 if depth > 0 => {
            let names =
                ["id", "type", "content", "name", "arguments", "index", "usage", "error", "tool_calls"];
            let fields = (0..random.usize(0..4))
                .map(|_| (names[random.usize(0..names.len())].to_owned(), value(random, depth - 1)));
            Value::Object(fields.collect())
        }
        8 => (0..random.usize(0..300)).fold(json!(1), |inner, _| json!([inner])),
        _ => json!(text(random)),
    }
}

/// A message with some of its parts replaced, removed or repeated.
pub(crate) fn mutated(mut message: Value, random: &mut Rng) -> Value {
    for _ in 0..random.usize(0..3) {
        mutate(&mut message, random);
    }
    message
}

fn mutate(message: &mut Value, random: &mut Rng) {
    match message {
        Value::Object(fields) if !fields.is_empty() && random.u8(0..4) > 0 => {
            let name = fields.keys().nth(random.usize(0..fields.len())).cloned().unwrap_or_default();
            match random.u8(0..4) {
                0 => drop(fields.remove(&name)),
                1 => drop(fields.insert(name, value(random, 2))),
                _ => fields.get_mut(&name).into_iter().for_each(|inner| mutate(inner, random)),
            }
        }
        Value::Array(items) if !items.is_empty() && random.u8(0..4) > 0 => {
            let at = random.usize(0..items.len());
            match random.u8(0..4) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => mutate(&mut items[at], random),
            }
        }
        other => *other = value(random, 2),
    }
}

/// Bytes with some of them changed, removed or repeated.
pub(crate) fn corrupted(mut bytes: Vec<u8>, random: &mut Rng) -> Vec<u8> {
    for _ in 0..random.usize(0..4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.usize(0..bytes.len());
        let end = (at + random.usize(1..40)).min(bytes.len());
        match random.u8(0..5) {
            0 => bytes[at] = random.u8(..),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                let there = random.usize(0..bytes.len());
                bytes.splice(there..there, part);
            }
            3 => drop(bytes.splice(at..at, [0xff, 0xc0, 0x00])),
            _ => bytes.truncate(at),
        }
    }
    bytes
}
