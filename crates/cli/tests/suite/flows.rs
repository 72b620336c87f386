//! Flows of the binary: what runs in which stage, what is refused, how a run ends, what is reported.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

pub(crate) fn project() -> Project {
    Project::new().with("a.txt", "one\n").with("tests/test_a.txt", "two\n")
}

pub(crate) fn read(path: &str) -> Line {
    Line::call("read_file", json!({ "path": path }))
}

pub(crate) fn write(path: &str) -> Line {
    Line::call("write_file", json!({ "path": path, "content": "new\n" }))
}

pub(crate) fn plan(tasks: &[&str]) -> Line {
    let tasks: Vec<Value> = tasks.iter().map(|task| json!({ "description": task })).collect();
    Line::call("plan_tasks", json!({ "action": "create", "tasks": tasks }))
}

pub(crate) fn done(stage: &str) -> Line {
    Line::call("flow_stage_done", json!({ "stage": stage, "summary": format!("{stage} is done") }))
}

pub(crate) fn run<'p>(project: &'p Project, mode: &str, lines: &[Line]) -> Command<'p> {
    run_json(project, &project.script(lines)).args(["--flow", mode])
}

/// One line per event with its task; for tasks split into parts, the part's name.
pub(crate) fn outline(events: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |event: &Value| {
        let what = match event["type"].as_str()? {
            "task_started" => "started".to_owned(),
            "tool_call" => return None,
            "tool_result" => match event["fate"].as_str() {
                Some(fate) => fate.to_owned(),
                None => format!("ok {}", event["ok"]),
            },
            "message" if event["role"] == "user" => format!("told: {}", text(&event["text"]).lines().next()?),
            "phase_transition" => format!("{} -> {}", text(&event["from"]), text(&event["to"])),
            "stage_started" => format!("stage {} {}", text(&event["stage"]), event["attempt"]),
            "flow_stage_report" => format!("{} {}", text(&event["stage"]), text(&event["status"])),
            "task_complete" => match event["error"]["reason"].as_str() {
                Some(reason) => format!("{} {reason}", text(&event["status"])),
                None => text(&event["status"]),
            },
            _ => return None,
        };
        Some(format!("{}: {what}", text(&event["task"])))
    };
    events.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

pub(crate) fn report(events: &[Value]) -> Value {
    let reports = of_type(events, "task_report");
    (*reports.iter().find(|report| report["task"] == "main").unwrap()).clone()
}

#[test]
fn staged_work_is_held_to_reading_planning_and_then_writing() {
    let project = project();
    let lines = [
        write("a.txt"),
        plan(&["Change a.txt"]),
        read("a.txt"),
        write("a.txt"),
        Line::text("I am done."),
        plan(&["Change a.txt"]),
        Line::text("I am done."),
        write("a.txt"),
        Line::text("Now I am."),
    ];
    let events = run(&project, "staged", &lines).run().exits(0).events();
    insta::assert_snapshot!(outline(&events), @r#"
    main: started
    main: refused
    main: refused
    main: ok true
    main: explore -> plan
    main: refused
    main: told: You are in the plan phase. Call plan_tasks with action "create" and a list of tasks; then the tools that change files open.
    main: ok true
    main: plan -> implement
    main: told: Nothing has changed in the workspace yet. Make the change now with write_file, edit_file or apply_patch.
    main: ok true
    main: completed
    "#);
    let report = report(&events);
    assert_eq!(report["feedback_counts"], json!({"gated_call": 3, "early_end": 2}));
    assert_eq!((&report["tool_errors_total"], &report["plan_steps"]), (&json!(0), &json!(1)));
    assert_eq!(report["analysis_retries"], json!(2));
    let refusals: Vec<_> =
        of_type(&events, "tool_result").into_iter().filter(|r| r["fate"] == "refused").collect();
    insta::assert_snapshot!(refusals[0]["content"].as_str().unwrap(), @"Not run: `write_file` is closed in the explore phase. Open now: read_file, read_files, list_dir, find_files, search_text, shell_poll, think, finish, ask_user. Planning opens once a file was read; changing files opens with the plan.");
    insta::assert_snapshot!(refusals[2]["content"].as_str().unwrap(), @r#"Not run: `write_file` is closed in the plan phase. Open now: think, plan_tasks, finish, ask_user. The rest opens once a plan is made: plan_tasks with action "create"."#);
}

#[test]
fn staged_work_reads_the_files_the_request_names_and_their_tests() {
    let project = Project::new().with("leap.py", "x\n").with("leap_test.py", "y\n").with("other.py", "z\n");
    let script = project.script(&[
        read("other.py"),
        plan(&["x"]),
        read("leap.py"),
        plan(&["x"]),
        Line::call("read_files", json!({"paths": ["leap_test.py"]}))
            .and_call("plan_tasks", json!({"action": "create", "tasks": [{"description": "x"}]})),
        write("leap.py"),
        Line::text("Done."),
    ]);
    let events = fusee(&project)
        .args(["run", "Fix leap.py.", "--model", &script, "--sandbox", "off", "--json", "--flow", "staged"])
        .run()
        .exits(0)
        .events();
    let refusals: Vec<&str> = of_type(&events, "tool_result")
        .into_iter()
        .filter(|result| result["fate"] == "refused")
        .map(|result| result["content"].as_str().unwrap().split("once ").nth(1).unwrap())
        .collect();
    assert_eq!(
        refusals,
        [
            "these were read: leap.py, leap_test.py; changing files opens with the plan.",
            "these were read: leap_test.py; changing files opens with the plan.",
        ]
    );
}

#[test]
fn staged_work_without_a_change_runs_into_its_limit() {
    let project = project();
    let mut lines = vec![read("a.txt"), plan(&["x"])];
    lines.extend((0..5).map(|n| Line::text(&format!("Nothing to do {n}."))));
    let events = run(&project, "staged", &lines).args(["--max-turns", "5"]).run().exits(3).events();
    assert_eq!(events.last().unwrap()["error"]["code"], "MAX_TURNS");
    assert_eq!(report(&events)["feedback_counts"], json!({"early_end": 3}));
}

#[test]
fn staged3_is_three_tasks_of_their_own() {
    let project = project();
    let lines = [
        write("a.txt"),
        read("a.txt"),
        Line::text("a.txt holds one."),
        read("a.txt"),
        plan(&["Change a.txt"]),
        Line::text("A plan."),
        write("a.txt"),
        Line::text("Changed it."),
    ];
    let events = run(&project, "staged3", &lines).run().exits(0).events();
    insta::assert_snapshot!(outline(&events), @r"
    main: started
    main: stage context 1
    main/context: started
    main/context: refused
    main/context: ok true
    main/context: completed
    main: context completed
    main: stage plan 1
    main/plan: started
    main/plan: refused
    main/plan: ok true
    main/plan: completed
    main: plan completed
    main: stage implement 1
    main/implement: started
    main/implement: ok true
    main/implement: completed
    main: implement completed
    main: completed
    ");
    let last = events.last().unwrap();
    assert_eq!((&last["answer"], &last["total_turns"]), (&json!("Changed it."), &json!(8)));
    let report = report(&events);
    assert_eq!(report["files_changed"], json!(["a.txt"]));
    assert_eq!(report["files_read"], json!(["a.txt"]));
    assert_eq!(report["tool_calls_total"], json!(5));
    assert_eq!(report["plan_steps"], json!(1));
    let started: Vec<_> =
        of_type(&events, "task_started").into_iter().map(|event| event["parent"].clone()).collect();
    assert_eq!(started, [Value::Null, json!("main"), json!("main"), json!("main")]);
}

#[test]
fn a_stage_of_staged3_that_does_nothing_ends_the_flow() {
    let project = project();
    let events = run(&project, "staged3", &[Line::text("I know it all.")]).run().exits(1).events();
    let last = events.last().unwrap();
    assert_eq!(
        last["error"],
        json!({"code": "TURN_FAILED", "reason": "subtask_failure",
               "message": "the stage `context` did not complete: at least 1 successful tool call must be made, so far 0"})
    );
    let lines =
        [read("a.txt"), Line::text("x"), plan(&["x"]), Line::text("x"), read("a.txt"), Line::text("Done!")];
    let events = run(&project, "staged3", &lines).run().exits(1).events();
    let message = events.last().unwrap()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "the stage `implement` did not complete: no file has changed");
}

/// Two stages, the first with minimums.
const STAGES: &str = r#"
[[flow]]
id = "context"
label = "CONTEXT"
prompt = "Gather context."
require_files_read = 1
tools_block = ["write_file"]

[[flow]]
id = "implement"
prompt = "Make changes."
"#;

#[test]
fn stages_of_ones_own_end_by_their_signal() {
    let project = project().with("fusee.toml", STAGES);
    let script = project.script(&[
        done("context"),
        write("b.txt"),
        read("a.txt"),
        done("contxt"),
        done("context").and_call("read_file", json!({"path": "a.txt"})),
        write("b.txt"),
        done("implement"),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    insta::assert_snapshot!(outline(&events), @r"
    main: started
    main: stage context 1
    main/context: started
    main/context: refused
    main/context: refused
    main/context: ok true
    main/context: refused
    main/context: ok true
    main/context: refused
    main/context: completed
    main: context completed
    main: stage implement 1
    main/implement: started
    main/implement: ok true
    main/implement: ok true
    main/implement: completed
    main: implement completed
    main: completed
    ");
    let report = of_type(&events, "flow_stage_report")[0];
    let fields =
        ["stage", "label", "status", "attempts", "files_read", "files_changed", "summary", "payload"];
    let shown: Value = fields.iter().map(|key| (key.to_string(), report[*key].clone())).collect();
    assert_eq!(
        shown,
        json!({"stage": "context", "label": "CONTEXT", "status": "completed", "attempts": 1, "files_read": ["a.txt"],
               "files_changed": [], "summary": "context is done", "payload": {"stage": "context", "summary": "context is done"}})
    );
    let counts = &self::report(&events)["feedback_counts"];
    assert_eq!(counts, &json!({"after_stage_end": 1, "gated_call": 1, "stage_unmet": 1, "wrong_stage": 1}));
}

#[test]
fn a_stage_without_its_signal_is_tried_again_and_then_fails() {
    let project = project().with("fusee.toml", &format!("flow_stage_retries = 1\n{STAGES}"));
    let lines = [read("a.txt"), Line::text("I looked."), Line::text("I looked again.")];
    let events = run_json(&project, &project.script(&lines)).run().exits(1).events();
    insta::assert_snapshot!(outline(&events), @r#"
    main: started
    main: stage context 1
    main/context: started
    main/context: ok true
    main/context: failed subtask_failure
    main: stage context 2
    main/context.2: started
    main/context.2: failed subtask_failure
    main: context failed
    main: failed subtask_failure
    "#);
    let second = &of_type(&events, "task_started")[2];
    let request = second["request"].as_str().unwrap();
    assert!(
        request.contains(
            "did not succeed: flow_stage_done was not called with stage \"context\"\n\nStage 1 of 2"
        ),
        "{request}"
    );

    let optional = "flow_stage_required = false\nflow_stage_retries = 1\nflow_retry_hints = false\n";
    let project = self::project().with("fusee.toml", &format!("{optional}{STAGES}"));
    let lines = [Line::text("No."), Line::text("No."), write("b.txt"), done("implement")];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    assert_eq!(of_type(&events, "flow_stage_report")[0]["status"], "failed");
    assert!(!of_type(&events, "task_started")[2]["request"].as_str().unwrap().contains("did not succeed"));
}

#[test]
fn a_stage_may_end_without_its_signal_where_that_is_allowed() {
    let stages =
        STAGES.replace("require_files_read = 1", "require_files_read = 1\nallow_missing_done = true");
    let project = project().with("fusee.toml", &stages);
    let lines = [read("a.txt"), Line::text("Looked."), done("implement")];
    run_json(&project, &project.script(&lines)).run().exits(0);
    let lines = [Line::text("Looked."), done("implement")];
    let events = run_json(&project, &project.script(&lines)).run().exits(1).events();
    let message = events.last().unwrap()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "the stage `context` did not complete: 1 file must be read, so far 0");
}

#[test]
fn branched_work_runs_each_planned_task_by_itself_in_order_of_priority() {
    let project = project().with("fusee.toml", "task_skip_readonly = true\n");
    let lines = [
        write("a.txt"),
        Line::call(
            "plan_tasks",
            json!({"action": "create", "tasks": [
                {"description": "Write b.txt", "priority": 2, "goal": "b is there"},
                {"description": "Read everything", "priority": 1},
                {"description": "Write c.txt", "priority": 1},
            ]}),
        ),
        write("c.txt"),
        Line::text("c is there."),
        write("b.txt"),
        Line::text("b is there."),
    ];
    let events = run(&project, "branched", &lines).run().exits(0).events();
    insta::assert_snapshot!(outline(&events), @r"
    main: started
    main: stage plan 1
    main/plan: started
    main/plan: refused
    main/plan: ok true
    main/plan: completed
    main: plan completed
    main: task-1 skipped
    main: stage task-2 1
    main/task-2: started
    main/task-2: ok true
    main/task-2: completed
    main: task-2 completed
    main: stage task-3 1
    main/task-3: started
    main/task-3: ok true
    main/task-3: completed
    main: task-3 completed
    main: completed
    ");
    let requests: Vec<&str> = of_type(&events, "task_started")
        .into_iter()
        .map(|event| event["request"].as_str().unwrap())
        .collect();
    assert!(requests[3].contains("task 3 of 3 of the plan now, and on nothing else: Write b.txt\nIts goal: b is there\nIts priority: 2"), "{}", requests[3]);
    assert!(requests[3].contains("- Write c.txt: c is there."), "{}", requests[3]);
}

#[test]
fn a_planned_task_that_is_blocked_is_tried_again_as_often_as_allowed() {
    let project = project().with("fusee.toml", "task_replan_max = 1\ntask_plan_mode = \"first\"\n");
    let blocked = Line::call("finish", json!({"status": "blocked", "summary": "no way"}));
    let lines = [read("a.txt"), plan(&["Write b.txt"]), blocked.clone(), write("b.txt"), Line::text("Done.")];
    let events = run(&project, "branched", &lines).run().exits(0).events();
    let report = of_type(&events, "flow_stage_report")[1];
    assert_eq!((&report["status"], &report["attempts"]), (&json!("completed"), &json!(2)));
    let reports: Vec<_> = of_type(&events, "task_report")
        .into_iter()
        .map(|report| json!([report["task_id"], report["attempts"], report["replan_max"]]))
        .collect();
    assert_eq!(
        json!(reports),
        json!([["main/plan", 1, 0], ["main/task-1", 1, 1], ["main/task-1.2", 2, 1], ["main", 1, 1]])
    );
    assert_eq!(self::report(&events)["feedback_counts"], json!({"gated_call": 1, "stage_retry": 1}));
    let lines = [plan(&["Write b.txt"]), blocked.clone(), blocked];
    run(&project, "branched", &lines).run().exits(1);
}

#[test]
fn verify_decides_when_the_work_is_done() {
    let project = project();
    let lines = [
        Line::text("Done."),
        write("b.txt"),
        Line::call("finish", json!({"status": "done"})),
        Line::call("write_file", json!({"path": "ok.txt", "content": "ok\n"})).with_text("This should do."),
        Line::text("never asked for"),
    ];
    let script = project.script(&lines);
    let verify = "test -f ok.txt || { echo 'ok.txt is missing'; exit 1; }";
    let events = run_json(&project, &script).args(["--verify", verify]).run().exits(0).events();
    insta::assert_snapshot!(outline(&events), @r"
    main: started
    main: ok false
    main: told: The work is not done: `test -f ok.txt || { echo 'ok.txt is missing'; exit 1; }` does not pass.
    main: ok true
    main: ok false
    main: told: The work is not done: `test -f ok.txt || { echo 'ok.txt is missing'; exit 1; }` does not pass.
    main: refused
    main: ok true
    main: ok true
    main: completed
    ");
    let report = report(&events);
    assert_eq!(report["verify"], json!({"command": verify, "passed": true, "runs": 3}));
    assert_eq!(report["tool_call_counts"], json!({"finish": 1, "write_file": 2}));
    assert_eq!(report["feedback_counts"], json!({"verify_failed": 3}));
    assert_eq!(events.last().unwrap()["answer"], "This should do.");
}

#[test]
fn a_write_that_changes_nothing_is_verified_once_and_the_failure_told() {
    let project = project();
    let same = Line::call("write_file", json!({"path": "a.txt", "content": "one\n"}));
    let lines = [
        read("a.txt"),
        same.clone(),
        same,
        Line::call("write_file", json!({"path": "ok.txt", "content": "ok\n"})),
        Line::text("never asked for"),
    ];
    let script = project.script(&lines);
    let events = run_json(&project, &script).args(["--verify", "test -f ok.txt"]).run().exits(0).events();
    insta::assert_snapshot!(outline(&events), @r"
    main: started
    main: ok true
    main: ok true
    main: ok false
    main: told: The work is not done: `test -f ok.txt` does not pass.
    main: ok true
    main: ok true
    main: ok true
    main: completed
    ");
    std::fs::remove_file(project.dir().join("ok.txt")).unwrap();
    let events = run_json(&project, &script).args(["--verify", "true"]).run().exits(0).events();
    assert!(project.read("ok.txt") == "ok\n" && report(&events)["files_changed"] == json!(["ok.txt"]));
}

#[test]
fn tasks_of_a_plan_that_share_an_id_get_ids_of_their_own() {
    let project = project();
    let task = |description: &str| json!({"id": "x", "description": description});
    let tasks = json!([task("First"), task("Second"), task("Third")]);
    let lines = [Line::call("plan_tasks", json!({"action": "create", "tasks": tasks})), Line::text("Done.")];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    let shown = of_type(&events, "tool_result")[0]["content"].as_str().unwrap();
    assert_eq!(shown, "[ ] x. First\n[ ] x-2. Second\n[ ] x-3. Third");
}

#[test]
fn answers_that_change_nothing_are_told_so_briefly_and_the_fifth_ends_the_task() {
    let project = project();
    let lines = [
        Line::text("Done."),
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::text("I am done."),
        Line::text(""),
        Line::text("It is done."),
        Line::text("All done."),
        Line::text("Done, really."),
        Line::text("Believe me."),
        Line::text("never asked for"),
    ];
    let verify = "seq 30; echo 'ok.txt is missing'; test -f ok.txt";
    let script = project.script(&lines);
    let events = run_json(&project, &script).args(["--verify", verify]).run().exits(1).events();
    let mut output: Vec<&str> = of_type(&events, "message")
        .into_iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    assert!(output[0].contains(": `seq 30;") && output[0].contains("\n1\n2\n"), "{}", output[0]);
    let again = format!(
        "The work is still not done: no file has changed since `{verify}` failed, and words alone change none.\n\n"
    );
    let way_on = "\n\nFind out why, and call a tool that changes what is wrong.";
    let empty = output.iter().position(|text| *text == "Your last reply was empty. Call a tool to go on.");
    output.remove(empty.unwrap_or_else(|| panic!("{output:#?}")));
    for text in &output[1..] {
        let rest = text.strip_prefix(again.as_str()).and_then(|text| text.strip_suffix(way_on));
        let rest = rest.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(rest.lines().count(), 8, "{rest}");
        assert!(rest.contains("ok.txt is missing"), "{rest}");
    }
    assert_eq!(output.len(), 6);
    let error = &events.last().unwrap()["error"];
    assert_eq!(
        *error,
        json!({
            "code": "TURN_FAILED",
            "reason": "execution_halted",
            "message": "the model answered 5 times in a row without a tool call or a file change, although the work is not finished",
        })
    );
}

#[test]
fn a_kill_in_any_stage_is_survived() {
    use fusee_testkit::kill_injection::{KillInjector, KillTime};
    let killer = KillInjector::build();
    let lines = |project: &Project| {
        project.script(&[
            read("a.txt"),
            Line::text("a.txt holds one."),
            plan(&["Change a.txt"]),
            Line::text("A plan."),
            write("a.txt"),
            Line::text("Changed it."),
        ])
    };
    let start = |project: &Project, script: &str| {
        run_json(project, script)
            .args(["--flow", "staged3", "--run-id", "sweep"])
            .args(["--verify", "true"])
            .run()
    };
    let whole = project();
    let expected = start(&whole, &lines(&whole)).exits(0).events();
    for n in (1..=24).step_by(2) {
        let project = project();
        let script = lines(&project);
        let command = run_json(&project, &script)
            .args(["--flow", "staged3", "--run-id", "sweep"])
            .args(["--verify", "true"]);
        let outcome = killer.kill_at(command, n, KillTime::After).run();
        if outcome.was_killed() {
            let resumed = fusee(&project).args(["resume", "sweep", "--json"]).run();
            if resumed.code == Some(2) {
                continue;
            }
            assert_eq!(resumed.code, Some(0), "killed after write {n}: {resumed:#?}");
        }
        let shown = fusee(&project).args(["show", "sweep", "--json"]).run().exits(0);
        let events = fusee_testkit::events::read_checked(&shown.stdout, fusee_testkit::events::Part::Whole);
        assert_eq!(
            report(&events)["files_changed"],
            report(&expected)["files_changed"],
            "killed after write {n}"
        );
        assert_eq!(outline(&events), outline(&expected), "killed after write {n}");
        assert_eq!(project.read("a.txt"), "new\n");
        fusee(&project).args(["replay", "sweep"]).run().exits(0);
    }
}

#[test]
fn files_that_commands_changed_are_in_the_report_and_those_only_touched_are_not() {
    let project = project().with(".gitignore", "*.log\n").with("gone.txt", "g\n").with("same.txt", "s\n");
    let shell = |command: &str| Line::call("shell", json!({ "command": command }));
    let lines = [
        shell("echo x >> a.txt; mv gone.txt moved.txt; touch same.txt; echo l > x.log; echo m > made.txt"),
        shell("rm made.txt; printf 'changed' > same.txt"),
        shell("printf 's\\n' > same.txt"),
        Line::text("Done."),
    ];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    assert_eq!(report(&events)["files_changed"], json!(["a.txt", "gone.txt", "moved.txt"]));
    let changed: Vec<String> = of_type(&events, "file_changed")
        .into_iter()
        .map(|event| format!("{} {}", event["change"].as_str().unwrap(), event["path"].as_str().unwrap()))
        .collect();
    assert_eq!(
        changed,
        [
            "modified a.txt",
            "deleted gone.txt",
            "created made.txt",
            "created moved.txt",
            "deleted made.txt",
            "modified same.txt",
            "modified same.txt"
        ]
    );
}
