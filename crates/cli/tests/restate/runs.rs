//! Runs that nothing disturbs: the same events, output and exit code as on the embedded engine.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::engine::{Engine, FUSEE, fusee, worker};

/// Events without what differs between any two runs, and without deltas, which are not recorded.
fn comparable(events: &str) -> Vec<Value> {
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let events = events.filter(|event| event["type"] != "gap" && event["type"] != "message_delta");
    events.map(without_times).collect()
}

fn without_times(value: Value) -> Value {
    let timed = ["seq", "ts", "run", "timestamp", "duration_ms", "submission_id"];
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| !timed.contains(&name.as_str()) && !name.ends_with("_ms"))
            .map(|(name, value)| (name, without_times(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_times).collect(),
        plain => plain,
    }
}

fn lines() -> Vec<Line> {
    vec![
        Line::call("write_file", json!({"path": "new.txt", "content": "x\n".repeat(6000)})),
        Line::call("read_file", json!({"path": "a.txt"})).and_call("read_file", json!({"path": "new.txt"})),
        Line::call(
            "shell",
            json!({"command": "chmod +x a.txt && ln -s a.txt link && rm gone.txt && mkdir empty"}),
        ),
        Line::text("All done."),
    ]
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_run_has_the_events_answer_and_exit_code_of_the_embedded_engine_and_its_files_can_be_pulled() {
    let engine = Engine::start();
    let project = Project::new().with("a.txt", "a\n").with("gone.txt", "gone\n");
    let model = project.script(&lines());
    let _worker = worker(&project, &engine);
    let far = ["run", "--json", "--run-id", "far", "-m", &model, "do it"];
    let far = fusee(&project, &engine, &far).run().exits(0);
    assert_eq!(project.read("gone.txt"), "gone\n", "a worker has its own copy of the files");
    let again = ["run", "--run-id", "far", "-m", &model, "do it"];
    let again = fusee(&project, &engine, &again).run().exits(2);
    assert!(again.stderr.contains("run id `far` already exists on the engine"), "{}", again.stderr);

    // Any machine with the blob store sees the same.
    let shown = fusee(&project, &engine, &["show", "far", "--json"]).run().exits(0);
    assert_eq!(comparable(&shown.stdout), comparable(&far.stdout));
    let attached = fusee(&project, &engine, &["attach", "far"]).run().exits(0);
    assert_eq!(attached.stdout, "All done.\n");
    let listed = fusee(&project, &engine, &["runs", "--json"]).run().exits(0);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!((&listed[0]["run"], &listed[0]["title"]), (&json!("far"), &json!("do it")));

    let pulled = fusee(&project, &engine, &["pull", "far"]).run().exits(0);
    let expected =
        ["changed  a.txt", "added    empty", "removed  gone.txt", "added    link", "added    new.txt"];
    assert_eq!(pulled.stdout.lines().collect::<Vec<_>>(), expected);
    assert_eq!(project.read("link"), "a\n");
    assert!(project.dir().join("empty").is_dir() && !project.dir().join("gone.txt").exists());

    let local = Project::new().with("a.txt", "a\n").with("gone.txt", "gone\n");
    let near = local.command(FUSEE).args(["run", "--json", "-m", &local.script(&lines())]);
    let near = near.args(["do it"]).run().exits(0);
    let (mut far, mut near) = (comparable(&far.stdout), comparable(&near.stdout));
    // The scripts are files in different folders.
    far[0]["model"] = Value::Null;
    near[0]["model"] = Value::Null;
    for (far, near) in far.iter().zip(&near) {
        assert_eq!(far, near);
    }
    assert_eq!(far.len(), near.len());
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_task_that_fails_fails_alike_and_a_cancelled_one_ends() {
    let engine = Engine::start();
    let project = Project::new();
    let _worker = worker(&project, &engine);
    let model = project.script(&[Line::error(400, "no such model")]);
    let failed = fusee(&project, &engine, &["run", "-m", &model, "fail"]).run();
    let near = project.command(FUSEE).args(["run", "-m", &model, "fail"]).run();
    assert_eq!((failed.code, &failed.stdout), (near.code, &near.stdout));
    assert_ne!(failed.code, Some(0));

    let slow = project.script(&[Line::text("too late").delay_ms(60_000)]);
    let run = ["run", "--json", "--run-id", "slow", "-m", &slow, "wait"];
    let mut running = fusee(&project, &engine, &run).start();
    running.wait_for_stdout("turn", |text| text.contains("turn_start"));
    fusee(&project, &engine, &["cancel", "slow"]).run().exits(0);
    let ended = running.wait().exits(130);
    assert!(ended.stdout.contains(r#""status":"cancelled""#), "{}", ended.stdout);
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn workflows_run_their_elements_in_parallel_on_a_worker() {
    let engine = Engine::start();
    let project = Project::new();
    let _worker = worker(&project, &engine);
    let program = r#"(pmap (lambda (n) (* n n)) (list 1 2 3))"#;
    let near = project.command(FUSEE).args(["task", program]).run().exits(0);
    let far = fusee(&project, &engine, &["task", program]).run().exits(0);
    assert_eq!(far.stdout, near.stdout);
}
