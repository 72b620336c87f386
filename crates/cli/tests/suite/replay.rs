//! Replaying a run from its journal: no model, no network, no workspace.

use std::fs;

use fusee_testkit::events::{kept, normalised};
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Server};
use serde_json::{Value, json};

use crate::support::{fusee, run, run_json, run_on};

#[test]
fn replay_needs_no_model() {
    let project = Project::new();
    let script = project
        .script(&[Line::call("shell", json!({"command": "echo x >> effects.txt"})), Line::text("Done.")]);
    run(&project, &script).args(["--run-id", "once"]).run().exits(0);
    fs::remove_file(script.trim_start_matches("script:")).unwrap();
    let replayed = fusee(&project).args(["replay", "once"]).run().exits(0);
    assert_eq!((replayed.stdout.as_str(), project.read("effects.txt").as_str()), ("Done.\n", "x\n"));
}

#[test]
fn replay_needs_no_network() {
    let project = Project::new();
    let server = Server::start([
        Message::call("shell", json!({"command": "date > when.txt"})),
        Message::text("Done."),
    ]);
    run_on(&project, &server).args(["--run-id", "once"]).run().exits(0);
    let (requests, when) = (server.everything().len(), project.read("when.txt"));
    fusee(&project).args(["replay", "once"]).run().exits(0);
    assert_eq!(server.everything().len(), requests, "the server was asked");
    drop(server);
    let replayed = fusee(&project).args(["replay", "once"]).run().exits(0);
    assert_eq!((replayed.stdout.as_str(), project.read("when.txt")), ("Done.\n", when));
}

#[test]
fn replay_needs_no_workspace() {
    let project = Project::new().with("work/a.txt", "one\n");
    let script = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"})),
        Line::call("shell", json!({"command": "cat a.txt"})),
        Line::text("Done."),
    ]);
    let work = project.dir().join("work");
    let flags = ["-C".as_ref(), work.as_os_str(), "--run-id".as_ref(), "once".as_ref()];
    let first = run_json(&project, &script).args(flags).run().exits(0).events();
    fs::remove_dir_all(&work).unwrap();
    let replayed = fusee(&project).args(["replay", "once", "--json"]).run().exits(0).events();
    assert_eq!(kept(&replayed), kept(&first));
    assert!(!work.exists(), "the replay made the workspace");
}

#[test]
fn a_failed_run_replays_to_its_failure() {
    let project = Project::new();
    let script = project.script(&[Line::error(401, "who are you?")]);
    let first = run_json(&project, &script).args(["--run-id", "bad"]).run().exits(1).events();
    let replayed = fusee(&project).args(["replay", "bad", "--json"]).run();
    assert_eq!(kept(&replayed.events()), kept(&first));
}

#[test]
fn an_exported_cassette_is_a_model() {
    let project = Project::new();
    let script = project
        .script(&[Line::call("shell", json!({"command": "echo x >> effects.txt"})), Line::text("Done.")]);
    run(&project, &script).args(["--run-id", "once"]).run().exits(0);
    let cassette = project.scratch("cassette");
    let exported = fusee(&project).args(["runs", "export", "once", "--cassette"]).run().exits(0);
    fs::write(&cassette, exported.stdout).unwrap();
    let replayed = run(&project, &format!("replay:{}", cassette.display())).run().exits(0);
    assert_eq!((replayed.stdout.as_str(), project.read("effects.txt").as_str()), ("Done.\n", "x\nx\n"));
}

#[test]
fn a_recorded_run_is_a_model_once_its_server_is_gone() {
    let project = Project::new();
    let cassette = project.scratch("tape").display().to_string();
    let server = Server::start([
        Message::call("shell", json!({"command": "echo x >> effects.txt"})).stream(),
        Message::text("Done.").stream(),
    ]);
    let live = run_on(&project, &server).args(["--record", &cassette]).run().exits(0).events();
    drop(server);
    fs::remove_file(project.dir().join("effects.txt")).unwrap();
    let replayed = run_json(&project, &format!("replay:{cassette}")).run().exits(0).events();
    let plain = |events: &[Value]| -> Vec<Value> {
        let model_apart = |mut event: Value| {
            event.as_object_mut().map(|fields| fields.remove("model"));
            event
        };
        normalised(events).into_iter().map(model_apart).collect()
    };
    assert_eq!(plain(&replayed), plain(&live));
    assert_eq!(project.read("effects.txt"), "x\n");
}
