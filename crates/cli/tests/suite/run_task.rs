//! A task from its request to its answer, with a scripted model and the real tools.

use fusee_testkit::events::{normalised, of_type, outline};
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{REQUEST, fusee, run, run_json};

fn whole_task(project: &Project) -> String {
    project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})).with_text("I will look.").usage(900, 12),
        Line::call("edit_file", json!({"path": "a.txt", "old": "two", "new": "2"})).usage(1000, 20),
        Line::call("shell", json!({"command": "wc -l < a.txt"})).usage(1100, 10),
        Line::text("Done: two is 2 now.").reasoning("All is well.").usage(1200, 8),
    ])
}

#[test]
fn the_whole_stream_of_a_task_is_as_written_here() {
    let project = Project::new().with("a.txt", "one\ntwo\nthree\n");
    let events =
        run_json(&project, &whole_task(&project)).args(["--run-id", "whole"]).run().exits(0).events();
    assert_eq!(
        outline(&events),
        [
            "task_started",
            "turn_start",
            "message",
            "tool_call",
            "tool_result",
            "turn_complete",
            "turn_start",
            "tool_call",
            "file_changed",
            "tool_result",
            "turn_complete",
            "turn_start",
            "tool_call",
            "tool_result",
            "turn_complete",
            "turn_start",
            "reasoning",
            "message",
            "turn_complete",
            "task_report",
            "task_complete",
        ]
    );
    assert!(events.iter().all(|event| event["run"] == "whole"), "{events:#?}");
    let normalised = normalised(&events);
    let first = &normalised[0];
    assert_eq!(
        (&first["request"], &first["turn_type"], &first["sandbox"]),
        (&json!(REQUEST), &json!("user"), &json!("off"))
    );
    let calls: Vec<_> =
        of_type(&normalised, "tool_call").iter().map(|e| (&e["name"], &e["arguments"])).collect();
    assert_eq!(
        calls,
        [
            (&json!("read_file"), &json!({"path": "a.txt"})),
            (&json!("edit_file"), &json!({"path": "a.txt", "old": "two", "new": "2"})),
            (&json!("shell"), &json!({"command": "wc -l < a.txt"})),
        ]
    );
    let results = of_type(&normalised, "tool_result");
    assert!(results.iter().all(|result| result["ok"] == json!(true)), "{results:#?}");
    assert!(results[0]["content"].as_str().unwrap().contains("two\n"), "{results:#?}");
    assert_eq!(results[2]["exit_code"], json!(0));
    assert!(results[2]["content"].as_str().unwrap().contains('3'), "{results:#?}");
    let changed: Vec<_> =
        of_type(&normalised, "file_changed").iter().map(|e| (&e["path"], &e["change"])).collect();
    assert_eq!(changed, [(&json!("a.txt"), &json!("modified"))]);
    let messages: Vec<_> = of_type(&normalised, "message").iter().map(|e| (&e["role"], &e["text"])).collect();
    assert_eq!(
        messages,
        [(&json!("assistant"), &json!("I will look.")), (&json!("assistant"), &json!("Done: two is 2 now.")),]
    );
    assert_eq!(
        normalised.last().unwrap(),
        &json!({
            "seq": "[seq]", "ts": "[ts]", "run": "[run]", "task": "[task]", "type": "task_complete",
            "submission_id": "[submission_id]", "total_turns": 4, "total_tokens": 4250, "duration_ms": "[duration_ms]",
            "status": "completed", "answer": "Done: two is 2 now.",
        })
    );
    assert_eq!(project.read("a.txt"), "one\n2\nthree\n");
}

#[test]
fn the_report_counts_what_was_done() {
    let project = Project::new().with("a.txt", "one\ntwo\nthree\n");
    let events = run_json(&project, &whole_task(&project)).run().exits(0).events();
    let report = of_type(&events, "task_report")[0];
    let expected = json!({
        "status": "completed", "description": REQUEST,
        "files_changed": ["a.txt"], "files_read": ["a.txt"],
        "tool_calls_total": 3, "tool_errors_total": 0,
        "tool_call_counts": {"read_file": 1, "edit_file": 1, "shell": 1},
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&report[key], value, "{key} of {report:#}");
    }
}

#[test]
fn deltas_put_together_are_the_message() {
    let project = Project::new();
    let text = "A text long enough to come in more than one piece, with é and \u{1F600} in it. ".repeat(20);
    let events = run_json(&project, &project.script(&[Line::text(&text)])).run().exits(0).events();
    let pieces: String =
        of_type(&events, "message_delta").iter().map(|e| e["text"].as_str().unwrap()).collect();
    assert_eq!(pieces, text);
    assert_eq!(of_type(&events, "message")[0]["text"], json!(text));
}

#[test]
fn several_calls_in_one_reply_are_all_answered_in_order() {
    let project = Project::new().with("a.txt", "a\n").with("b.txt", "b\n");
    let script = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"}))
            .and_call("read_file", json!({"path": "b.txt"}))
            .and_call("shell", json!({"command": "cat a.txt b.txt > c.txt"})),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    let ids = |kind: &str| -> Vec<Value> {
        of_type(&events, kind).iter().map(|event| event["call_id"].clone()).collect()
    };
    assert_eq!(ids("tool_call"), ids("tool_result"));
    assert_eq!(ids("tool_call").len(), 3);
    assert_eq!(project.read("c.txt"), "a\nb\n");
}

#[test]
fn what_a_model_does_wrong_is_a_result_and_the_task_goes_on() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("read_fil", json!({"path": "a.txt"})),
        Line::call("read_file", json!({"path": "missing.txt"})),
        Line::call("read_file", json!("{\"path\": ")),
        Line::call("write_file", json!({"path": "../outside.txt", "content": "x"})),
        Line::call("shell", json!({"command": "exit 7"})),
        Line::text("I gave up."),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    let ok: Vec<_> = results.iter().map(|result| result["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [false; 5], "{results:#?}");
    let content = |n: usize| results[n]["content"].as_str().unwrap();
    assert!(content(0).contains("read_file"), "the near name is not offered: {}", content(0));
    assert!(content(1).contains("missing.txt"), "{}", content(1));
    assert_eq!(results[4]["exit_code"], json!(7));
    assert!(!project.dir().join("../outside.txt").exists());
}

#[test]
fn a_shell_command_sees_no_key_and_none_is_written_down() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("shell", json!({"command": "env; echo $OPENAI_API_KEY > key.txt; cat key.txt"})),
        Line::text("Done."),
    ]);
    let outcome = run_json(&project, &script).env("OPENAI_API_KEY", crate::support::KEY).run().exits(0);
    assert_eq!(project.read("key.txt").trim(), "");
    assert!(!outcome.stdout.contains(crate::support::KEY), "the key is in the events");
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(project.dir().join(".fusee").join(file)).unwrap_or_default();
        let found =
            bytes.windows(crate::support::KEY.len()).any(|window| window == crate::support::KEY.as_bytes());
        assert!(!found, "the key is in {file}");
    }
}

#[test]
fn a_finished_run_is_listed_and_shown() {
    let project = Project::new();
    let script = project.script(&[Line::text("Forty-two.")]);
    run(&project, &script).args(["--run-id", "answer"]).run().exits(0);
    let listed = fusee(&project).args(["runs"]).run().exits(0);
    assert!(listed.stdout.contains("answer") && listed.stdout.contains("completed"), "{}", listed.stdout);
    let shown = fusee(&project).args(["show", "answer"]).run().exits(0);
    assert!(shown.stdout.contains("Forty-two."), "{}", shown.stdout);
}

#[test]
fn the_workspace_is_where_dash_c_says() {
    let project = Project::new().with("inner/a.txt", "inside\n");
    let script = project.script(&[Line::call("read_file", json!({"path": "a.txt"})), Line::text("Done.")]);
    let inner = project.dir().join("inner");
    let run =
        run_json(&project, &script).args(["-C".as_ref(), inner.as_os_str()]).in_directory(&project.home());
    let events = run.run().exits(0).events();
    let result = of_type(&events, "tool_result")[0];
    assert!(result["content"].as_str().unwrap().contains("inside"), "{result:#}");
    assert!(project.journal().exists(), "the journal is not in the nearest ancestor with .git");
}
