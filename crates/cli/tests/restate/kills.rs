//! Workers and servers that die or stop in the middle of a run: another worker continues, and no effect happens twice.

use std::time::Duration;

use fusee_testkit::project::{Project, Running};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Reply, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::engine::{Engine, fusee, worker};

fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

fn start(project: &Project, engine: &Engine, args: &[&str]) -> Running {
    let common = ["run", "--json", "--sandbox", "off", "do it"];
    fusee(project, engine, &common).args(args).limit(Duration::from_secs(180)).start()
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_worker_killed_during_a_command_is_replaced_and_the_command_does_not_run_again() {
    let engine = Engine::start();
    let project = Project::new().with("kept.txt", "kept\n");
    let outside = project.home().join("started");
    let slow = format!("echo x >> {0}; echo half > half.txt; sleep 30; echo end >> {0}", outside.display());
    let model = project.script(&[
        Line::call("write_file", json!({"path": "first.txt", "content": "first\n"})),
        Line::call("shell", json!({ "command": slow })),
        Line::call("shell", json!({"command": "ls; cat first.txt kept.txt"})),
        Line::text("Finished."),
    ]);
    let first = worker(&project, &engine);
    let running = start(&project, &engine, &["--run-id", "k", "-m", &model]);
    while !outside.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _second = worker(&project, &engine);
    first.signal(Signal::KILL);
    let ended = running.wait().exits(0);
    let events = events(&ended.stdout);
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "x\n", "the command ran once");
    assert_eq!((count(&events, "task_resumed"), count(&events, "task_complete")), (1, 1));
    let results: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_result").collect();
    assert_eq!(results.len(), 3);
    assert!(
        results[1]["content"].as_str().is_some_and(|text| text.contains("interrupted")),
        "{}",
        results[1]
    );
    // The workspace is that of the last recorded entry: with the file of the first call, without the killed command's.
    let listing = results[2]["content"].as_str().unwrap_or_default();
    assert!(listing.contains("first\nkept") && !listing.contains("half.txt"), "{listing}");
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_worker_killed_during_a_model_call_is_replaced_and_recorded_replies_are_not_requested_again() {
    let engine = Engine::start();
    let project = Project::new();
    let server = Server::start(vec![
        Message::call("write_file", json!({"path": "a.txt", "content": "a\n"})).stream(),
        Reply::silence(),
        Message::text("Finished.").stream(),
    ]);
    let first = worker(&project, &engine);
    let url = server.base_url();
    let running = start(&project, &engine, &["-m", "openai:m", "--api", "chat", "--base-url", &url]);
    server.wait_for_requests(2, Duration::from_secs(60));
    let _second = worker(&project, &engine);
    first.signal(Signal::KILL);
    let ended = running.wait().exits(0);
    // The request whose reply was lost is sent again, and only that one.
    assert_eq!(server.requests().len(), 3);
    let events = events(&ended.stdout);
    assert_eq!((count(&events, "file_changed"), count(&events, "task_complete")), (1, 1));
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_server_killed_in_the_middle_of_a_run_comes_back_with_it() {
    let mut engine = Engine::start();
    let project = Project::new();
    let outside = project.home().join("started");
    let slow = format!("echo x >> {}; sleep 3", outside.display());
    let model = project.script(&[
        Line::call("shell", json!({ "command": slow })),
        Line::call("write_file", json!({"path": "a.txt", "content": "a\n"})),
        Line::text("Finished."),
    ]);
    let _worker = worker(&project, &engine);
    let running = start(&project, &engine, &["--run-id", "s", "-m", &model]);
    while !outside.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    engine.kill_and_restart();
    let ended = running.wait().exits(0);
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "x\n", "the command ran once");
    assert_eq!(count(&events(&ended.stdout), "task_complete"), 1);
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_worker_that_was_stopped_until_its_run_was_taken_over_does_nothing_more() {
    let engine = Engine::start();
    let project = Project::new();
    let outside = project.home().join("effects");
    let effect = format!("echo x >> {}", outside.display());
    let server = Server::start(vec![
        Message::text("unused").stream().after(Duration::from_secs(6)),
        Message::call("shell", json!({ "command": effect })).stream(),
        Message::text("Finished.").stream(),
    ]);
    let first = worker(&project, &engine);
    let url = server.base_url();
    let running = start(&project, &engine, &["-m", "openai:m", "--api", "chat", "--base-url", &url]);
    server.wait_for_requests(1, Duration::from_secs(60));
    let _second = worker(&project, &engine);
    first.signal(Signal::STOP);
    let ended = running.wait().exits(0);
    assert_eq!(count(&events(&ended.stdout), "task_resumed"), 1);
    let requests = server.requests().len();
    first.signal(Signal::CONT);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(server.requests().len(), requests, "the stopped worker asks the model nothing more");
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "x\n", "one effect");
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn workers_killed_between_and_in_file_changes_leave_every_change_made_once() {
    const FILES: usize = 24;
    let engine = Engine::start();
    let project = Project::new();
    let write = |n: usize| {
        let content = format!("{n}\n").repeat(2000);
        Line::call("write_file", json!({"path": format!("d/{n}.txt"), "content": content}))
    };
    let count_files = json!({"command": "ls d | wc -l; cat d/*.txt | wc -c"});
    let lines = (0..FILES).map(write).chain([Line::call("shell", count_files), Line::text("Finished.")]);
    let model = project.script(&lines.collect::<Vec<_>>());
    let mut working = worker(&project, &engine);
    let mut running = start(&project, &engine, &["-m", &model]);
    for seen in [3, 9, 15] {
        running.wait_for_stdout("changes", |text| text.matches("\"file_changed\"").count() >= seen);
        let next = worker(&project, &engine);
        working.signal(Signal::KILL);
        working = next;
    }
    let ended = running.wait().exits(0);
    let events = events(&ended.stdout);
    assert_eq!(count(&events, "task_complete"), 1);
    let mut changed: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "file_changed")
        .filter_map(|event| event["path"].as_str())
        .collect();
    changed.sort_unstable();
    assert!(changed.windows(2).all(|pair| pair[0] != pair[1]), "twice: {changed:?}");
    let result = events.iter().rfind(|event| event["type"] == "tool_result").expect("a result");
    let bytes: usize = (0..FILES).map(|n| format!("{n}\n").repeat(2000).len()).sum();
    let text = result["content"].as_str().unwrap_or_default();
    assert!(text.contains(&format!("{FILES}\n{bytes}")), "{text}");
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_worker_killed_during_a_pmap_is_replaced_and_no_element_happens_twice() {
    let engine = Engine::start();
    let project = Project::new();
    let outside = project.home().join("effects");
    let program = format!(
        r#"(pmap (lambda (n) (ok? (system:shell (command (string-append "echo " n " >> {}; sleep " n))))) (list "0" "0.1" "20" "21"))"#,
        outside.display()
    );
    let first = worker(&project, &engine);
    let task = ["task", "--sandbox", "off", &program];
    let running = fusee(&project, &engine, &task).limit(Duration::from_secs(180)).start();
    let effects = || std::fs::read_to_string(&outside).unwrap_or_default();
    while effects().lines().count() < 4 {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(700));
    let _second = worker(&project, &engine);
    first.signal(Signal::KILL);
    let ended = running.wait();
    let mut lines: Vec<String> = effects().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["0", "0.1", "20", "21"], "each command ran once: {}", ended.stderr);
    // The two that were working are told as interrupted, the two that had ended are not.
    assert_eq!(ended.stdout, "(true true false false)\n", "{}", ended.stderr);
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn server_and_worker_killed_together_lose_nothing() {
    let mut engine = Engine::start();
    let project = Project::new();
    let outside = project.home().join("started");
    let slow = format!("echo x >> {}; sleep 30", outside.display());
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "a\n"})),
        Line::call("shell", json!({ "command": slow })),
        Line::call("shell", json!({"command": "cat a.txt"})),
        Line::text("Finished."),
    ]);
    let first = worker(&project, &engine);
    let running = start(&project, &engine, &["--run-id", "b", "-m", &model]);
    while !outside.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    first.signal(Signal::KILL);
    engine.kill_and_restart();
    let _second = worker(&project, &engine);
    let ended = running.wait().exits(0);
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "x\n", "the command ran once");
    let events = events(&ended.stdout);
    assert_eq!((count(&events, "file_changed"), count(&events, "task_complete")), (1, 1));
    let results: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_result").collect();
    let text = |n: usize| results[n]["content"].as_str().unwrap_or_default();
    assert!(text(1).contains("interrupted") && text(2).contains('a'), "{results:?}");
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_client_that_is_killed_takes_no_part_in_the_run_and_another_shows_it_from_its_beginning() {
    let engine = Engine::start();
    let project = Project::new();
    let _worker = worker(&project, &engine);
    let model = project
        .script(&[Line::call("shell", json!({"command": "sleep 3; echo slow"})), Line::text("Finished.")]);
    let mut running = start(&project, &engine, &["--run-id", "c", "-m", &model]);
    running.wait_for_stdout("a call", |text| text.contains("\"tool_call\""));
    running.signal(Signal::KILL);
    let attached = fusee(&project, &engine, &["attach", "c", "--json"]).run().exits(0);
    let events = events(&attached.stdout);
    assert_eq!((count(&events, "task_resumed"), count(&events, "task_complete")), (0, 1));
    assert_eq!(count(&events, "tool_result"), 1);
}
