//! Tests of diffs from the arguments of calls.

use serde_json::json;

use super::*;

fn shown(name: &str, arguments: Value, workspace: Option<&Path>) -> String {
    let rows = rows(name, &arguments, workspace).unwrap();
    rows.iter().map(|row| row.paint(false) + "\n").collect()
}

#[test]
fn an_edit_shows_what_goes_and_what_comes() {
    let arguments = json!({"path": "a.rs", "old": "one\ntwo\nthree\n", "new": "one\n2\u{1b}[2J\nthree\n"});
    insta::assert_snapshot!(shown("edit_file", arguments, None), @r"
    a.rs
      one
    - two
    + 2␛[2J
      three
    ");
}

#[test]
fn a_file_written_anew_is_compared_with_what_stands_there() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = json!({"path": "b.txt", "content": "x\ny\n"});
    assert_eq!(shown("write_file", arguments.clone(), Some(folder.path())), "b.txt\n+ x\n+ y\n");
    std::fs::write(folder.path().join("b.txt"), "x\n").unwrap();
    assert_eq!(shown("write_file", arguments, Some(folder.path())), "b.txt\n  x\n+ y\n");
}

#[test]
fn a_patch_is_shown_as_it_is_and_a_command_has_no_diff() {
    let patch = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch";
    assert_eq!(shown("apply_patch", json!({"patch": patch}), None), format!("{patch}\n"));
    assert!(rows("shell", &json!({"command": "rm x"}), None).is_none());
    assert!(rows("edit_file", &json!({"path": "a"}), None).is_none());
}

#[test]
fn before_it_is_made_an_edit_is_shown_in_the_lines_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.txt"), "a\nb = 1\nc\nd\ne\nb = 2\n").unwrap();
    let edit = |old: &str, all: bool| {
        let arguments = json!({"path": "c.txt", "old": old, "new": "x", "all": all});
        shown("edit_file", arguments, Some(folder.path()))
    };
    assert_eq!(edit("1", false), "c.txt\n  a\n- b = 1\n+ b = x\n  c\n  d\n");
    assert_eq!(edit("b =", true), "c.txt\n  a\n- b = 1\n+ x 1\n  c\n  d\n  e\n- b = 2\n+ x 2\n");
    // If the edit does not apply, the requested texts are shown; the tool will report the reason.
    assert_eq!(edit("b =", false), "c.txt\n- b =\n+ x\n");
    assert_eq!(edit("nothing", false), "c.txt\n- nothing\n+ x\n");
}
