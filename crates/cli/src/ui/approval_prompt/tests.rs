//! What a question shows and what its answers cover.

use serde_json::json;

use super::*;

fn question(name: &str, arguments: Value) -> ApprovalQuestion {
    ApprovalQuestion { call_id: "1".into(), name: name.into(), arguments, reason: String::new() }
}

fn shown(name: &str, arguments: &Value) -> Vec<String> {
    subject(name, arguments, None).iter().map(|row| row.paint(false)).collect()
}

#[test]
fn a_command_is_shown_with_every_line_its_directory_and_its_input() {
    let command: String = (1..=40).map(|n| format!("echo {n}\n")).collect();
    let rows = shown(
        "shell",
        &json!({"command": command, "workdir": "sub", "stdin": "rm -rf ~\nmore\n", "background": true}),
    );
    assert_eq!(rows.len(), 40 + 1 + 1 + 1 + 2);
    assert_eq!(rows[39], "echo 40");
    assert_eq!(
        rows[40..],
        [
            "in sub",
            "in the background: it keeps running after the call",
            "with this input:",
            "< rm -rf ~",
            "< more"
        ]
    );
    assert!(length_notice(rows.len()).is_some() && length_notice(3).is_none());
    assert_eq!(shown("remote", &json!({"a": 1})), ["{", "  \"a\": 1", "}"]);
}

#[test]
fn the_answers_say_what_they_cover() {
    let command = question("shell", json!({"command": "cargo test"}));
    assert_eq!(
        choices(&command, ApprovalExtent::Shown, "until the run ends"),
        [
            "y  this call only",
            "s  exactly this command, until the run ends",
            "a  exactly this command, always in this project; `fusee approvals` revokes it",
            "w  make s and a wider: every command that begins with `cargo test`",
            "n  refuse; a reason for the model may follow",
        ]
    );
    assert_eq!(
        choices(&command, ApprovalExtent::Wider, "until the run ends")[2..4],
        [
            "a  every command that begins with `cargo test`, always in this project; `fusee approvals` revokes it",
            "w  back to: exactly this command",
        ]
    );
    // A line that is not plain words has no wider extent.
    let odd = question("shell", json!({"command": "echo $HOME"}));
    assert_eq!(choices(&odd, ApprovalExtent::Shown, "").len(), 4);
    let edit = question("edit_file", json!({"path": "src/a.rs", "old": "a", "new": "b"}));
    assert_eq!(covers(&edit, ApprovalExtent::Shown).unwrap(), "edit_file on src/a.rs");
    assert_eq!(covers(&edit, ApprovalExtent::Wider).unwrap(), "every call of edit_file, whatever it changes");
}
