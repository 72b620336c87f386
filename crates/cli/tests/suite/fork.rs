//! `fusee fork` and `fusee adopt`: several attempts side by side, and the changes of one brought back.

use std::path::PathBuf;
use std::process::Command;

use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use serde_json::json;

use crate::support::{fusee, run};

fn sh(project: &Project, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(project.dir()).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A run that changes files in two turns, by a tool and by a command.
fn worked(git: bool) -> Project {
    let project = Project::new().with("a.txt", "zero\n").with("b.txt", "b\n").with("sub/c.txt", "c\n");
    if git {
        let commit = "git -c user.name=n -c user.email=e@e commit -qm first";
        sh(&project, &format!("git init -q; printf 'out/\\n*.jsonl\\n' > .gitignore; git add -A; {commit}"));
    }
    project.write("draft.txt", "not committed\n");
    let model = project.script(&[
        Line::call("write_file", json!({"path": "new.txt", "content": "one\n"}))
            .and_call("shell", json!({"command": "echo one > a.txt"})),
        Line::call("shell", json!({"command": "echo two > a.txt; rm b.txt; chmod 755 sub/c.txt"})),
        Line::text("Done."),
    ]);
    run(&project, &model).args(["--run-id", "r"]).run().exits(0);
    project
}

/// The directory of a fork, from what the command says.
fn directory(outcome: &Outcome) -> PathBuf {
    let line = outcome.stderr.lines().find(|line| line.starts_with("fork ")).expect("where the fork works");
    PathBuf::from(line.split_once(" works in ").unwrap().1)
}

fn listing(project: &Project) -> String {
    sh(
        project,
        "find . -path ./.git -prune -o -path ./.fusee -prune -o -name '*.jsonl' -prune -o -type f -printf '%m %p ' -exec cksum {} ';' | LC_ALL=C sort",
    )
}

#[test]
fn a_fork_in_a_worktree_starts_with_the_files_of_the_turn_and_leaves_the_original_alone() {
    for git in [true, false] {
        let project = worked(git);
        let before = listing(&project);
        let other = project.script(&[
            Line::text("unused: the shared turn"),
            Line::call("shell", json!({"command": "cat a.txt b.txt draft.txt new.txt; echo forked > a.txt; echo x > made.txt"})),
            Line::text("Differently."),
        ]);
        let forked = fusee(&project).args(["fork", "r", "1", "--worktree", "-m", &other]).run().exits(0);
        assert!(forked.stdout.starts_with("Differently.\n"), "{}", forked.stdout);
        let id = forked.stdout.lines().last().unwrap();
        let shown = fusee(&project).args(["show", id, "--json"]).run().exits(0).stdout;
        assert!(shown.contains(r"one\nb\nnot committed\none\n"), "{shown}");
        assert_eq!(listing(&project), before, "git: {git}");
        let tree = directory(&forked);
        assert_eq!(std::fs::read_to_string(tree.join("a.txt")).unwrap(), "forked\n");
        assert_eq!(tree.join(".git").exists(), git);
        // Without a terminal, nobody could say no.
        fusee(&project).args(["adopt", id]).run().exits(2);
        assert_eq!(listing(&project), before);
        // The original has gone on since, which is a conflict: its version is set aside.
        let adopted = fusee(&project).args(["adopt", id, "--yes"]).run().exits(0);
        assert!(adopted.stdout.contains("conflict       a.txt"), "{}", adopted.stdout);
        assert_eq!(
            (project.read("a.txt"), project.read("made.txt")),
            ("forked\n".to_owned(), "x\n".to_owned())
        );
        assert_eq!(project.read(&format!(".fusee/aside/{id}/a.txt")), "two\n");
        let again = fusee(&project).args(["adopt", id, "--yes"]).run().exits(0);
        assert!(again.stdout.contains("the fork changed no files"), "{}", again.stdout);
        fusee(&project).args(["adopt", "r", "--yes"]).run().exits(2);
    }
}

#[test]
fn forks_of_the_start_try_the_same_request_side_by_side() {
    let project = worked(true);
    let before = listing(&project);
    let model = |text: &str| {
        project.script(&[
            Line::call("write_file", json!({"path": "try.txt", "content": text})),
            Line::call("shell", json!({"command": "cat a.txt b.txt"})),
            Line::text("Tried."),
        ])
    };
    let ids = ["one", "two"].map(|name| {
        let (model, id) = (model(name), format!("fork-{name}"));
        let fork = fusee(&project).args(["fork", "r", "--worktree", "--run-id", &id, "--max-turns", "5"]);
        let fork = fork.args(["-m", &model]).run().exits(0);
        assert_eq!(fork.stdout, format!("Tried.\n{id}\n"));
        assert_eq!(std::fs::read_to_string(directory(&fork).join("try.txt")).unwrap(), name);
        assert_eq!(std::fs::read_to_string(directory(&fork).join("a.txt")).unwrap(), "zero\n");
        id
    });
    assert_eq!(listing(&project), before);
    let diff = fusee(&project).args(["runs", "diff", &ids[0], &ids[1]]).run().exits(1).stdout;
    assert!(diff.contains("their files differ:\n--- fork-one/try.txt\n+++ fork-two/try.txt\n"), "{diff}");
    // A fork goes back to a turn in its own directory.
    let back = fusee(&project).args(["rewind", &ids[0], "0", "--yes"]).run().exits(0);
    assert!(back.stderr.contains("will be removed  try.txt"), "{}", back.stderr);
    assert_eq!(listing(&project), before);
}

#[test]
fn worktrees_are_removed_after_adopting_and_by_gc() {
    let project = worked(true);
    let fork = |id: &str| {
        let write = json!({"path": format!("{id}.txt"), "content": "x\n"});
        let model = project.script(&[Line::call("write_file", write), Line::text("Done.")]);
        let fork = fusee(&project).args(["fork", "r", "--worktree", "--run-id", id, "-m", &model]).run();
        directory(&fork.exits(0))
    };
    let [one, two, three] = ["one", "two", "three"].map(fork);
    let registered = || sh(&project, "git worktree list --porcelain | grep -c ^worktree || true");
    assert_eq!(registered().trim(), "4");
    fusee(&project).args(["adopt", "one", "--yes", "--remove"]).run().exits(0);
    assert_eq!(project.read("one.txt"), "x\n");
    assert!(!one.exists() && two.exists());
    // Worktrees go with their runs: the newest finished one is kept.
    let collected = fusee(&project).args(["runs", "gc", "--keep", "1"]).run().exits(0).stdout;
    assert!(collected.contains("removed 1 worktree of forks\n"), "{collected}");
    assert!(!two.exists() && three.exists());
    let collected = fusee(&project).args(["runs", "gc", "--worktrees"]).run().exits(0).stdout;
    assert!(collected.contains("removed 1 worktree of forks\n"), "{collected}");
    assert!(!three.exists());
    assert_eq!(registered().trim(), "1");
}

#[test]
fn a_fork_goes_on_with_a_message_and_without_a_worktree() {
    let project = worked(false);
    let before = listing(&project);
    let model = project.script(&[Line::text("unused"), Line::text("An answer to that.")]);
    let fork = fusee(&project).args(["fork", "r", "1", "Why that way?", "--run-id", "m", "-m", &model]);
    let fork = fork.run().exits(0);
    assert!(fork.stdout.ends_with("\nm\n"), "{}", fork.stdout);
    assert_eq!(listing(&project), before);
    let flow = fusee(&project).args(["fork", "r", "1", "--flow", "staged"]).run().exits(2);
    assert!(flow.stderr.contains("the flow cannot change after 1 turn"), "{}", flow.stderr);
    let missing = fusee(&project).args(["fork", "r", "8", "--worktree"]).run().exits(2);
    assert!(missing.stderr.contains("its turns are 0 (before the run) to 3"), "{}", missing.stderr);
    fusee(&project).args(["fork", "r", "two", "words"]).run().exits(2);
}
