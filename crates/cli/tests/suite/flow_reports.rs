//! What flows report: counts of calls, files read, the status of planned tasks, blocked parts, and what parts share.

use fusee_testkit::events::of_type;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::flows::{done, plan, project, read, report, run, write};
use crate::support::run_json;

#[test]
fn planned_tasks_keep_their_ids_and_their_status_from_part_to_part() {
    let project = project().with("fusee.toml", "task_skip_readonly = true\n");
    let tasks = json!([
        {"id": "A", "description": "Write b.txt"},
        {"id": "look", "description": "Read a.txt"},
        {"id": "B", "description": "Write c.txt"},
    ]);
    let made = Line::call("plan_tasks", json!({"action": "create", "tasks": tasks}));
    let lines = [made, write("b.txt"), Line::text("b is there."), write("c.txt"), Line::text("c is there.")];
    let events = run(&project, "branched", &lines).run().exits(0).events();
    let requests = of_type(&events, "task_started");
    let plan_of = |n: usize| {
        let request = requests[n]["request"].as_str().unwrap();
        let (_, plan) = request.split_once("The plan:\n").unwrap();
        plan.split("\n\n").next().unwrap().to_owned()
    };
    assert_eq!(plan_of(2), "[~] A. Write b.txt\n[ ] look. Read a.txt\n[ ] B. Write c.txt");
    assert_eq!(
        plan_of(3),
        "[x] A. Write b.txt\n[ ] look. Read a.txt (skipped: read-only task (`read`))\n[~] B. Write c.txt"
    );
    let stages: Vec<_> = of_type(&events, "flow_stage_report")
        .into_iter()
        .map(|report| json!([report["stage"], report["status"]]))
        .collect();
    assert_eq!(
        json!(stages),
        json!([
            ["plan", "completed"],
            ["task-1", "completed"],
            ["task-2", "skipped"],
            ["task-3", "completed"]
        ])
    );
}

#[test]
fn a_blocked_stage_or_planned_task_fails_the_run() {
    let project = project();
    let blocked = Line::call("finish", json!({"status": "blocked", "summary": "no way"}));
    let cases = [
        ("branched", vec![plan(&["Write b.txt"]), blocked.clone()], "task-1"),
        ("staged3", vec![blocked.clone()], "context"),
    ];
    for (mode, lines, stage) in cases {
        let events = run(&project, mode, &lines).run().exits(1).events();
        let last = events.last().unwrap();
        let message = format!("in `{stage}`: the model reports that it is blocked: no way");
        assert_eq!(
            last["error"],
            json!({"code": "TURN_FAILED", "reason": "blocked", "message": message}),
            "{mode}"
        );
        assert_eq!((&last["status"], &last["answer"]), (&json!("failed"), &json!("no way")), "{mode}");
        let statuses: Vec<_> =
            of_type(&events, "task_report").into_iter().map(|r| r["status"].clone()).collect();
        assert_eq!(statuses[statuses.len() - 2..], ["failed", "failed"], "{mode}");
    }
}

#[test]
fn a_written_file_is_not_a_file_that_was_read() {
    let stage = "[[flow]]\nid = \"one\"\nrequire_files_read = 1\n";
    let project = project().with("fusee.toml", stage);
    let again = Line::call("write_file", json!({"path": "a.txt", "content": "one\n"}));
    let lines = [write("b.txt"), again, done("one"), read("a.txt"), done("one")];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    let unmet = "The stage `one` is not done yet: 1 file must be read, so far 0.";
    assert_eq!(results[2]["content"], unmet);
    assert_eq!(report(&events)["files_read"], json!(["a.txt"]));
}

#[test]
fn every_requested_call_is_counted_and_only_offered_tools_are_named() {
    let project = project().with("fusee.toml", "tools = [\"read_file\"]\n");
    let lines = [
        write("b.txt"),
        Line::call("zzzzzzzz", json!({})),
        read("a.txt"),
        Line::call("read_file", json!({"pth": 1})),
        Line::text("Done."),
    ];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    let report = report(&events);
    assert_eq!(report["tool_call_counts"], json!({"write_file": 1, "zzzzzzzz": 1, "read_file": 2}));
    assert_eq!((&report["tool_calls_total"], &report["tool_errors_total"]), (&json!(4), &json!(0)));
    let unknown = of_type(&events, "tool_result")[1]["content"].as_str().unwrap().to_owned();
    let names = unknown.strip_prefix("There is no tool `zzzzzzzz`. The tools are: ").unwrap();
    assert_eq!(names, "read_file, finish, ask_user.");
}

#[test]
fn the_budget_covers_all_stages_together() {
    let project = project().with("fusee.toml", "[[flow]]\nid = \"one\"\n[[flow]]\nid = \"two\"\n");
    let cents_20 = |line: Line| line.usage(2_000, 1);
    let lines = [read("a.txt"), done("one"), read("a.txt"), done("two")].map(cents_20);
    let outcome = run_json(&project, &project.script(&lines))
        .args(["--budget-usd", "0.6"])
        .env("FUSEE_PRICE_INPUT", "100")
        .run()
        .exits(3);
    let last = outcome.events().pop().unwrap();
    assert_eq!(last["error"]["code"], "BUDGET");
    assert!(last["error"]["message"].as_str().unwrap().starts_with("in `two`: "), "{last}");
}
