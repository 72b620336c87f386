//! Runs that ask: they wait, whatever happens to their worker, and are answered from any machine.

use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::engine::{Engine, fusee, worker};

/// Waits until the oldest open question of a run is about this tool.
fn question(project: &Project, engine: &Engine, run: &str, tool: &str) -> Value {
    let begun = Instant::now();
    loop {
        let listed = fusee(project, engine, &["answer", run, "--json"]).run();
        let list: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
        if let Some(first) = list.get(0).filter(|first| first["name"] == tool) {
            return first.clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no question: {}", listed.stderr);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_question_survives_its_worker_and_is_answered_once_from_another_machine() {
    let engine = Engine::start();
    let project = Project::new();
    let outside = project.home().join("effects");
    let effect = json!({"command": format!("echo x >> {}", outside.display())});
    let model = project.script(&[
        Line::call("shell", effect.clone()),
        Line::call("ask_user", json!({"question": "Which colour?"})),
        Line::call("shell", effect),
        Line::text("Finished."),
    ]);
    let first = worker(&project, &engine);
    let run =
        ["run", "--json", "--run-id", "q", "--approve", "ask", "--sandbox", "off", "-m", &model, "do it"];
    let running = fusee(&project, &engine, &run).limit(Duration::from_secs(180)).start();
    let asked = question(&project, &engine, "q", "shell");
    assert_eq!(asked["run"], "q");

    let _second = worker(&project, &engine);
    first.signal(Signal::KILL);
    let elsewhere = Project::new();
    let blobs = project.home().join(".local/state/fusee/blobs").display().to_string();
    let there = |args: &[&str]| fusee(&elsewhere, &engine, args).args(["--blobs", &blobs]).run();
    let wrong = there(&["answer", "q", "--text", "blue"]).exits(1);
    assert!(wrong.stderr.contains("answered with --allow or --deny"), "{}", wrong.stderr);
    there(&["answer", "q", "--allow"]).exits(0);
    // No worker has taken the run over yet, so the question is still listed; the first answer counts.
    let second = there(&["answer", "q", "--deny"]).exits(1);
    assert!(second.stderr.contains("answered elsewhere first"), "{}", second.stderr);

    let asked = question(&project, &engine, "q", "ask_user");
    assert_eq!(asked["arguments"]["question"], "Which colour?");
    let listed = there(&["answer"]).exits(0);
    assert!(listed.stdout.contains("Which colour?"), "{}", listed.stdout);
    there(&["answer", "q", "--text", "blue"]).exits(0);
    question(&project, &engine, "q", "shell");
    there(&["answer", "q", "--deny", "not twice"]).exits(0);

    let ended = running.wait().exits(0);
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "x\n", "allowed once, refused once");
    assert!(ended.stdout.contains("blue") && ended.stdout.contains("the user said no: not twice"));
    assert!(ended.stderr.contains("`fusee answer q --engine"), "{}", ended.stderr);
    let late = there(&["answer", "q", "--allow"]).exits(1);
    assert!(late.stderr.contains("no such question is open"), "{}", late.stderr);
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_question_that_nobody_answers_is_over_after_its_time() {
    let engine = Engine::start();
    let project = Project::new().with("fusee.toml", "approval_timeout_s = 2\n");
    let model = project
        .script(&[Line::call("write_file", json!({"path": "a", "content": "a"})), Line::text("Without it.")]);
    let _worker = worker(&project, &engine);
    let run = ["run", "--json", "--approve", "ask", "-m", &model, "do it"];
    let ended = fusee(&project, &engine, &run).run();
    assert!(ended.stdout.contains("nobody answered within 2 s"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Without it."), "{}", ended.stdout);
}
