//! Test fixture for every UI: a run as a fixed list of events, with messages, successful and failed calls, a
//! file change, a retry, a question, a warning and a streamed answer.

use std::time::Duration;

use fusee::engine::journal::event::{
    CallFate, ChangeKind, ErrorCode, ErrorDetail, Event, Role, TaskComplete, TaskStarted, TaskStatus,
    ToolResult, TurnType,
};
use fusee::engine::journal::{Branch, EventRecord};
use serde_json::{Value, json};

/// All events, each with its time since the start.
pub(crate) fn scene() -> Vec<(Duration, EventRecord)> {
    let mut scene = Fixture::default();
    scene.add(0, started());
    scene.add(10, turn(0, 1776));
    scene.add(900, delta("I will look at the tests "));
    scene.add(950, delta("first, and then at what they test."));
    scene.add(1000, message("I will look at the tests first, and then at what they test."));
    scene.call(1000, "c1", "read_files", json!({"paths": ["tests/test_day.py", "freetime/day.py"]}));
    scene.add(1004, result("c1", true, "…", None, 4, None));
    scene.call(1010, "c2", "shell", json!({"command": "python3 -m unittest discover -s tests -v"}));
    scene.add(1500, output("c2", "test_empty ... ok\ntest_one ... ok\n"));
    scene.add(2000, output("c2", "test_nested ... FAIL\n\n"));
    let failure = "test_empty ... ok\nAssertionError: Lists differ\n\nFAILED (failures=1)\n[exit code 1]\n";
    scene.add(2300, result("c2", false, failure, Some(1), 1290, None));
    scene.add(
        2301,
        Event::TurnComplete {
            turn_index: 0,
            turn_id: "main:0".into(),
            output_tokens: 40,
            cached_tokens: 0,
            tool_calls: 2,
            duration_ms: 2290,
            wait_ms: None,
        },
    );
    scene.add(2302, turn(1, 81_000));
    scene.add(2400, Event::Retry { attempt: 1, after_ms: 1500, reason: "the server is overloaded".into() });
    scene.call(4500, "c3", "edit_file", json!({"path": "freetime/day.py", "old": "a", "new": "b"}));
    scene.add(4501, Event::FileChanged { path: "freetime/day.py".into(), change: ChangeKind::Modified });
    scene.add(4502, result("c3", true, "Changed.", None, 1, None));
    scene.call(4503, "c4", "shell", json!({"command": "git push\u{1b}[2J origin main"}));
    let (call_id, name) = ("c4".to_owned(), "shell".to_owned());
    let arguments = json!({"command": "git push\u{1b}[2J origin main"});
    let reason = "commands run without a sandbox".to_owned();
    scene.add(4504, Event::ApprovalRequested { call_id, name, arguments, reason });
    let reason = Some("the user said no: not yet".to_owned());
    scene.add(9000, Event::ApprovalResolved { call_id: "c4".into(), approved: false, reason });
    scene.add(
        9001,
        result("c4", false, "Not run: the user said no: not yet.", None, 0, Some(CallFate::Refused)),
    );
    let message_text =
        "80 % of max_tokens are used; the conversation is shortened at 75000 tokens".to_owned();
    scene.add(9002, Event::Warning { code: "tokens".into(), message: message_text });
    scene.add(9003, turn(2, 82_000));
    scene.add(9100, Event::ReasoningDelta { text: "The test passes now,\nso I can answer.".into() });
    scene.add(
        9200,
        delta("Fixed.\n\nThe later of two ends is kept now, so a meeting within another one no longer "),
    );
    scene.add(9300, delta("cuts it short."));
    scene.add(9400, message(ANSWER));
    scene.add(9401, complete(TaskStatus::Completed, ANSWER, None));
    scene.events
}

/// The final event of a run that failed.
pub(crate) fn failed_end() -> EventRecord {
    let error = ErrorDetail {
        code: ErrorCode::MaxTurns,
        reason: "turns".to_owned(),
        message: "the task reached its limit of 50 turns before it had an answer".to_owned(),
    };
    stamp(99, 0, complete(TaskStatus::Failed, "so far", Some(error)))
}

const ANSWER: &str =
    "Fixed.\n\nThe later of two ends is kept now, so a meeting within another one no longer cuts it short.";

#[derive(Default)]
struct Fixture {
    events: Vec<(Duration, EventRecord)>,
}

impl Fixture {
    fn add(&mut self, ms: u64, event: Event) {
        let seq = self.events.len() as u64 + 1;
        self.events.push((Duration::from_millis(ms), stamp(seq, ms, event)));
    }

    fn call(&mut self, ms: u64, call_id: &str, name: &str, arguments: Value) {
        self.add(ms, Event::ToolCall { call_id: call_id.into(), name: name.into(), arguments });
    }
}

fn stamp(seq: u64, ms: u64, event: Event) -> EventRecord {
    let ts_ms = 1_794_779_178_000 + i64::try_from(ms).unwrap();
    EventRecord { seq, ts_ms, run: "a-run".parse().unwrap(), task: Branch::main(), event }
}

fn started() -> Event {
    Event::TaskStarted(TaskStarted {
        submission_id: "a-run".into(),
        turn_type: TurnType::User,
        timestamp: 1_794_779_178_000,
        request: "Make the failing test pass,\nwithout changing it.".into(),
        model: "ollama:qwen2.5-coder".into(),
        sandbox: "none".into(),
        parent: None,
        continues: None,
    })
}

fn turn(turn_index: u32, input_tokens: u64) -> Event {
    let turn_id = format!("main:{turn_index}");
    Event::TurnStart { turn_index, turn_id, input_tokens, max_turns: None, max_input_tokens: None }
}

fn delta(text: &str) -> Event {
    Event::MessageDelta { text: text.into() }
}

fn output(call_id: &str, text: &str) -> Event {
    Event::ToolOutput { call_id: call_id.into(), text: text.into() }
}

fn message(text: &str) -> Event {
    Event::Message { role: Role::Assistant, text: text.into() }
}

fn result(
    call_id: &str,
    ok: bool,
    content: &str,
    exit_code: Option<i32>,
    duration_ms: u64,
    fate: Option<CallFate>,
) -> Event {
    let (call_id, content) = (call_id.to_owned(), content.to_owned());
    Event::ToolResult(ToolResult { call_id, ok, content, truncated: false, duration_ms, exit_code, fate })
}

fn complete(status: TaskStatus, answer: &str, error: Option<ErrorDetail>) -> Event {
    Event::TaskComplete(TaskComplete {
        submission_id: "a-run".into(),
        total_turns: 3,
        total_tokens: 165_000,
        cached_tokens: 121_000,
        duration_ms: 9_401,
        status,
        answer: answer.into(),
        cost_usd: None,
        error,
    })
}
