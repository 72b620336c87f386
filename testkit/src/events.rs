//! Reads event streams and checks that every line fits the shipped schema and that the order fits a task's
//! lifecycle.
//!
//! The schema defines a single event; `lifecycle` defines which may follow which. Every test that reads
//! events goes through here, so every run of every test is checked against both.

mod lifecycle;

use std::path::PathBuf;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

pub use lifecycle::{Part, faults};

/// Path of the schema that ships with the product.
pub fn schema_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../schema/events.schema.json")
}

/// Reads JSON Lines; panics with all faults if there are any.
#[track_caller]
pub fn read_checked(lines: &str, part: Part) -> Vec<Value> {
    let events = read(lines);
    let mut wrong: Vec<String> = events.iter().filter_map(against_schema).collect();
    wrong.extend(faults(&events, part));
    assert!(wrong.is_empty(), "an event stream with faults:\n{}\n--- stream\n{lines}", wrong.join("\n"));
    events
}

/// Reads JSON Lines; an incomplete last line, as left by a kill, is dropped.
#[track_caller]
pub fn read(lines: &str) -> Vec<Value> {
    let whole = lines.rfind('\n').map_or("", |end| &lines[..end]);
    let parse = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("a line that is no JSON: {error}: {line}"))
    };
    whole.lines().map(parse).collect()
}

/// Events of one type, in order.
pub fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Event types in order, without deltas, whose number depends on how the stream was split.
pub fn outline(events: &[Value]) -> Vec<&str> {
    events.iter().filter(|event| !is_passing(event)).filter_map(|event| event["type"].as_str()).collect()
}

/// Events that the journal stores: all but the transient ones.
pub fn kept(events: &[Value]) -> Vec<Value> {
    events.iter().filter(|event| !is_passing(event)).cloned().collect()
}

fn is_passing(event: &Value) -> bool {
    ["message_delta", "reasoning_delta", "tool_output", "gap"].iter().any(|kind| event["type"] == *kind)
}

/// Events with everything that differs from run to run replaced, for comparing entire streams.
pub fn normalised(events: &[Value]) -> Vec<Value> {
    events
        .iter()
        .filter(|event| !is_passing(event))
        .cloned()
        .map(|mut event| {
            for key in [
                "ts",
                "timestamp",
                "duration_ms",
                "wait_ms",
                "seq",
                "run",
                "task",
                "submission_id",
                "turn_id",
            ] {
                if let Some(value) = event.get_mut(key) {
                    *value = Value::String(format!("[{key}]"));
                }
            }
            event
        })
        .collect()
}

fn against_schema(event: &Value) -> Option<String> {
    static SCHEMA: OnceLock<Validator> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| {
        let path = schema_path();
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("the event schema at {}: {error}", path.display()));
        let schema = serde_json::from_str(&text).expect("a schema in JSON");
        jsonschema::validator_for(&schema).expect("a valid JSON Schema")
    });
    let problems: Vec<String> = schema.iter_errors(event).map(|error| error.to_string()).collect();
    (!problems.is_empty()).then(|| format!("not by the schema: {}: {event}", problems.join("; ")))
}
