//! The shipped schema agrees with the types: it accepts every event and nothing else.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fusee_journal::event::{
    CallFate, ChangeKind, ErrorCode, ErrorDetail, FilesLocated, FlowStageReport, HookDecision, HookRun,
    LocatedFile, NetworkAccess, NetworkVerdict, PhaseSource, ReadCache, Role, Sample, StageStatus,
    TaskComplete, TaskReport, TaskStarted, TaskStatus, ToolResult, TurnType, Verification, json_schema,
};
use fusee_journal::{Branch, Event, EventRecord};
use serde_json::{Value, json};

use crate::kit::*;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/events.schema.json")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "UPDATE_SCHEMA=1 rewrites the file")]
fn the_shipped_schema_is_the_one_of_the_types() {
    let now = format!("{}\n", serde_json::to_string_pretty(&json_schema()).expect("JSON"));
    if std::env::var("UPDATE_SCHEMA").is_ok_and(|value| value == "1") {
        std::fs::create_dir_all(path().parent().expect("a directory")).expect("a directory");
        std::fs::write(path(), &now).expect("written");
    }
    let shipped = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(
        shipped == now,
        "schema/events.schema.json is out of date: run with UPDATE_SCHEMA=1 to write it anew"
    );
}

/// One event of each type, with and without its optional fields.
fn every_event() -> Vec<Event> {
    let text = || "text".to_owned();
    let some = vec![
        Event::TaskStarted(TaskStarted {
            submission_id: text(),
            turn_type: TurnType::User,
            timestamp: NOW,
            request: text(),
            model: text(),
            sandbox: text(),
            parent: None,
            continues: None,
        }),
        Event::TaskStarted(TaskStarted {
            submission_id: text(),
            turn_type: TurnType::Review,
            timestamp: NOW,
            request: text(),
            model: text(),
            sandbox: text(),
            parent: Some(text()),
            continues: None,
        }),
        Event::TaskResumed { from_seq: 7, amended: None },
        Event::Rewound { from_run: text(), turn: 2, files: true, conversation: false },
        Event::TurnStart {
            turn_index: 0,
            turn_id: text(),
            input_tokens: 10,
            max_turns: Some(50),
            max_input_tokens: Some(100_000),
        },
        Event::TurnComplete {
            turn_index: 0,
            turn_id: text(),
            output_tokens: u64::MAX,
            cached_tokens: 3,
            tool_calls: 1,
            duration_ms: 5,
            wait_ms: None,
        },
        Event::MessageDelta { text: text() },
        Event::ReasoningDelta { text: text() },
        Event::ToolOutput { call_id: text(), text: text() },
        Event::Message { role: Role::User, text: text() },
        Event::Message { role: Role::Assistant, text: text() },
        Event::Reasoning { text: text() },
        Event::ToolCall { call_id: text(), name: text(), arguments: json!({"path": "a", "n": [1, null]}) },
        Event::ToolCall { call_id: text(), name: text(), arguments: json!("not an object") },
        Event::ToolResult(ToolResult {
            call_id: text(),
            ok: true,
            content: text(),
            truncated: false,
            duration_ms: 3,
            exit_code: None,
            fate: None,
        }),
        Event::Compaction {
            timestamp: NOW,
            turn_index: 3,
            tokens_before: 100,
            tokens_after: 10,
            items_removed: 4,
        },
        Event::Expansion { section_keys: vec![text()], reason: text(), opened: vec![text(), text()] },
        Event::Retry { attempt: 1, after_ms: 100, reason: text() },
        Event::ApprovalRequested { call_id: text(), name: text(), arguments: Value::Null, reason: text() },
        Event::ApprovalResolved { call_id: text(), approved: true, reason: None },
        Event::ApprovalResolved { call_id: text(), approved: false, reason: Some(text()) },
        Event::Warning { code: text(), message: text() },
        Event::Log { message: text() },
        Event::TaskReport(report(None)),
        Event::TaskReport(report(Some(text()))),
        Event::TaskReportInvalid { task_id: text(), problems: vec![text()] },
        Event::Gap { from: 1, to: 2 },
        Event::Hook(HookRun {
            event: text(),
            command: text(),
            decision: HookDecision::None,
            call_id: None,
            reason: None,
            duration_ms: 3,
        }),
        Event::FlowChosen { flow: text(), reason: text() },
        Event::FilesLocated(FilesLocated {
            files: vec![LocatedFile { path: text(), reason: text() }],
            tests: vec![text()],
        }),
        Event::Sample(Sample {
            n: 1,
            verdict: text(),
            reason: Some(text()),
            repairs: Some(1),
            passed: Some(1),
            failed: Some(2),
            tokens: 300,
            duration_ms: 40,
        }),
        Event::StageStarted { stage: text(), label: text(), attempt: 1 },
        Event::StageComplete { stage: text(), status: StageStatus::Completed },
        Event::StageComplete { stage: text(), status: StageStatus::Failed },
        Event::FlowStageReport(FlowStageReport {
            stage: text(),
            label: text(),
            status: StageStatus::Skipped,
            attempts: 1,
            files_read: vec![text()],
            files_changed: vec![],
            summary: text(),
            payload: Some(json!({"stage": "x"})),
        }),
        Event::PhaseState { phase: text(), source: PhaseSource::Flow, turn_index: 0 },
        Event::PhaseTransition {
            from: text(),
            to: text(),
            source: PhaseSource::PhaseControl,
            turn_index: 1,
            reason: text(),
        },
        Event::PhaseProbeError { turn_index: 1, message: text() },
    ];
    let fates = [CallFate::Aborted, CallFate::Interrupted, CallFate::Refused].map(|fate| {
        Event::ToolResult(ToolResult {
            call_id: text(),
            ok: false,
            content: text(),
            truncated: true,
            duration_ms: 3,
            exit_code: Some(-9),
            fate: Some(fate),
        })
    });
    let changes = [ChangeKind::Created, ChangeKind::Modified, ChangeKind::Deleted]
        .map(|change| Event::FileChanged { path: text(), change });
    let codes = [
        ErrorCode::InitFailed,
        ErrorCode::TurnFailed,
        ErrorCode::TokenLimit,
        ErrorCode::MaxTurns,
        ErrorCode::Cancelled,
        ErrorCode::Timeout,
        ErrorCode::Budget,
    ];
    let errors = codes.map(|code| Event::Error { code, message: text() });
    let ends = [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled].map(|status| {
        let error = ErrorDetail { code: ErrorCode::Timeout, reason: text(), message: text() };
        Event::TaskComplete(TaskComplete {
            submission_id: text(),
            total_turns: 1,
            total_tokens: 2,
            cached_tokens: 2,
            duration_ms: 3,
            status,
            answer: text(),
            cost_usd: None,
            error: (status == TaskStatus::Failed).then_some(error),
        })
    });
    let decisions = [
        HookDecision::Failed,
        HookDecision::Allow,
        HookDecision::Ask,
        HookDecision::Deny,
        HookDecision::Block,
        HookDecision::Stop,
    ]
    .map(|decision| {
        let (call_id, reason) = (Some(text()), Some(text()));
        Event::Hook(HookRun { event: text(), command: text(), decision, call_id, reason, duration_ms: 3 })
    });
    let verdicts =
        [NetworkVerdict::Allowed, NetworkVerdict::Refused, NetworkVerdict::Failed].map(|verdict| {
            let reason = (verdict != NetworkVerdict::Allowed).then(text);
            Event::Network(NetworkAccess { host: text(), port: 443, verdict, reason })
        });
    let some = some.into_iter().chain(decisions).chain(verdicts);
    some.chain(fates).chain(changes).chain(errors).chain(ends).collect()
}

fn report(error: Option<String>) -> TaskReport {
    let counts = BTreeMap::from([("shell".to_owned(), 2)]);
    TaskReport {
        task_id: "main".to_owned(),
        description: "do it".to_owned(),
        status: TaskStatus::Completed,
        attempts: 1,
        replan_max: 0,
        files_changed: vec!["a".to_owned()],
        files_run_by_convention: vec!["Makefile".to_owned()],
        files_read: vec![],
        plan_steps: 0,
        tool_calls_total: 2,
        tool_errors_total: 0,
        tool_call_counts: counts.clone(),
        tool_error_counts: BTreeMap::new(),
        analysis_retries: 0,
        feedback_counts: counts,
        read_cache: error.is_none().then(|| ReadCache::new(3, 1)),
        verified: Some(false),
        verify: error.is_some().then(|| Verification { command: "make".to_owned(), passed: false, runs: 2 }),
        error,
    }
}

fn line(event: Event) -> Value {
    let stamped = EventRecord { seq: 1, ts_ms: NOW, run: run("r-1"), task: Branch::main().child(2), event };
    serde_json::to_value(&stamped).expect("JSON")
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&json_schema()).expect("a JSON Schema")
}

/// The names of all events according to the types, so that a new variant must be added to the list above.
fn type_names() -> Vec<String> {
    let no_event =
        serde_json::from_value::<Event>(json!({"type": "?"})).expect_err("no such event").to_string();
    let (_, names) = no_event.split_once("expected one of ").expect("serde names them all");
    names.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
}

#[test]
fn a_line_is_the_event_with_its_place() {
    let line = serde_json::to_string(&EventRecord {
        seq: 3,
        ts_ms: NOW,
        run: run("r-1"),
        task: Branch::main(),
        event: Event::Warning { code: "c".to_owned(), message: "m".to_owned() },
    });
    assert_eq!(
        line.expect("JSON"),
        r#"{"seq":3,"ts":"2025-10-09T08:53:20.000Z","run":"r-1","task":"main","type":"warning","code":"c","message":"m"}"#
    );
}

#[test]
fn every_event_is_valid_and_comes_back_from_its_line() {
    let (validator, events) = (validator(), every_event());
    let mut seen: Vec<_> = events.iter().map(|event| line(event.clone())["type"].clone()).collect();
    for event in events {
        let line = line(event.clone());
        if let Err(error) = validator.validate(&line) {
            panic!("{error}: {line}");
        }
        assert_eq!(serde_json::from_value::<Event>(line).expect("an event"), event);
    }
    seen.dedup();
    seen.sort_by_key(ToString::to_string);
    seen.dedup();
    let mut names = type_names();
    names.sort();
    assert_eq!(seen, names, "every event is tried");
}

#[test]
fn a_field_too_many_too_few_or_of_another_type_is_not_valid() {
    let validator = validator();
    for event in every_event() {
        let good = line(event);
        let mut more = good.clone();
        more["surplus"] = json!(1);
        assert!(!validator.is_valid(&more), "{more}");
        for key in good.as_object().expect("an object").keys() {
            const OPTIONAL: &[&str] = &[
                "parent",
                "exit_code",
                "fate",
                "error",
                "verify",
                "verified",
                "read_cache",
                "files_run_by_convention",
                "payload",
                "source",
                "cached_tokens",
                "max_turns",
                "max_input_tokens",
            ];
            let kind = good["type"].as_str().unwrap_or_default();
            let optional = OPTIONAL.contains(&key.as_str())
                || matches!(
                    (kind, key.as_str()),
                    ("approval_resolved" | "network", "reason")
                        | ("hook", "reason" | "call_id")
                        | ("sample", "reason" | "repairs" | "passed" | "failed" | "tokens" | "duration_ms")
                );
            let mut less = good.clone();
            less.as_object_mut().expect("an object").shift_remove(key);
            assert!(optional || !validator.is_valid(&less), "without {key}: {less}");
            if key != "arguments" && key != "payload" {
                let mut other = good.clone();
                other[key] = json!([{"a": 1}]);
                assert!(!validator.is_valid(&other), "{key} is of another type: {other}");
            }
        }
    }
}

#[test]
fn what_is_no_event_is_not_valid() {
    let validator = validator();
    let mut unknown = line(Event::Warning { code: "c".to_owned(), message: "m".to_owned() });
    unknown["type"] = json!("unknown");
    let mut nested = line(Event::TaskComplete(TaskComplete {
        submission_id: String::new(),
        total_turns: 0,
        total_tokens: 0,
        cached_tokens: 0,
        duration_ms: 0,
        status: TaskStatus::Failed,
        answer: String::new(),
        cost_usd: None,
        error: Some(ErrorDetail { code: ErrorCode::Budget, reason: String::new(), message: String::new() }),
    }));
    assert!(validator.is_valid(&nested));
    nested["error"]["surplus"] = json!(1);
    let with = |key: &str, value: Value| {
        let mut line = line(Event::Gap { from: 1, to: 2 });
        line[key] = value;
        line
    };
    let wrong = [
        unknown,
        nested,
        json!({}),
        json!(1),
        with("seq", json!(-1)),
        with("seq", json!(1.5)),
        with("from", json!("1")),
        with("run", json!("not a run id")),
        with("ts", json!(0)),
        with("ts", json!("yesterday")),
    ];
    for wrong in wrong {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
