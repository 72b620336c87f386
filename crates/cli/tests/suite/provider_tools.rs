//! Calls of provider-defined tools: executed by ours, behind the same gates, and reported under our names in
//! events unless one of our tools has that name.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

const EDITOR: &str = "str_replace_based_edit_tool";

fn results(stdout: &str) -> Vec<(String, bool, String)> {
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls = events.iter().filter(|event| event["type"] == "tool_call");
    let names: Vec<String> = calls.map(|call| call["name"].as_str().unwrap().to_owned()).collect();
    let results = events.iter().filter(|event| event["type"] == "tool_result");
    let output = results
        .map(|result| (result["ok"].as_bool().unwrap(), result["content"].as_str().unwrap().to_owned()));
    names.into_iter().zip(output).map(|(name, (ok, content))| (name, ok, content)).collect()
}

#[test]
fn a_providers_editor_and_shell_are_our_tools() {
    let project = Project::new().with("src/a.txt", "one\ntwo\n");
    let model = project.script(&[
        Line::call(EDITOR, json!({"command": "view", "path": "src/"})),
        Line::call(EDITOR, json!({"command": "view", "path": "src/a.txt"})),
        Line::call(EDITOR, json!({"command": "str_replace", "path": "src/a.txt", "old_str": "two", "new_str": "2"})),
        Line::call(EDITOR, json!({"command": "insert", "path": "src/a.txt", "insert_line": 1, "insert_text": "one and a half\n"})),
        Line::call(EDITOR, json!({"command": "create", "path": "b.txt", "file_text": "made\n"})),
        Line::call("bash", json!({"restart": true})),
        Line::call("bash", json!({"command": "cat src/a.txt"})),
        Line::call(EDITOR, json!({"command": "create", "path": "../outside.txt", "file_text": "x"})),
        Line::call(EDITOR, json!({"command": "create", "path": "fusee.toml", "file_text": "x"})),
        Line::text("Done."),
    ]);
    let stdout = run_json(&project, &model).args(["--run-id", "r"]).run().exits(0).stdout;
    let output = results(&stdout);
    let outline: Vec<(&str, bool)> = output.iter().map(|(name, ok, _)| (name.as_str(), *ok)).collect();
    assert_eq!(
        outline,
        [
            ("list_dir", true),
            ("read_file", true),
            ("edit_file", true),
            ("apply_patch", true),
            ("write_file", true),
            ("shell", true),
            // An alias of the shell tool that every model may use.
            ("bash", true),
            ("write_file", false),
            ("write_file", false),
        ]
    );
    assert_eq!(project.read("src/a.txt"), "one\none and a half\n2\n");
    assert!(output[6].2.starts_with("one\none and a half\n2\n"), "{}", output[6].2);
    assert_eq!(project.read("b.txt"), "made\n");
    fusee(&project).args(["replay", "r"]).run().exits(0);
    fusee(&project).args(["runs", "undo", "r", "--dry-run"]).run().exits(0);
}

#[test]
fn what_is_shut_for_our_tools_is_shut_for_a_providers() {
    let project = Project::new().with("a.txt", "before\n");
    let model = project.script(&[
        Line::call(EDITOR, json!({"command": "create", "path": "made.txt", "file_text": "x"})),
        Line::call("bash", json!({"command": "touch made.txt"})),
        Line::text("Looked."),
    ]);
    let stdout = run_json(&project, &model).args(["--review", "--approve", "never"]).run().exits(0).stdout;
    let refused = results(&stdout);
    assert!(refused.len() == 2 && refused.iter().all(|(_, ok, _)| !ok), "{refused:?}");
    assert!(!project.dir().join("made.txt").exists());
}
