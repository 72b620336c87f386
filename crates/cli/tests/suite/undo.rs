//! `fusee runs undo`: reverts the changes of a run from its journal, and reports beforehand what cannot be
//! reverted.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{at_terminal, fusee, run_json};

/// A run that changes, creates and deletes files, some of them twice.
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
        "not undone     changes by 1 command to ignored files, .git or permissions, if any:\n                 echo from a command > other.txt\n\
         would be restored  edited.txt\nwould be removed  made.txt\nwould be recreated  moved.txt\nwould be removed  other.txt\n\
         would be recreated  script.sh\nwould be removed  sub/new.txt\n\
         would be removed  sub/\n"
    );
    assert_eq!(project.read("made.txt"), "made\n");
    // Without a terminal, nobody could say no.
    let before = project.read("a.txt");
    let unasked = fusee(&project).args(["runs", "undo", "r"]).run().exits(2);
    assert!(unasked.stderr.contains("pass --yes"), "{}", unasked.stderr);
    assert_eq!(project.read("a.txt"), before);
    let done = fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0).stdout;
    assert_eq!(done, dry.replace("would be", "will be") + "undone: 6 files, 1 directory\n");
    assert_eq!(project.read("edited.txt"), "one\ntwo\n");
    assert_eq!(project.read("moved.txt"), "old name\n");
    assert_eq!(project.read("script.sh"), "#!/bin/sh\necho before\n");
    let mode = std::fs::metadata(project.dir().join("script.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    for made in ["made.txt", "sub", "other.txt"] {
        assert!(!project.dir().join(made).exists(), "{made}");
    }
    let again = fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0).stdout;
    assert!(again.ends_with("all files already have their content from before the run\n"), "{again}");
}

#[test]
fn a_file_that_was_changed_since_is_left_alone_and_that_is_said_first() {
    let project = changed();
    project.write("edited.txt", "mine now\n");
    let done = fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(1).stdout;
    assert!(done.starts_with("left as it is  edited.txt: changed again after the run"), "{done}");
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
    assert!(refused.stderr.contains("is in progress"), "{}", refused.stderr);
    running.signal(Signal::KILL);
    running.wait();
    let done = fusee(&project).args(["runs", "undo", "k", "--yes"]).run().exits(1).stdout;
    let said = "left as it is  ready: changed during or after an interrupted command\n";
    assert!(done.starts_with(said), "{done}");
    assert_eq!(project.read("ready"), "ready\n");
    assert_eq!(project.read("a.txt"), "before\n");
    assert!(!project.dir().join("b.txt").exists());
}

fn sh(project: &Project, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(project.dir()).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// State of all files in the project: type, permissions, content, symlink targets.
fn state(project: &Project) -> String {
    sh(
        project,
        "find . -name .git -prune -o -name .fusee -prune -o -name '*.jsonl' -prune -o -type f -printf '%m %p ' -exec cksum {} ';' -o -type l -printf '%p -> %l\\n' -o -type d -printf '%p/\\n' | LC_ALL=C sort",
    )
}

/// A repository with unmodified, modified and untracked files.
fn repository() -> Project {
    let project = Project::new()
        .with("clean.txt", "as git has it\n")
        .with("deep/gone.txt", "deleted by a command\n")
        .with("tool.sh", "#!/bin/sh\n")
        .with("dirty.txt", "committed\n")
        .with("packed.txt", "line\n")
        .with(".gitignore", "*.log\n*.jsonl\n");
    sh(
        &project,
        "chmod 755 tool.sh; ln -s clean.txt link; git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm x; git gc -q; \
         sleep 0.03; git update-index -q --refresh; touch .git/index; echo 'changed by hand' > dirty.txt; printf '\\377\\000' > untracked.bin; echo noise > ignored.log",
    );
    project
}

const RAGE: &str = "echo more >> clean.txt; rm -r deep; rm tool.sh; echo overwritten > dirty.txt; rm untracked.bin; \
    ln -sf packed.txt link; echo new > made.txt; mkdir -p one/two && ln -s ../.. one/two/up; mv packed.txt renamed.txt; echo more >> ignored.log";

#[test]
fn what_commands_changed_is_taken_back_from_git_and_from_the_journal() {
    let project = repository();
    let before = state(&project);
    let model = project.script(&[
        Line::call("shell", json!({"command": RAGE})),
        Line::call("write_file", json!({"path": "made.txt", "content": "again\n"})),
        Line::call("shell", json!({"command": "echo 3 >> renamed.txt; git add -A"})),
        Line::text("Done."),
    ]);
    run_json(&project, &model).args(["--run-id", "r"]).run().exits(0);
    let after = state(&project);
    assert_ne!(before, after);
    let plan = fusee(&project).args(["runs", "undo", "r", "--dry-run"]).run().exits(0).stdout;
    assert_eq!(state(&project), after, "a dry run changed something");
    let acts: Vec<&str> = plan.lines().filter(|line| line.starts_with("would be")).collect();
    assert_eq!(
        acts,
        [
            "would be restored  clean.txt",
            "would be recreated  deep/gone.txt",
            "would be restored  dirty.txt",
            "would be restored  link",
            "would be removed  made.txt",
            "would be removed  one/two/up",
            "would be recreated  packed.txt",
            "would be removed  renamed.txt",
            "would be recreated  tool.sh",
            "would be recreated  untracked.bin",
            "would be removed  one/two/",
            "would be removed  one/",
        ]
    );
    fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0);
    let ignored = |state: String| -> Vec<String> {
        state.lines().filter(|line| !line.contains("ignored.log")).map(str::to_owned).collect()
    };
    assert_eq!(ignored(state(&project)), ignored(before));
    assert_eq!(project.read("ignored.log"), "noise\nmore\n");
    let again = fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0).stdout;
    assert!(again.ends_with("all files already have their content from before the run\n"), "{again}");
}

#[test]
fn what_a_command_left_running_changed_is_taken_back_too() {
    let project = Project::new().with("a.txt", "before\n");
    let command = "sleep 0.5; echo after > a.txt; touch done; sleep 60";
    let model = project.script(&[
        Line::call("shell", json!({"command": command, "background": true})),
        Line::call(
            "shell",
            json!({"command": "while ! [ -e done ]; do sleep 0.05; done", "background": false}),
        ),
        Line::text("Done."),
    ]);
    run_json(&project, &model).args(["--run-id", "r"]).run().exits(0);
    assert_eq!(project.read("a.txt"), "after\n");
    fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0);
    assert_eq!(project.read("a.txt"), "before\n");
    assert!(!project.dir().join("done").exists());
}

#[test]
fn what_cannot_be_put_back_is_said_before_the_command_and_before_the_undoing() {
    let project = repository();
    project.write("large.csv", &"x".repeat(1_100_000));
    let model = project.script(&[
        Line::call("shell", json!({"command": "rm large.csv clean.txt packed.txt"})),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &model).args(["--run-id", "r"]).run().exits(0).stdout;
    let message = events.find("\"not_undoable\"").expect("a warning");
    assert!(events[message..].contains("not in git: 1 file (2 MB)"), "{events}");
    assert!(message < events.find("\"tool_result\"").unwrap());
    // Meanwhile git loses one of the other objects.
    let id = sh(&project, "git rev-parse HEAD:packed.txt");
    sh(
        &project,
        &format!(
            "git unpack-objects -q < .git/objects/pack/*.pack 2>/dev/null || true; mv .git/objects/pack/*.pack /tmp/$$.pack; rm -f .git/objects/pack/*; git unpack-objects -q < /tmp/$$.pack; rm -f /tmp/$$.pack .git/objects/{}/{}",
            &id[..2],
            id[2..].trim()
        ),
    );
    let done = fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(1).stdout;
    assert_eq!(
        done,
        "left as it is  large.csv: its original content was not in git and was too large to back up before the run's first command\n\
         left as it is  packed.txt: its original content is no longer in git\n\
         not undone     changes by 1 command to ignored files, .git or permissions, if any:\n                 rm large.csv clean.txt packed.txt\n\
         will be recreated  clean.txt\nundone: 1 file\n"
    );
    assert_eq!(project.read("clean.txt"), "as git has it\n");
}

#[test]
fn a_run_that_was_killed_in_its_command_and_resumed_is_taken_back_whole() {
    let project = repository();
    let before = state(&project);
    let model = project.script(&[
        Line::call("shell", json!({"command": "echo x > dirty.txt; rm clean.txt untracked.bin; echo ready > ready; sleep 77"})),
        Line::text("Done."),
    ]);
    let running = run_json(&project, &model).args(["--run-id", "k"]).start();
    while project.read("ready").is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal(Signal::KILL);
    running.wait();
    fusee(&project).args(["resume", "k"]).run().exits(0);
    assert_ne!(state(&project), before);
    fusee(&project).args(["runs", "undo", "k", "--yes"]).run().exits(0);
    assert_eq!(state(&project), before);
}

#[test]
fn a_file_that_a_tool_wrote_through_a_link_is_put_back_once() {
    let project = Project::new().with("real.txt", "before\n");
    sh(&project, "ln -s real.txt link");
    let model = project.script(&[
        Line::call("shell", json!({"command": "true"})),
        Line::call("read_file", json!({"path": "link"})),
        Line::call("edit_file", json!({"path": "link", "old": "before", "new": "after"})),
        Line::call("shell", json!({"command": "cat link"})),
        Line::text("Done."),
    ]);
    run_json(&project, &model).args(["--run-id", "r"]).run().exits(0);
    assert_eq!(project.read("real.txt"), "after\n");
    fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0);
    assert_eq!(project.read("real.txt"), "before\n");
    assert_eq!(sh(&project, "readlink link"), "real.txt\n");
}

#[test]
fn directories_that_the_run_made_go_and_those_it_took_away_come_back() {
    let project = Project::new().with("a.txt", "a\n");
    sh(&project, "mkdir -p empty/was full/was; echo mine > full/mine.txt");
    let before = state(&project);
    let model = project.script(&[
        Line::call("write_file", json!({"path": "new/by/tool.txt", "content": "x\n"})),
        Line::call("write_file", json!({"path": "empty/by/tool.txt", "content": "x\n"})),
        Line::call("shell", json!({"command": "mkdir -p bare/one bare/two used/inner; rm -r full/was; rmdir empty/was; mkdir again; rmdir again; touch used/x"})),
        Line::call("shell", json!({"command": "mkdir again; mkdir full/more; touch full/more/y"})),
        Line::text("Done."),
    ]);
    run_json(&project, &model).args(["--run-id", "r"]).run().exits(0);
    sh(&project, "echo theirs > used/theirs.txt");
    let done = fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0).stdout;
    let acts: Vec<&str> = done.lines().filter(|line| line.starts_with("will be")).collect();
    assert_eq!(
        acts,
        [
            "will be removed  empty/by/tool.txt",
            "will be removed  full/more/y",
            "will be removed  new/by/tool.txt",
            "will be removed  used/x",
            "will be removed  used/inner/",
            "will be removed  new/by/",
            "will be removed  new/",
            "will be removed  full/more/",
            "will be removed  empty/by/",
            "will be removed  bare/two/",
            "will be removed  bare/one/",
            "will be removed  bare/",
            "will be removed  again/",
            "will be recreated  empty/was/",
            "will be recreated  full/was/",
        ]
    );
    assert!(done.ends_with("undone: 4 files, 11 directories\n"), "{done}");
    // A file that was added meanwhile stays, with its directory.
    sh(&project, "rm used/theirs.txt; rmdir used");
    assert_eq!(state(&project), before);
}

/// A run whose tool writes `tool.txt`; the user then changes that and `notes.txt` while a command runs.
fn changed_by_the_user_during_a_command() -> Project {
    let project = Project::new().with("notes.txt", "before\n");
    let command = "touch started; while ! [ -e go ]; do sleep 0.01; done; echo by the command > made.txt";
    let model = project.script(&[
        Line::call("write_file", json!({"path": "tool.txt", "content": "by the tool\n"})),
        Line::call("shell", json!({"command": command})),
        Line::text("Done."),
    ]);
    let running = run_json(&project, &model).args(["--run-id", "r"]).start();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !project.dir().join("started").exists() {
        assert!(std::time::Instant::now() < deadline, "the command did not start");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    project.write("notes.txt", "by the user\n");
    project.write("tool.txt", "by the user\n");
    project.write("go", "");
    running.wait().exits(0);
    project
}

/// A file that the user writes while a command runs cannot be told from one that the command writes.
#[test]
fn what_the_user_wrote_while_a_command_ran_is_kept() {
    let project = changed_by_the_user_during_a_command();
    let undone = fusee(&project).args(["runs", "undo", "r", "--yes"]).run().exits(0);
    assert_eq!(project.read("notes.txt"), "before\n");
    let copies = project.journal().with_file_name("undone").join("r");
    for name in ["notes.txt", "tool.txt"] {
        assert_eq!(std::fs::read_to_string(copies.join(name)).unwrap(), "by the user\n");
    }
    assert!(undone.stderr.contains(&copies.display().to_string()), "{undone:#?}");
    let kept = fusee(&project).args(["runs", "gc"]).run().exits(0).stdout;
    assert!(!kept.contains("copies") && copies.exists(), "the run is kept: {kept}");
    let removed = fusee(&project).args(["runs", "gc", "--keep", "0"]).run().exits(0).stdout;
    assert!(removed.ends_with("removed the copies of files of 1 undone run\n"), "{removed}");
    assert!(!copies.parent().unwrap().exists());
}

#[test]
fn at_a_terminal_files_that_changed_during_a_command_are_asked_about() {
    let project = changed_by_the_user_during_a_command();
    let mut asked = at_terminal(&project, "runs undo r");
    asked.wait_for_stdout("question", |out| out.contains("undo them as well?"));
    asked.type_in("n\n");
    let said = asked.wait();
    assert!(
        said.stdout.contains("you may have changed them yourself:\r\n  go\r\n  made.txt\r\n  notes.txt"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("left as it is  notes.txt: changed while a command ran"), "{}", said.stdout);
    let names = ["notes.txt", "tool.txt", "made.txt"].map(|name| project.read(name));
    assert_eq!(names, ["by the user\n", "by the user\n", "by the command\n"]);
}
