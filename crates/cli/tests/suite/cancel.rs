//! Cancellation: one signal ends the run, its request and its commands, and every call gets a result.

use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Outcome, Project, Running};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Reply, ReplyPosition, Server};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{fusee, run_json, run_on};

#[track_caller]
fn is_cancelled(outcome: Outcome) -> Outcome {
    let outcome = outcome.exits(130);
    let events = outcome.events();
    let last = events.last().unwrap();
    assert_eq!(
        (&last["status"], &last["error"]["code"]),
        (&json!("cancelled"), &json!("CANCELLED")),
        "{}",
        outcome.stdout
    );
    outcome
}

fn wait_for_call(running: &mut Running) {
    running.wait_for_stdout("tool_call", |out| out.contains("\"tool_call\""));
}

#[test]
fn a_signal_during_a_command_ends_its_whole_tree() {
    for signal in [Signal::INT, Signal::TERM] {
        let project = Project::new();
        // One child in the foreground, one in the background, one that left the process group.
        let command = "sleep 71 & setsid sleep 72 & sleep 73";
        let script = project.script(&[Line::call("shell", json!({"command": command})), Line::text("Done.")]);
        let mut running = run_json(&project, &script).start();
        wait_for_call(&mut running);
        while project.processes().len() < 4 {
            assert!(running.is_running());
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal(signal);
        let outcome = is_cancelled(running.wait());
        let events = outcome.events();
        let result = of_type(&events, "tool_result")[0];
        assert_eq!((&result["ok"], &result["fate"]), (&json!(false), &json!("aborted")), "{result:#}");
        project.assert_no_process_left();
    }
}

#[test]
fn a_signal_during_a_request_ends_the_request() {
    let text = Message::text("This never comes to its end.").stream();
    let middle = ReplyPosition::Body(text.body_position("never"));
    for reply in [Reply::silence(), text.clone().hanging(ReplyPosition::Body(0)), text.hanging(middle)] {
        let project = Project::new();
        let server = Server::start([reply]);
        let running = run_on(&project, &server).start();
        server.wait_for_requests(1, Duration::from_secs(20));
        running.signal(Signal::INT);
        is_cancelled(running.wait());
        server.wait_until_abandoned(0, Duration::from_secs(5));
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_signal_during_a_wait_before_a_retry_ends_the_wait() {
    let project = Project::new();
    let server = Server::start([Reply::error(429, "later").header("retry-after", "600")]);
    let mut running = run_on(&project, &server).start();
    running.wait_for_stdout("retry", |out| out.contains("\"retry\""));
    running.signal(Signal::TERM);
    let outcome = is_cancelled(running.wait());
    assert!(outcome.elapsed < Duration::from_secs(20), "{:?}", outcome.elapsed);
}

#[test]
fn a_cancelled_run_stays_cancelled() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("shell", json!({"command": "echo x >> effects.txt; sleep 60"})),
        Line::text("Done."),
    ]);
    let mut running = run_json(&project, &script).args(["--run-id", "stopped"]).start();
    wait_for_call(&mut running);
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::INT);
    is_cancelled(running.wait());
    fusee(&project).args(["resume", "stopped"]).run().exits(130);
    assert_eq!(project.read("effects.txt"), "x\n");
}
