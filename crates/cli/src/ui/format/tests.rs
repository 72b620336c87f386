//! Tests of the short texts and number formats.

use serde_json::json;

use super::*;

#[test]
fn a_call_is_told_by_what_it_is_about() {
    let cases = [
        ("read_file", json!({"path": "a.rs"}), "a.rs"),
        ("read_file", json!({"path": "a.rs", "offset": 10, "limit": 5}), "a.rs lines 10-14"),
        ("read_file", json!({"path": "a.rs", "offset": 10}), "a.rs from line 10"),
        ("read_files", json!({"paths": ["a", "b"]}), "a b"),
        ("list_dir", json!({}), "."),
        ("find_files", json!({"pattern": "*.rs"}), "*.rs"),
        ("search_text", json!({"pattern": "fn main", "path": "src"}), "/fn main/ in src"),
        ("write_file", json!({"path": "a", "content": "1\n2\n"}), "a (2 lines)"),
        ("edit_file", json!({"path": "a", "old": "x", "new": "y"}), "a"),
        ("shell", json!({"command": "cd x &&\n  make"}), "cd x && make"),
        ("plan_tasks", json!({"action": "create", "tasks": [{}, {}]}), "create 2 tasks"),
        ("plan_tasks", json!({"action": "update", "task_id": 2, "status": "done"}), "update 2 done"),
        ("finish", json!({"status": "blocked", "summary": "no network"}), "no network"),
        ("mcp__thing", json!({"q": 1}), "{\"q\":1}"),
        ("shell", json!("not json"), "not json"),
    ];
    for (name, arguments, expected) in cases {
        assert_eq!(summarize_arguments(name, &arguments), expected, "{name} {arguments}");
    }
}

#[test]
fn numbers_are_short() {
    assert_eq!(
        [0, 999, 1_000, 59_999, 60_000, 3_600_000].map(span),
        ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 m 00 s", "1 h 00 m"]
    );
    assert_eq!([900, 10_000, 12_345, 1_200_000].map(tokens), ["900", "10k", "12.3k", "1.2M"]);
    assert_eq!([1, 1_500, 2_000_000].map(bytes), ["1 B", "1.5 kB", "2.0 MB"]);
    assert_eq!([0, 59_000, 61_000, 7_200_000, 200_000_000].map(age), ["now", "59 s", "1 m", "2 h", "2 d"]);
}

#[test]
fn a_verdict_names_the_exit_code_where_it_says_more_than_ok() {
    let result = |ok, exit_code, fate| ToolResult {
        call_id: String::new(),
        ok,
        content: String::new(),
        truncated: false,
        duration_ms: 0,
        exit_code,
        fate,
    };
    assert_eq!(verdict(&result(true, Some(0), None)), "ok");
    assert_eq!(verdict(&result(false, Some(101), None)), "exit 101");
    assert_eq!(verdict(&result(true, Some(1), None)), "exit 1");
    assert_eq!(verdict(&result(false, None, None)), "failed");
    assert_eq!(verdict(&result(false, None, Some(CallFate::Refused))), "refused");
}

#[test]
fn what_is_asked_stands_without_its_background() {
    let whole = fusee::engine::prompt::request_text("look at @a.rs", Some("The file a.rs:\n\nfn main() {}"));
    assert_eq!(
        (request_text(&whole), request_text("no more than this")),
        ("look at @a.rs", "no more than this")
    );
}
