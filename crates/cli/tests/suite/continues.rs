//! Runs that continue the conversation of an earlier run.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Project, Running};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Script, Server};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{fusee, run, run_json, run_on, with_key};

#[test]
fn the_first_request_begins_with_the_bytes_of_the_last_one_before() {
    let project = Project::new();
    let call = Message::call("shell", json!({"command": "echo one >> effects.txt"}));
    let replies = [call, Message::text("One is written."), Message::text("You asked for it.")];
    let server = Server::start(replies.into_iter().collect::<Script>());
    run_on(&project, &server).args(["--run-id", "first"]).run().exits(0);
    let again = fusee(&project).args(["run", "--continue", "Why?", "--sandbox", "off", "--json"]);
    let again = again.args(["--api", "chat", "--base-url", &server.base_url()]);
    let events = with_key(again).run().exits(0).events();
    assert_eq!(events[0]["continues"], json!("first"));
    assert_eq!(events.last().unwrap()["answer"], json!("You asked for it."));
    let requests = server.requests();
    let messages: Vec<Vec<String>> = requests.iter().map(|request| request.arrived.messages()).collect();
    let (before, after) = (&messages[1], &messages[2]);
    assert_eq!(after[..before.len()], before[..]);
    let added: Vec<&String> = after[before.len()..].iter().collect();
    assert_eq!(added.len(), 2, "{added:?}");
    assert!(added[0].contains("One is written.") && added[1].contains("Why?"), "{added:?}");
}

#[test]
fn plan_and_files_seen_are_taken_over_and_replayed_without_the_earlier_run() {
    let project = Project::new().with("a.txt", "one\n");
    let plan = json!({"action": "create", "tasks": [{"description": "change a"}]});
    let first = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})).and_call("plan_tasks", plan),
        Line::call("finish", json!({"status": "done", "summary": "Planned."})),
    ]);
    run(&project, &first).args(["--run-id", "first"]).run().exits(0);
    let second = project.script(&[
        Line::call("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"}))
            .and_call("plan_tasks", json!({"action": "update", "task_id": "1", "status": "completed"})),
        Line::text("Changed."),
    ]);
    let events =
        run_json(&project, &second).args(["--run-id", "second", "--continue"]).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    assert!(results.iter().all(|result| result["ok"] == json!(true)), "{results:#?}");
    assert_eq!(results[1]["content"], json!("[x] 1. change a"));
    assert_eq!(project.read("a.txt"), "two\n");
    fusee(&project).args(["runs", "gc", "--keep", "1"]).run().exits(0);
    fusee(&project).args(["show", "first"]).run().exits(2);
    fusee(&project).args(["replay", "second"]).run().exits(0);
    // The third run inherits through the second what that inherited from the first.
    let third = project.script(&[Line::call("plan_tasks", json!({"action": "list"})), Line::text("There.")]);
    let events = run_json(&project, &third).args(["--continue"]).run().exits(0).events();
    assert_eq!(of_type(&events, "tool_result")[0]["content"], json!("[x] 1. change a"));
}

#[test]
fn a_file_that_changed_between_the_runs_is_named() {
    let project = Project::new().with("a.txt", "one\n");
    let look = Line::call("read_file", json!({"path": "a.txt"}));
    run(&project, &project.script(&[look, Line::text("Read.")])).run().exits(0);
    project.write("a.txt", "other\n");
    let second = project.script(&[Line::text("I see.")]);
    let events = run_json(&project, &second).args(["--continue"]).run().exits(0).events();
    let output = of_type(&events, "message")[0]["text"].as_str().unwrap();
    assert_eq!(output, "These files changed meanwhile, so read them again before you rely on them: a.txt.");
    // The notice appears once, whether or not the model reads the file; a further change is reported again.
    let output = |words: &str| {
        let script = project.script(&[Line::text(words)]);
        let events = run_json(&project, &script).args(["--continue"]).run().exits(0).events();
        let messages = of_type(&events, "message");
        messages.iter().filter(|message| message["role"] == json!("user")).count()
    };
    assert_eq!(output("Third."), 0);
    assert_eq!(output("Fourth."), 0);
    project.write("a.txt", "yet another\n");
    assert_eq!(output("Fifth."), 1);
    assert_eq!(output("Sixth."), 0);
    let runs = fusee(&project).args(["runs", "--json"]).run().exits(0).stdout;
    let runs: Vec<serde_json::Value> = serde_json::from_str(&runs).unwrap();
    for run in runs {
        fusee(&project).args(["replay", run["run"].as_str().unwrap()]).run().exits(0);
    }
}

#[test]
fn what_changed_meanwhile_is_said_once_also_when_the_run_is_killed_again() {
    let project = Project::new().with("a.txt", "one\n");
    let wait = || Line::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"}));
    let look = Line::call("read_file", json!({"path": "a.txt"}));
    let script = project.script(&[look, wait(), wait(), Line::text("Done.")]);
    let killed = |mut running: Running, begun: usize| {
        while project.read("effects.txt").lines().count() < begun {
            assert!(running.is_running());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        running.signal(Signal::KILL);
        assert!(running.wait().was_killed());
    };
    killed(run_json(&project, &script).args(["--run-id", "killed"]).start(), 1);
    project.write("a.txt", "other\n");
    killed(fusee(&project).args(["resume", "killed", "--json"]).start(), 2);
    fusee(&project).args(["resume", "killed", "--json"]).run().exits(0);
    let events = fusee(&project).args(["show", "killed", "--json"]).run().exits(0).events();
    let output: Vec<_> = of_type(&events, "message")
        .into_iter()
        .filter(|message| message["text"].as_str().unwrap().contains("changed meanwhile"))
        .collect();
    assert_eq!(output.len(), 1, "{output:#?}");
    fusee(&project).args(["replay", "killed"]).run().exits(0);
}

#[test]
fn a_continued_run_that_is_killed_goes_on_as_one() {
    let project = Project::new();
    let plan = json!({"action": "create", "tasks": [{"description": "wait"}]});
    run(&project, &project.script(&[Line::call("plan_tasks", plan), Line::text("Planned.")])).run().exits(0);
    let second = project.script(&[
        Line::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"})),
        Line::call("plan_tasks", json!({"action": "list"})),
        Line::text("Done."),
    ]);
    let mut running = run_json(&project, &second).args(["--run-id", "second", "--continue"]).start();
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    let events = fusee(&project).args(["resume", "second", "--json"]).run().exits(0).events_after_resume();
    assert_eq!(of_type(&events, "tool_result").last().unwrap()["content"], json!("[ ] 1. wait"));
    fusee(&project).args(["replay", "second"]).run().exits(0);
}

#[test]
fn a_run_that_failed_can_be_continued_and_one_that_is_open_cannot() {
    let project = Project::new();
    let nothing = fusee(&project).args(["run", "--continue", "go on", "-m", "script:x"]).run().exits(2);
    assert!(nothing.stderr.contains("no runs here yet"), "{}", nothing.stderr);
    run(&project, &project.script(&[Line::error(401, "no")])).args(["--run-id", "bad-run"]).run().exits(1);
    let good = project.script(&[Line::text("Now it works.")]);
    let continued = run(&project, &good).args(["--continue", "bad-run"]).run().exits(0);
    assert_eq!(continued.stdout, "Now it works.\n");
    let unknown = run(&project, &good).args(["--continue", "bad-rum"]).run().exits(2);
    assert!(unknown.stderr.contains("`bad-run`"), "{}", unknown.stderr);
    let slow = project.script(&[Line::text("late").delay_ms(60_000)]);
    let mut running = run_json(&project, &slow).args(["--run-id", "open"]).start();
    running.wait_for_stdout("a turn", |out| out.contains("turn_start"));
    let open = run(&project, &good).args(["--continue", "open"]).run().exits(2);
    assert!(open.stderr.contains("has not ended"), "{}", open.stderr);
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
}
