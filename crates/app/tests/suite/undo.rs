//! `fusee runs undo`: what a run changed is taken back from its journal, and what is not is said before.

use std::os::unix::fs::PermissionsExt as _;

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::json;

use crate::fusee::{fusee, run_json};

/// A run that changes, makes and deletes files, some of them twice.
fn changed() -> Project {
    let project = Project::new()
        .with("edited.txt", "one\ntwo\n")
        .with("moved.txt", "old name\n")
        .with("script.sh", "#!/bin/sh\necho before\n");
    std::fs::write(project.dir().join("bytes.bin"), b"\xff\x00before").unwrap();
    let script = project.dir().join("script.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let patch = "*** Begin Patch\n*** Update File: moved.txt\n*** Move to: sub/new.txt\n@@\n-old name\n+new name\n*** Delete File: script.sh\n*** End Patch\n";
    let model = project.script(&[
        Line::call("read_file", json!({"path": "edited.txt"})),
        Line::call("edit_file", json!({"path": "edited.txt", "old": "two", "new": "2"}))
            .and_call("edit_file", json!({"path": "edited.txt", "old": "one", "new": "1"})),
        Line::call("write_file", json!({"path": "made.txt", "content": "made\n"}))
            .and_call("apply_patch", json!({"patch": patch})),
        Line::call("shell", json!({"command": "echo from a command > other.txt"})),
        Line::text("Done."),
    ]);
    run_json(&project, &model).args(["--run-id", "r"]).run().exits(0);
    assert_eq!(project.read("edited.txt"), "1\n2\n");
    assert_eq!(project.read("sub/new.txt"), "new name\n");
    project
}

#[test]
fn a_run_is_taken_back_and_a_dry_run_only_says_so() {
    let project = changed();
    let dry = fusee(&project).args(["runs", "undo", "r", "--dry-run"]).run().exits(0).stdout;
    assert_eq!(
        dry,
        "not undone     what 1 command of the run changed, if anything:\n                 echo from a command > other.txt\n\
         would be put back  edited.txt\nwould be removed  made.txt\nwould be made again  moved.txt\nwould be made again  script.sh\n\
         would be removed  sub/new.txt\n"
    );
    assert_eq!(project.read("made.txt"), "made\n");
    let done = fusee(&project).args(["runs", "undo", "r"]).run().exits(0).stdout;
    assert_eq!(done, dry.replace("would be ", ""));
    assert_eq!(project.read("edited.txt"), "one\ntwo\n");
    assert_eq!(project.read("moved.txt"), "old name\n");
    assert_eq!(project.read("script.sh"), "#!/bin/sh\necho before\n");
    let mode = std::fs::metadata(project.dir().join("script.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert!(!project.dir().join("made.txt").exists() && !project.dir().join("sub/new.txt").exists());
    let again = fusee(&project).args(["runs", "undo", "r"]).run().exits(0).stdout;
    assert!(again.ends_with("all files hold what they held before the run\n"), "{again}");
}

#[test]
fn a_file_that_was_changed_since_is_left_alone_and_that_is_said_first() {
    let project = changed();
    project.write("edited.txt", "mine now\n");
    let done = fusee(&project).args(["runs", "undo", "r"]).run().exits(1).stdout;
    assert!(done.starts_with("left as it is  edited.txt: it was changed again after the run"), "{done}");
    assert_eq!(project.read("edited.txt"), "mine now\n");
    assert!(!project.dir().join("made.txt").exists());
}

#[test]
fn a_run_that_was_killed_is_taken_back_too_and_one_at_work_is_not() {
    let project = Project::new().with("a.txt", "before\n");
    let model = project.script(&[
        Line::call("write_file", json!({"path": "b.txt", "content": "x\n"})),
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "before", "new": "after"})),
        Line::call("shell", json!({"command": "echo ready > ready; sleep 77"})),
        Line::text("Done."),
    ]);
    let running = run_json(&project, &model).args(["--run-id", "k"]).start();
    while project.read("ready").is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let refused = fusee(&project).args(["runs", "undo", "k"]).run().exits(2);
    assert!(refused.stderr.contains("is at work"), "{}", refused.stderr);
    running.signal(Signal::KILL);
    running.wait();
    fusee(&project).args(["runs", "undo", "k"]).run().exits(0);
    assert_eq!(project.read("a.txt"), "before\n");
    assert!(!project.dir().join("b.txt").exists());
}
