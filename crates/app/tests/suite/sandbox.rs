//! Commands are confined unless the user says otherwise, and the events say which it was.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::fusee::fusee;

#[test]
fn commands_are_confined_by_default_or_refused_where_that_cannot_be_had() {
    let project = Project::new();
    let reach = "echo x > inside.txt; echo x > ../outside.txt; echo x > fusee.toml; cat inside.txt";
    let script = project.script(&[Line::call("shell", json!({"command": reach})), Line::text("Done.")]);
    let events = fusee(&project).args(["run", "x", "--json", "--model", &script]).run().exits(0).events();
    let result = of_type(&events, "tool_result")[0];
    match events[0]["sandbox"].as_str() {
        Some("namespaces") => {
            assert_eq!(project.read("inside.txt"), "x\n");
            assert!(result["content"].as_str().unwrap().contains("x\n"), "{result:#}");
        }
        Some("none") => assert_eq!(result["fate"], json!("refused"), "{result:#}"),
        other => panic!("confined by {other:?}"),
    }
    assert!(!project.dir().join("../outside.txt").exists(), "a command wrote outside of the workspace");
    assert!(!project.dir().join("fusee.toml").exists(), "a command wrote the project's settings");
}

#[test]
fn sandbox_off_is_the_users_word_and_is_in_the_events() {
    let project = Project::new();
    let script =
        project.script(&[Line::call("shell", json!({"command": "echo x > in.txt"})), Line::text("Done.")]);
    let line = ["run", "x", "--json", "--sandbox", "off", "--model", &script];
    let events = fusee(&project).args(line).run().exits(0).events();
    assert_eq!(events[0]["sandbox"], json!("off"));
    assert_eq!(project.read("in.txt"), "x\n");
}

#[test]
fn the_network_and_more_of_the_machine_can_be_allowed() {
    let project = Project::new();
    let more = project.scratch("more");
    std::fs::create_dir(&more).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5); print(\"connected\")' 2>/dev/null; echo x > {}/made; true",
        more.display()
    );
    let script = || project.script(&[Line::call("shell", json!({"command": &command})), Line::text("Done.")]);
    let closed = fusee(&project).args(["run", "x", "--json", "--model", &script()]).run().exits(0).events();
    assert!(!of_type(&closed, "tool_result")[0]["content"].as_str().unwrap().contains("connected"));
    assert!(!more.join("made").exists());
    let open = fusee(&project)
        .args(["run", "x", "--json", "--allow-net", "--model", &script()])
        .env("FUSEE_SANDBOX_WRITE", &more)
        .run()
        .exits(0)
        .events();
    if open[0]["sandbox"] == "none" {
        return;
    }
    assert_eq!(open[0]["sandbox"], json!("namespaces, network allowed"));
    assert!(of_type(&open, "tool_result")[0]["content"].as_str().unwrap().contains("connected"));
    assert!(more.join("made").exists());
}

#[test]
fn a_command_that_uses_too_much_is_ended_and_the_model_is_told() {
    let project = Project::new();
    let command = "for n in $(seq 60); do sleep 60 & done; wait";
    let script = project.script(&[Line::call("shell", json!({"command": command})), Line::text("Done.")]);
    let events = fusee(&project)
        .args(["run", "x", "--json", "--model", &script])
        .env("FUSEE_SANDBOX_PROCESSES", "20")
        .run()
        .exits(0)
        .events();
    if events[0]["sandbox"] == "none" {
        return;
    }
    let content = of_type(&events, "tool_result")[0]["content"].as_str().unwrap();
    assert!(
        content.contains("more processes and threads than a command may (sandbox.processes)"),
        "{content}"
    );
    project.assert_no_process_left();
}
