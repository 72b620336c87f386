//! When an entire file may be written, the answer, and settling of an interrupted write.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use serde_json::json;

use crate::test_support::TestWorkspace;
use crate::tool::{FileEffects, InterruptedOutcome, ToolOutput};
use crate::workspace::content::{ContentHash, FileChange, SeenVersion};
use crate::workspace::{BackupContent, FileVersion};

/// The version of a text file that a call left.
fn version(path: &str, text: &str) -> Box<FileEffects> {
    let content = BackupContent::Text(text.to_owned());
    let version = FileVersion { path: path.to_owned(), via: None, mode: 0o100_644, content };
    Box::new(FileEffects { versions: Box::new([version]), ..FileEffects::default() })
}

#[test]
fn a_new_file_is_made_with_its_directories() {
    let trial = TestWorkspace::new(&[]);
    let output = trial.call("write_file", json!({"path": "a/b/c.txt", "content": "one\ntwo\n"}));
    let hash = ContentHash::of(b"one\ntwo\n");
    assert_eq!(
        output,
        ToolOutput {
            seen: vec![SeenVersion { path: "a/b/c.txt".to_owned(), hash }],
            changed: vec![FileChange {
                path: "a/b/c.txt".to_owned(),
                before: None,
                after: Some(hash),
                mode: None
            }],
            effects: version("a/b/c.txt", "one\ntwo\n"),
            ..ToolOutput::done("Created `a/b/c.txt` (2 lines, 8 bytes).")
        }
    );
    assert_eq!(trial.content("a/b/c.txt"), "one\ntwo\n");
}

#[test]
fn an_existing_file_is_only_replaced_when_it_was_seen_as_it_is() {
    let trial = TestWorkspace::new(&[("a", "1\n2\n3\n4\n5\n6\n7\n")]);
    let write = json!({"path": "a", "content": "1\n2\n3\nfour\n5\n6\n7\n"});
    assert_snapshot!(trial.refusal("write_file", write.clone()), @"`a` exists and you have not seen what it holds. Read it with read_file first, then repeat the call.");
    trial.answer("read_file", json!({"path": "a", "limit": 1}));
    trial.put("a", "1\n2\n3\n4\n5\n6\n7\n8\n");
    assert_snapshot!(trial.refusal("write_file", write.clone()), @"`a` has changed since you last saw it. Read it again with read_file, then repeat the call.");
    trial.answer("read_file", json!({"path": "a"}));
    assert_snapshot!(trial.answer("write_file", write.clone()), @"
    Replaced `a` (7 lines, 17 bytes). The changed region is now:
    2	2
    3	3
    4	four
    5	5
    6	6
    7	7
    ");
    assert_snapshot!(trial.answer("write_file", write), @"`a` already holds exactly this; nothing was changed. If a change was meant, it is missing in this text.");
}

#[test]
fn what_was_written_counts_as_seen() {
    let trial = TestWorkspace::new(&[]);
    trial.answer("write_file", json!({"path": "a", "content": "one\n"}));
    trial.answer("write_file", json!({"path": "a", "content": "two\n"}));
    assert_eq!(trial.content("a"), "two\n");
}

#[test]
fn mode_and_line_endings_are_kept() {
    let trial = TestWorkspace::new(&[("run.sh", "a\r\nb\r\n")]);
    std::fs::set_permissions(trial.path("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    trial.answer("read_file", json!({"path": "run.sh"}));
    trial.answer("write_file", json!({"path": "run.sh", "content": "a\nc\n"}));
    assert_eq!(trial.content("run.sh"), "a\r\nc\r\n");
    assert_eq!(std::fs::metadata(trial.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn directories_and_places_outside_are_refused() {
    let trial = TestWorkspace::new(&[("src/a", "x")]);
    let refusal = |path: &str| trial.refusal("write_file", json!({"path": path, "content": "x"}));
    assert_snapshot!(refusal("src"), @"`src` is a directory. Use list_dir to see what is in it.");
    assert_snapshot!(refusal("../x"), @"`../x` is outside the workspace. Use a path relative to the workspace root, such as `src/main.rs`; `.` is the root itself.");
    assert_snapshot!(refusal("fusee.toml"), @"`fusee.toml` cannot be changed by tools: it says what tools may do; ask the user to change it.");
}

#[test]
fn a_file_that_changes_between_intent_and_act_is_left_alone() {
    let trial = TestWorkspace::new(&[("a", "one\n")]);
    trial.answer("read_file", json!({"path": "a"}));
    let prepared = trial.prepare("write_file", &json!({"path": "a", "content": "two\n"})).unwrap();
    assert_eq!(
        prepared.intent,
        json!({"changes": [{"path": "a", "before": ContentHash::of(b"one\n"), "after": ContentHash::of(b"two\n")}],
            "kept": [{"path": "a", "mode": 0o644, "text": "one\n"}]})
    );
    assert_eq!(trial.content("a"), "one\n");
    trial.put("a", "somebody else\n");
    let output = trial.perform("write_file", prepared);
    assert_eq!(
        output,
        ToolOutput::error("`a` was changed by something else while this call was on its way. Read it again.")
    );
    assert_eq!(trial.content("a"), "somebody else\n");
}

#[test]
fn an_interrupted_write_is_settled_by_content() {
    let trial = TestWorkspace::new(&[("a", "one\n")]);
    trial.answer("read_file", json!({"path": "a"}));
    let arguments = json!({"path": "a", "content": "two\n"});
    let intent = trial.prepare("write_file", &arguments).unwrap().intent;
    assert_eq!(trial.settle("write_file", &arguments, &intent), InterruptedOutcome::Redo);

    let (before, after) = (ContentHash::of(b"one\n"), ContentHash::of(b"two\n"));
    trial.put("a", "two\n");
    let done = ToolOutput {
        seen: vec![SeenVersion { path: "a".to_owned(), hash: after }],
        changed: vec![FileChange {
            path: "a".to_owned(),
            before: Some(before),
            after: Some(after),
            mode: None,
        }],
        effects: version("a", "two\n"),
        ..ToolOutput::done("Done: `a` changed as asked (the run was interrupted in between).")
    };
    assert_eq!(trial.settle("write_file", &arguments, &intent), InterruptedOutcome::Done(done));

    trial.put("a", "three\n");
    let unknown = "This call was interrupted. `a` now hold neither what was there before nor what the call was to write. Read them before going on.";
    assert_eq!(
        trial.settle("write_file", &arguments, &intent),
        InterruptedOutcome::Unknown(ToolOutput::error(unknown))
    );
}
