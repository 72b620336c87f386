//! Translation of provider calls, and the effect of the translated calls.

use super::*;
use crate::test_support::TestWorkspace;

fn ours(name: &str, arguments: Value) -> String {
    match to_own_call(name, &arguments.to_string()) {
        Some((name, arguments)) => format!("{name} {arguments}"),
        None => "as it is".to_owned(),
    }
}

#[test]
fn every_act_of_the_editor_has_a_call_of_ours() {
    let editor = |arguments| ours("str_replace_based_edit_tool", arguments);
    let calls = [
        (json!({"command": "view", "path": "a.rs"}), r#"read_file {"path":"a.rs"}"#),
        (
            json!({"command": "view", "path": "a.rs", "view_range": [3, 5]}),
            r#"read_file {"path":"a.rs","offset":3,"limit":3}"#,
        ),
        (
            json!({"command": "view", "path": "a.rs", "view_range": [3, -1]}),
            r#"read_file {"path":"a.rs","offset":3}"#,
        ),
        (json!({"command": "view", "path": "src/"}), r#"list_dir {"path":"src/"}"#),
        (json!({"command": "view", "path": "."}), r#"list_dir {"path":"."}"#),
        (
            json!({"command": "create", "path": "a", "file_text": "x\n"}),
            r#"write_file {"path":"a","content":"x\n"}"#,
        ),
        (
            json!({"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}),
            r#"edit_file {"path":"a","old":"x","new":"y"}"#,
        ),
        (
            json!({"command": "str_replace", "path": "a", "old_str": "x"}),
            r#"edit_file {"path":"a","old":"x","new":""}"#,
        ),
        (
            json!({"command": "insert", "path": "a", "insert_line": 2, "insert_text": "x\ny\n"}),
            r#"apply_patch {"patch":"--- a\n+++ a\n@@ -2,0 +3,2 @@\n+x\n+y\n"}"#,
        ),
        (json!({"command": "undo_edit", "path": "a"}), "as it is"),
        (json!({"command": "insert", "path": "a"}), "as it is"),
        (json!([1]), "as it is"),
    ];
    for (arguments, expected) in calls {
        assert_eq!(editor(arguments.clone()), expected, "{arguments}");
    }
    let old_name = ours("str_replace_editor", json!({"command": "view", "path": "a"}));
    assert_eq!(old_name, r#"read_file {"path":"a"}"#);
}

#[test]
fn its_shell_is_ours_already_and_starting_anew_is_said() {
    assert_eq!(ours("bash", json!({"command": "ls"})), "as it is");
    let restarted = ours("bash", json!({"restart": true}));
    assert!(restarted.starts_with("shell {\"command\":\"echo 'Every command"), "{restarted}");
    assert_eq!(ours("read_file", json!({"path": "a"})), "as it is");
}

#[test]
fn lines_are_put_where_they_were_asked_for() {
    let trial = TestWorkspace::new(&[]);
    for (line, expected) in
        [(0, "new\nempty\n\none\ntwo\n"), (1, "one\nnew\nempty\n\ntwo\n"), (2, "one\ntwo\nnew\nempty\n\n")]
    {
        trial.put("a", "one\ntwo\n");
        let arguments =
            json!({"command": "insert", "path": "a", "insert_line": line, "insert_text": "new\nempty\n\n"});
        let (name, arguments) = to_own_call("str_replace_based_edit_tool", &arguments.to_string()).unwrap();
        let output = trial.call(name, serde_json::from_str(&arguments).unwrap());
        assert!(output.ok, "{output:?}");
        assert_eq!(trial.content("a"), expected, "after line {line}");
    }
}
