//! Valid streams, and one stream for each kind of violation.

use serde_json::json;

use super::*;

/// Builds events from (type, fields), with seq and task filled in.
fn stream(events: &[(&str, Value)]) -> Vec<Value> {
    let mut stream = Vec::new();
    for (seq, (kind, fields)) in events.iter().enumerate() {
        let mut event = json!({"seq": seq, "task": "main", "type": kind});
        for (key, value) in fields.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        stream.push(event);
    }
    stream
}

fn turn(index: u64) -> Value {
    json!({"turn_index": index, "turn_id": format!("t{index}")})
}

fn call(id: &str) -> Value {
    json!({ "call_id": id })
}

fn end() -> Value {
    json!({"status": "completed"})
}

fn good() -> Vec<(&'static str, Value)> {
    vec![
        ("task_started", json!({})),
        ("turn_start", turn(0)),
        ("tool_call", call("a")),
        ("tool_call", call("b")),
        ("tool_result", call("b")),
        ("tool_result", call("a")),
        ("turn_complete", turn(0)),
        ("turn_start", turn(1)),
        ("turn_complete", turn(1)),
        ("task_complete", end()),
    ]
}

#[track_caller]
fn faulty(events: Vec<(&str, Value)>, expected: &str) {
    let found = faults(&stream(&events), Part::Whole);
    assert!(found.iter().any(|fault| fault.contains(expected)), "{expected:?} not in {found:#?}");
}

#[test]
fn a_right_stream_has_no_faults() {
    assert_eq!(faults(&stream(&good()), Part::Whole), Vec::<String>::new());
}

#[test]
fn every_beginning_of_a_right_stream_is_a_head_and_every_end_a_tail() {
    let all = stream(&good());
    for n in 0..all.len() {
        assert_eq!(faults(&all[..n], Part::Head), Vec::<String>::new(), "head of {n}");
        assert_eq!(faults(&all[n..], Part::Tail), Vec::<String>::new(), "tail from {n}");
    }
}

#[test]
fn a_subtask_ends_before_its_parent_and_has_a_life_of_its_own() {
    let mut all = stream(&good());
    for (at, kind) in [(1, "task_started"), (2, "task_complete")] {
        all.insert(at, json!({"seq": 0, "task": "child", "type": kind, "status": "failed"}));
    }
    for (seq, event) in all.iter_mut().enumerate() {
        event["seq"] = json!(seq);
    }
    assert_eq!(faults(&all, Part::Whole), Vec::<String>::new());
    all.remove(2);
    assert_eq!(faults(&all, Part::Whole), ["task child never ended"]);
}

#[test]
fn each_way_of_being_wrong_is_named() {
    let without = |n: usize| {
        let mut events = good();
        events.remove(n);
        events
    };
    let with = |n: usize, kind: &'static str, fields: Value| {
        let mut events = good();
        events.insert(n, (kind, fields));
        events
    };
    faulty(without(0), "the first event is turn_start");
    faulty(without(0), "before the start of its task");
    faulty(without(9), "the last event is turn_complete");
    faulty(without(9), "task main never ended");
    faulty(without(5), "a turn that ends with open calls");
    faulty(without(3), "a result without its call");
    faulty(without(1), "the end of a turn that did not start");
    faulty(without(6), "a turn inside a turn");
    faulty(without(8), "completed within a turn");
    faulty(with(9, "task_complete", end()), "after the end of its task");
    faulty(with(4, "tool_call", call("a")), "a second call under one id");
    faulty(with(6, "tool_result", call("a")), "a second result of one call");
    faulty(with(9, "tool_call", call("c")), "ended with calls unanswered [\"c\"]");
    faulty(with(1, "task_started", json!({})), "a second start");
    faulty(with(2, "approval_resolved", call("a")), "an answer nobody asked for");
    faulty(with(3, "message", json!({"seq": 0})), "seq 0 after Some(2)");
}
