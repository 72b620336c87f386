//! Errors that an edit brought into a file are shown to the model, by a configured command or a language server.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

/// A checker that names every line with the word `bad`, and counts its runs.
const CHECKER: &str = r#"#!/bin/sh
echo run >> "$HOME/runs" 2>/dev/null || true
grep -n bad "$1" | sed "s|^\([0-9]*\):\(.*\)|$1:\1:1: error: \2 is bad|"
grep -n odd "$1" | sed "s|^\([0-9]*\):.*|$1:\1:1: warning: odd|"
exit 1
"#;

fn project(settings: &str) -> Project {
    let project = Project::new().with("a.txt", "bad one\ngood\n").with("check.sh", CHECKER);
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    project
}

fn results(project: &Project, lines: &[Line]) -> Vec<String> {
    let model = project.script(lines);
    let events = run_json(project, &model).args(["--run-id", "r"]).run().exits(0).events();
    let text = |result: &&Value| result["content"].as_str().unwrap().to_owned();
    let results = of_type(&events, "tool_result").iter().map(text).collect();
    // What was shown is in the journal.
    fusee(project).args(["replay", "r"]).run().exits(0);
    results
}

const ON: &str =
    "diagnostics = { mode = \"on\", commands = { txt = \"sh check.sh {file}\" }, timeout_s = 30 }\n";

fn edits() -> Vec<Line> {
    vec![
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "good", "new": "odd\nbad two"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "bad one", "new": "first\nbad one"})),
        Line::call("write_file", json!({"path": "new.txt", "content": "bad new\n"})),
        Line::call("write_file", json!({"path": "new.rb", "content": "bad new\n"})),
        Line::call("shell", json!({"command": "echo bad three >> a.txt"})),
        Line::text("Done."),
    ]
}

#[test]
fn errors_that_were_not_there_before_are_shown_after_an_edit() {
    let results = results(&project(ON), &edits());
    let note = "[errors that were not there before this edit:\na.txt:3:1: bad two is bad]";
    assert!(results[1].ends_with(note), "{}", results[1]);
    // Moving a line is no new error.
    assert!(!results[2].contains("errors that were not there"), "{}", results[2]);
    assert!(results[3].ends_with("new.txt:1:1: bad new is bad]"), "{}", results[3]);
    for other in [0, 4, 5] {
        assert!(!results[other].contains("errors that were not there"), "{}", results[other]);
    }
}

#[test]
fn without_the_setting_nothing_is_checked() {
    let results = results(&project(""), &edits());
    assert!(results.iter().all(|result| !result.contains("errors that were not there")), "{results:#?}");
}

#[test]
fn a_checker_that_is_too_slow_or_fails_to_start_says_nothing() {
    for command in ["sleep 30; sh check.sh {file}", "no-such-checker {file}"] {
        let settings = format!(
            "diagnostics = {{ mode = \"on\", commands = {{ txt = \"{command}\" }}, timeout_s = 0.2 }}\n"
        );
        let results = results(&project(&settings), &edits());
        assert!(
            results[1].contains("bad two") && !results[1].contains("errors that were not"),
            "{results:#?}"
        );
    }
}

#[test]
fn at_most_ten_errors_are_shown() {
    let content: String = (0..14).map(|n| format!("bad {n}\n")).collect();
    let write = Line::call("write_file", json!({"path": "many.txt", "content": content}));
    let results = results(&project(ON), &[write, Line::text("Done.")]);
    assert!(results[0].ends_with("many.txt:10:1: bad 9 is bad\nand 4 more]"), "{}", results[0]);
}

#[test]
fn a_project_cannot_turn_checks_on_before_it_is_trusted() {
    let project = project("").with("fusee.toml", ON);
    let model = project.script(&edits());
    let refused = run_json(&project, &model).run();
    assert!(
        refused.stderr.contains("diagnostics") || refused.stdout.contains("diagnostics"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stdout.contains("errors that were not there"), "{}", refused.stdout);
}

/// A language server whose first answer takes three seconds; lines with the word `bad` are errors.
const SLOW_SERVER: &str = r#"#!/usr/bin/env python3
import json, sys, time
def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()
is_warm = False
while True:
    length = 0
    while (line := sys.stdin.buffer.readline().strip()):
        length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
    if not length:
        break
    message = json.loads(sys.stdin.buffer.read(length))
    method = message.get("method")
    if method == "initialize":
        send({"id": message["id"], "result": {"capabilities": {}}})
    if method in ("textDocument/didOpen", "textDocument/didChange"):
        if not is_warm:
            time.sleep(3)
            is_warm = True
        document = message["params"]["textDocument"]
        text = document["text"] if method.endswith("didOpen") else message["params"]["contentChanges"][0]["text"]
        place = lambda line: {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}}
        found = [{"range": place(n), "severity": 1, "message": line} for n, line in enumerate(text.split("\n")) if "bad" in line]
        send({"method": "textDocument/publishDiagnostics", "params": {"uri": document["uri"], "version": document["version"], "diagnostics": found}})
"#;

#[test]
fn a_language_server_is_ready_for_the_first_edit_of_a_file_that_was_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = project("diagnostics = { mode = \"on\", timeout_s = 2 }\n")
        .with("a.py", "bad one\n")
        .with("bin/pyright-langserver", SLOW_SERVER);
    let server = project.dir().join("bin/pyright-langserver");
    std::fs::set_permissions(server, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", project.dir().join("bin").display(), std::env::var("PATH").unwrap());
    let model = project.script(&[
        Line::call("read_file", json!({"path": "a.py"})),
        // The model needs longer for the edit than the server for its first answer.
        Line::call("write_file", json!({"path": "a.py", "content": "bad one\nbad two\n"})).delay_ms(6_000),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &model).env("PATH", path).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    let shown = results[1]["content"].as_str().unwrap();
    assert!(shown.ends_with("errors that were not there before this edit:\na.py:2:1: bad two]"), "{shown}");
}
