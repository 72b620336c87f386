//! Live updates and those of a loaded session give the same conversation.

use fusee::journal::RunId;
use fusee::journal::event::TaskStatus;
use serde_json::{Value, json};

use super::*;

fn records(events: Vec<Event>) -> Vec<EventRecord> {
    let run: RunId = "r".parse().unwrap();
    let record = |(n, event)| EventRecord {
        seq: n as u64 + 1,
        ts_ms: 0,
        run: run.clone(),
        task: Branch::main(),
        event,
    };
    events.into_iter().enumerate().map(record).collect()
}

fn updates(viewing: Viewing, events: Vec<Event>) -> Vec<Value> {
    let mut mapper = UpdateMapper::new("/project".into(), viewing);
    records(events)
        .iter()
        .flat_map(|record| mapper.updates(record))
        .map(|update| serde_json::to_value(update).unwrap())
        .collect()
}

fn text(updates: &[Value], kind: &str) -> String {
    let of_kind = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    of_kind.map(|update| update["content"]["text"].as_str().unwrap()).collect()
}

fn delta(text: &str) -> Event {
    Event::MessageDelta { text: text.to_owned() }
}

fn message(text: &str) -> Event {
    Event::Message { role: Role::Assistant, text: text.to_owned() }
}

#[test]
fn streamed_text_is_sent_once_and_completed_from_the_message() {
    for (deltas, sent) in [
        (vec![], "Hello world"),
        (vec!["Hello", " world"], "Hello world"),
        (vec!["Hello"], "Hello world"),
        (vec!["Good"], "Good\n\nHello world"),
    ] {
        let events = deltas.into_iter().map(delta).chain([message("Hello world")]).collect();
        assert_eq!(text(&updates(Viewing::Live, events), "agent_message_chunk"), sent);
    }
}

#[test]
fn a_change_is_shown_as_a_diff_with_absolute_paths() {
    let call = Event::ToolCall {
        call_id: "c1".to_owned(),
        name: "edit_file".to_owned(),
        arguments: json!({"path": "src/a.rs", "old": "one", "new": "two"}),
    };
    let result = Event::ToolResult(ToolResult {
        call_id: "c1".to_owned(),
        ok: true,
        content: "Edited.".to_owned(),
        truncated: false,
        duration_ms: 1,
        exit_code: None,
        fate: None,
    });
    let diff = json!({ "type": "diff", "path": "/project/src/a.rs", "oldText": "one", "newText": "two" });
    assert_eq!(
        updates(Viewing::Replay, vec![call, result]),
        [
            json!({
                "sessionUpdate": "tool_call",
                "toolCallId": "c1",
                "title": "edit_file src/a.rs",
                "name": "edit_file",
                "kind": "edit",
                "status": "in_progress",
                "content": [diff],
                "locations": [{ "path": "/project/src/a.rs" }],
                "rawInput": { "path": "src/a.rs", "old": "one", "new": "two" },
            }),
            json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": "c1",
                "status": "completed",
                "content": [diff],
            }),
        ]
    );
}

#[test]
fn a_plan_is_shown_as_a_plan() {
    let plan = plan("[x] 1. Read it. (done)\n[~] 2. Change it.\n[ ] 3. Test it.").unwrap();
    assert_eq!(
        serde_json::to_value(plan).unwrap(),
        json!({ "entries": [
            { "content": "Read it. (done)", "priority": "medium", "status": "completed" },
            { "content": "Change it.", "priority": "medium", "status": "in_progress" },
            { "content": "Test it.", "priority": "medium", "status": "pending" },
        ]})
    );
}

#[test]
fn an_answer_that_no_message_said_is_sent() {
    let end = |answer: &str| {
        Event::TaskComplete(TaskComplete {
            submission_id: "r".to_owned(),
            total_turns: 1,
            total_tokens: 1,
            cached_tokens: 0,
            duration_ms: 1,
            status: TaskStatus::Completed,
            answer: answer.to_owned(),
            cost_usd: None,
            error: None,
        })
    };
    let said = |events| text(&updates(Viewing::Live, events), "agent_message_chunk");
    assert_eq!(said(vec![message("42"), end("42")]), "42");
    assert_eq!(said(vec![end("42")]), "42");
}
