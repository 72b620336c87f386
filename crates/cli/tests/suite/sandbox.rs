//! Commands are sandboxed unless the user opts out, and the events record which sandbox was used.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::support::{binary, fusee};

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

/// The programs themselves only say that a name cannot be resolved.
#[test]
fn a_command_that_needs_the_network_is_told_what_blocks_it() {
    let project = Project::new();
    let lookup = "python3 -c 'import socket; socket.create_connection((\"example.invalid\", 80), 5)'";
    let script = |command: &str| {
        project.script(&[Line::call("shell", json!({"command": command})), Line::text("Done.")])
    };
    let output = "[the sandbox blocks the network: only the command's own loopback can be reached; only the user can \
        allow more, with sandbox.network = \"on\"]";
    let ran = fusee(&project).args(["run", "x", "--run-id", "r", "--model", &script(lookup)]).run().exits(0);
    let events = fusee(&project).args(["show", "r", "--json"]).run().exits(0).events();
    if events[0]["sandbox"] == "none" {
        return;
    }
    let content = of_type(&events, "tool_result")[0]["content"].as_str().unwrap().to_owned();
    assert!(content.ends_with(output), "{content}");
    let hint = " · the sandbox blocked the network (--allow-net allows it)\n";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    assert!(fusee(&project).args(["show", "r"]).run().exits(0).stdout.contains(hint));
    let other = format!("echo getaddrinfo; {lookup} 2>/dev/null; true");
    for (command, flag) in [(other.as_str(), "--sandbox=on"), (lookup, "--allow-net")] {
        let ran =
            fusee(&project).args(["run", "x", flag, "--json", "--model", &script(command)]).run().exits(0);
        assert!(!ran.stdout.contains("blocks the network"), "{}", ran.stdout);
    }
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

/// Starts a program with these system calls failing as on other machines: denied, or not implemented.
pub(crate) const ELSEWHERE: &str = r#"
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0)]
for rule in sys.argv[1].split(","):
    call, error = rule.split("=")
    steps += [(0x15, 0, 1, int(call)), (0x06, 0, 0, 0x50000 | int(error))]
steps.append((0x06, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"#;

/// The call denied in containers without namespaces.
pub(crate) const NO_NAMESPACES: &str = if cfg!(target_arch = "x86_64") { "272=1" } else { "97=1" };
/// The call missing in kernels without Landlock.
const NO_LANDLOCK: &str = "444=38";

fn fusee_elsewhere<'p>(project: &'p Project, without: &[&str]) -> fusee_testkit::project::Command<'p> {
    project.command("python3").args(["-c", ELSEWHERE, &without.join(","), binary()])
}

#[test]
fn where_there_are_no_namespaces_landlock_holds_and_its_smaller_promise_is_said() {
    let project = Project::new();
    let reach = "echo x > inside.txt; echo x > ../outside.txt; echo x > fusee.toml; ls ../ || echo hidden; cat inside.txt";
    let script = project.script(&[Line::call("shell", json!({"command": reach})), Line::text("Done.")]);
    let ran = fusee_elsewhere(&project, &[NO_NAMESPACES])
        .args(["run", "x", "--json", "--model", &script])
        .run()
        .exits(0);
    let warning = "warning: namespaces are not available here (";
    assert!(ran.stderr.contains(warning) && ran.stderr.contains("weaker guarantees"), "{}", ran.stderr);
    let events = ran.events();
    assert_eq!(events[0]["sandbox"], json!("landlock"));
    let content = of_type(&events, "tool_result")[0]["content"].as_str().unwrap();
    assert!(content.contains("hidden\nx\n") && content.contains("was put back"), "{content}");
    assert_eq!(project.read("inside.txt"), "x\n");
    assert!(!project.dir().join("../outside.txt").exists(), "a command wrote outside of the workspace");
    assert!(!project.dir().join("fusee.toml").exists(), "a command wrote the project's settings");
    let layers = layers_of(&project, &[NO_NAMESPACES]);
    assert_eq!(layers, [("namespaces", "absent"), ("landlock", "ready"), ("seccomp", "ready")].map(owned));
}

#[test]
fn without_landlock_namespaces_hold_and_without_both_a_command_is_asked_for() {
    let project = Project::new();
    let script =
        || project.script(&[Line::call("shell", json!({"command": "echo x > made"})), Line::text("Done.")]);
    let line = |script: &str| ["run", "x", "--json", "--model", script].map(str::to_owned);
    let run =
        |without: &[&str]| fusee_elsewhere(&project, without).args(line(&script())).run().exits(0).events();
    assert_eq!(run(&[NO_LANDLOCK])[0]["sandbox"], json!("namespaces"));
    assert_eq!(project.read("made"), "x\n");
    let events = run(&[NO_NAMESPACES, NO_LANDLOCK]);
    assert_eq!(events[0]["sandbox"], json!("none"));
    assert_eq!(of_type(&events, "tool_result")[0]["fate"], json!("refused"));
    let layers = layers_of(&project, &[NO_NAMESPACES, NO_LANDLOCK]);
    assert_eq!(layers, [("namespaces", "absent"), ("landlock", "absent"), ("seccomp", "absent")].map(owned));
}

fn owned(layer: (&str, &str)) -> (String, String) {
    (layer.0.to_owned(), layer.1.to_owned())
}

/// Sandbox layers as reported by `fusee doctor`.
fn layers_of(project: &Project, without: &[&str]) -> Vec<(String, String)> {
    let ran = fusee_elsewhere(project, without).args(["doctor", "--quick", "--json"]).run();
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let word = |finding: &serde_json::Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let findings = report["sandbox"].as_array().unwrap().iter();
    findings.take(3).map(|finding| (word(finding, "name"), word(finding, "state"))).collect()
}
