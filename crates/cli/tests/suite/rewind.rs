//! `fusee rewind`: files and conversation of an earlier turn, as a new run.

use std::process::Command;
use std::time::Duration;

use fusee_testkit::kill_injection::file_changes::{FileKillInjector, KILLED};
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{at_terminal, binary, fusee, run, run_json};

/// State of all files in the project: type, permissions, content, symlink targets.
fn state(project: &Project) -> String {
    let script = "find . -name .git -prune -o -name .fusee -prune -o -name '*.jsonl' -prune -o -type f \
                  -printf '%m %p ' -exec cksum {} ';' -o -type l -printf '%p -> %l\\n' -o -type d -printf '%p/\\n' \
                  | LC_ALL=C sort";
    let output = Command::new("sh").args(["-ec", script]).current_dir(project.dir()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A project before any run.
fn fresh() -> Project {
    let project = Project::new()
        .with("edited.txt", "one\ntwo\n")
        .with("moved.txt", "old name\n")
        .with("script.sh", "#!/bin/sh\necho hello\n")
        .with("dir/kept.txt", "kept\n")
        .with("dir/deep/leaf.txt", "leaf\n");
    std::fs::write(project.dir().join("bytes.bin"), b"\xff\x00before").unwrap();
    std::os::unix::fs::symlink("edited.txt", project.dir().join("link")).unwrap();
    project
}

/// Turns that edit, create, delete, rename, chmod and link files, by tools and by commands.
fn turns() -> Vec<Line> {
    let patch = "*** Begin Patch\n*** Update File: moved.txt\n*** Move to: sub/new.txt\n@@\n-old name\n+new name\n*** End Patch\n";
    let shell = |command: &str| Line::call("shell", json!({"command": command}));
    vec![
        Line::call("read_file", json!({"path": "edited.txt"})),
        Line::call("edit_file", json!({"path": "edited.txt", "old": "two", "new": "2"}))
            .and_call("write_file", json!({"path": "made/by/tool.txt", "content": "made\n"})),
        Line::call("apply_patch", json!({"patch": patch})),
        shell("chmod 755 script.sh; chmod 600 edited.txt"),
        shell("rm dir/kept.txt; mv dir/deep elsewhere; printf '\\377\\001after' > bytes.bin"),
        shell("ln -s sub/new.txt pointer; ln -sf script.sh link; ln edited.txt twin.txt; mkdir empty"),
        Line::call("edit_file", json!({"path": "sub/new.txt", "old": "new name", "new": "newer name"})),
        shell("rm -r sub made; mkdir -p made; echo file > sub; echo three >> edited.txt"),
        shell("rm link pointer; mkdir link; echo in > link/inside.txt; chmod 444 twin.txt; rmdir empty"),
        Line::call("write_file", json!({"path": "last.txt", "content": "last\n"})),
    ]
}

/// Runs the first turns in a fresh project; the state after it is the state after that many turns.
fn after(count: usize) -> Project {
    let project = fresh();
    let mut lines = turns();
    lines.truncate(count);
    lines.push(Line::text("Done."));
    let model = project.script(&lines);
    run(&project, &model).args(["--run-id", "r"]).run().exits(0);
    project
}

fn rewind(project: &Project, run: &str, turn: usize) -> String {
    let done = fusee(project).args(["rewind", run, &turn.to_string(), "--yes"]).run().exits(0);
    done.stdout.lines().last().unwrap().to_owned()
}

#[test]
fn files_are_those_of_every_turn_backwards_forwards_and_from_a_rewind() {
    let count = turns().len();
    let mut states: Vec<String> = (0..=count).map(|turns| state(&after(turns))).collect();
    states[0] = state(&fresh());
    let project = after(count);
    assert_eq!(state(&project), states[count]);
    for turn in (0..count).rev() {
        rewind(&project, "r", turn);
        assert_eq!(state(&project), states[turn], "backwards to {turn}");
    }
    for (turn, expected) in states.iter().enumerate() {
        rewind(&project, "r", turn);
        assert_eq!(&state(&project), expected, "forwards to {turn}");
    }
    // A rewind has the turns of the run it came from, also those after it.
    let mut last = rewind(&project, "r", 3);
    for turn in [7, 2, count, 0, 5] {
        last = rewind(&project, &last, turn);
        assert_eq!(state(&project), states[turn], "from a rewind to {turn}");
    }
}

#[test]
fn the_conversation_goes_on_from_the_turn() {
    let project = Project::new().with("a.txt", "zero\n");
    let write = |text: &str| Line::call("write_file", json!({"path": "b.txt", "content": text}));
    let model = project.script(&[write("one\n"), write("two\n"), Line::text("Done.")]);
    run(&project, &model).args(["--run-id", "r"]).run().exits(0);
    let id = rewind(&project, "r", 1);
    assert_eq!(project.read("b.txt"), "one\n");
    // The script goes on after the reply that the rewind kept.
    let events = fusee(&project).args(["resume", &id, "--json"]).run().exits(0).events_after_resume();
    assert_eq!(events.last().unwrap()["answer"], json!("Done."));
    assert_eq!(project.read("b.txt"), "two\n");
    fusee(&project).args(["replay", &id]).run().exits(0);
    // A message continues it as well, and the run it came from is as it was.
    let id = rewind(&project, "r", 1);
    let more =
        project.script(&[Line::call("read_file", json!({"path": "b.txt"})), Line::text("It says one.")]);
    let continued = fusee(&project).args(["run", "--continue", &id, "What is there?", "--model", &more]);
    let events = continued.args(["--sandbox", "off", "--json"]).run().exits(0).events();
    assert_eq!(events[0]["continues"], json!(id));
    assert_eq!(events.last().unwrap()["answer"], json!("It says one."));
    fusee(&project).args(["replay", "r"]).run().exits(0);
    let shown = fusee(&project).args(["show", &id, "--json"]).run().exits(0).stdout;
    let last: serde_json::Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    let message = json!({"type": "rewound", "from_run": "r", "turn": 1, "files": true, "conversation": true});
    for (name, value) in message.as_object().unwrap() {
        assert_eq!(&last[name], value, "{last}");
    }
}

#[test]
fn a_rewind_that_nobody_worked_on_is_ready() {
    let project = after(2);
    let state_of = |run: &str| {
        let runs = fusee(&project).args(["runs", "--json"]).run().exits(0).stdout;
        let runs: Vec<serde_json::Value> = serde_json::from_str(&runs).unwrap();
        runs.iter().find(|listed| listed["run"] == run).unwrap()["state"].clone()
    };
    let both = rewind(&project, "r", 1);
    assert_eq!(state_of(&both), json!("ready"));
    let listed = fusee(&project).args(["runs"]).run().exits(0).stdout;
    assert!(listed.contains("  ready ") && !listed.contains("interrupted"), "{listed}");
    fusee(&project).args(["resume", &both]).run().exits(0);
    assert_eq!(state_of(&both), json!("done"));
    let files = fusee(&project).args(["rewind", "r", "0", "--files", "--yes"]).run().exits(0).stdout;
    assert_eq!(state_of(files.trim()), json!("done"));
}

#[test]
fn files_and_conversation_go_back_separately() {
    let project = after(3);
    let (end, start) = (state(&project), state(&fresh()));
    let talk = fusee(&project).args(["rewind", "r", "0", "--conversation", "--yes"]).run().exits(0).stdout;
    assert_eq!(state(&project), end);
    let spec = fusee(&project).args(["show", talk.trim(), "--json"]).run().exits(0).stdout;
    assert_eq!(spec.lines().count(), 2, "only its start and the rewind: {spec}");
    let files = fusee(&project).args(["rewind", "r", "0", "--files", "--yes"]).run().exits(0).stdout;
    assert_eq!(state(&project), start);
    // It has all of the conversation, and its end.
    let again = fusee(&project).args(["resume", files.trim()]).run().exits(0).stdout;
    assert_eq!(again, "Done.\n");
    // What continues it starts with the files as they are now.
    let more = project
        .script(&[Line::call("write_file", json!({"path": "n.txt", "content": "n\n"})), Line::text("ok")]);
    run(&project, &more).args(["--continue", files.trim(), "--run-id", "c"]).run().exits(0);
    rewind(&project, "c", 0);
    assert_eq!(state(&project), start);
}

#[test]
fn mistakes_are_usage_errors_and_change_nothing() {
    let project = after(3);
    let before = state(&project);
    let unasked = fusee(&project).args(["rewind", "r", "1"]).run().exits(2);
    assert!(unasked.stderr.contains("no terminal") && unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    assert_eq!(unasked.stdout, "");
    let missing = fusee(&project).args(["rewind", "r", "9", "--yes"]).run().exits(2);
    let said = "run r has no turn 9: its turns are 0 (before the run) to 4";
    assert!(missing.stderr.contains(said), "{}", missing.stderr);
    fusee(&project).args(["rewind", "nobody", "1", "--yes"]).run().exits(2);
    fusee(&project).args(["rewind", "r", "two", "--yes"]).run().exits(2);
    fusee(&project).args(["rewind", "r", "1", "--files", "--conversation", "--yes"]).run().exits(2);
    let dry = fusee(&project).args(["rewind", "1", "--dry-run"]).run().exits(0);
    assert!(dry.stderr.contains("would be removed  made/by/tool.txt\n"), "{}", dry.stderr);
    assert_eq!(state(&project), before);
    let runs = fusee(&project).args(["runs", "--json"]).run().exits(0).stdout;
    let runs: Vec<serde_json::Value> = serde_json::from_str(&runs).unwrap();
    assert_eq!(runs.len(), 1, "{runs:?}");
}

#[test]
fn work_of_the_user_is_set_aside_or_left_in_place() {
    let project = after(3);
    project.write("edited.txt", "mine\n");
    project.write("notes.txt", "never touched by the run\n");
    std::fs::remove_file(project.dir().join("sub/new.txt")).unwrap();
    project.write("sub/new.txt/own.txt", "a directory of mine\n");
    let mut asked = at_terminal(&project, "rewind r 3");
    asked.wait_for_stdout("the question", |text| text.contains("rewind? [y/n]"));
    asked.type_in("y\n");
    let said = asked.wait().stdout;
    assert!(said.contains("will be set aside  edited.txt"), "{said}");
    assert_eq!(project.read("edited.txt"), "one\n2\n");
    assert_eq!(project.read("sub/new.txt"), "new name\n");
    assert_eq!(project.read("notes.txt"), "never touched by the run\n");
    let runs = project.dir().join(".fusee/aside").read_dir().unwrap();
    let folder = runs.map(|entry| entry.unwrap().path()).next().unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("edited.txt")).unwrap(), "mine\n");
    assert_eq!(std::fs::read_to_string(folder.join("sub/new.txt/own.txt")).unwrap(), "a directory of mine\n");
    // At the terminal, no is an answer.
    let mut asked = at_terminal(&project, "rewind r 0");
    asked.wait_for_stdout("the question", |text| text.contains("rewind? [y/n]"));
    asked.type_in("n\n");
    asked.wait();
    assert_eq!(project.read("edited.txt"), "one\n2\n");
}

#[test]
fn what_cannot_be_restored_is_listed_and_everything_else_is_restored() {
    let project = Project::new().with("a.txt", "a\n");
    std::fs::write(project.dir().join("large.bin"), vec![7; 5 << 20]).unwrap();
    let model = project.script(&[
        Line::call("shell", json!({"command": "printf x >> large.bin; echo b > a.txt"})),
        Line::text("Done."),
    ]);
    run(&project, &model).args(["--run-id", "r"]).run().exits(0);
    let done = fusee(&project).args(["rewind", "r", "0", "--yes"]).run().exits(1);
    assert!(done.stderr.ends_with("1 file could not be restored, as listed above\n"), "{}", done.stderr);
    assert_eq!(done.stdout.lines().count(), 1, "the id of the new run");
    let lines: Vec<&str> = done.stderr.lines().filter(|line| line.starts_with("not restored")).collect();
    assert_eq!(lines.len(), 2, "{}", done.stderr);
    assert!(lines[0].starts_with("not restored   large.bin: its content"), "{}", lines[0]);
    assert!(lines[1].contains("changes by 1 command"), "{}", lines[1]);
    assert_eq!(project.read("a.txt"), "a\n");
    assert_eq!(std::fs::metadata(project.dir().join("large.bin")).unwrap().len(), (5 << 20) + 1);
}

#[test]
fn a_run_in_progress_is_not_rewound_and_a_killed_one_is() {
    let project = Project::new().with("a.txt", "before\n");
    let model = project.script(&[
        Line::call("write_file", json!({"path": "b.txt", "content": "x\n"})),
        Line::call("shell", json!({"command": "echo ready > ready; echo changed > a.txt; sleep 77"})),
    ]);
    let running = run_json(&project, &model).args(["--run-id", "k"]).start();
    while project.read("ready").is_empty() || project.read("a.txt") != "changed\n" {
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = fusee(&project).args(["rewind", "k", "1", "--yes"]).run().exits(2);
    assert!(refused.stderr.contains("is in progress"), "{}", refused.stderr);
    running.signal(Signal::KILL);
    running.wait();
    rewind(&project, "k", 1);
    assert_eq!((project.read("a.txt"), project.read("b.txt")), ("before\n".to_owned(), "x\n".to_owned()));
    assert!(!project.dir().join("ready").exists());
    rewind(&project, "k", 0);
    assert!(!project.dir().join("b.txt").exists());
}

/// A run that changes many files, so that restoring them takes a while.
fn many() -> Project {
    let project = Project::new();
    for n in 0..150 {
        project.write(&format!("d{}/f{n}.txt", n % 7), &format!("before {n}\n"));
    }
    let command = "for f in d*/f*.txt; do echo after > $f; done; rm -r d3; mv d4 moved; ln -s moved d4";
    let model = project.script(&[Line::call("shell", json!({"command": command})), Line::text("Done.")]);
    run(&project, &model).args(["--run-id", "r"]).run().exits(0);
    project
}

#[test]
fn a_rewind_that_is_killed_is_completed_or_has_not_begun() {
    let (project, injector) = (many(), KillInjector::build());
    let new = state(&project);
    rewind(&project, "r", 0);
    let old = state(&project);
    assert_ne!(old, new);
    let forward = |project: &Project| {
        rewind(project, "r", 1);
        assert_eq!(state(project), new);
    };
    // At writes to the journal.
    forward(&project);
    let (watched, trace) = injector.watch(fusee(&project).args(["rewind", "r", "0", "--yes"]));
    watched.run().exits(0);
    let writes = trace.count();
    assert!(writes > 2, "{}", trace.letters());
    let mut completed = 0;
    // The copy of the run comes first, and has many.
    let late = writes.saturating_sub(8);
    for n in (1..late).step_by(1 + writes / 6).chain(late.max(1)..=writes) {
        forward(&project);
        let command = fusee(&project).args(["rewind", "r", "0", "--yes", "--run-id", &format!("w{n}")]);
        injector.kill_at(command, n, KillTime::After).run();
        let resumed = fusee(&project).args(["resume", &format!("w{n}")]).run();
        let found = state(&project);
        // The model of a resumed run repeats the command of the turn.
        assert!(found == new || found == old, "killed at write {n}: a mixture");
        completed += usize::from(resumed.stderr.contains("was completed"));
    }
    assert!(completed > 0, "no kill fell between the plan and its end");
}

/// The changes without the token in the names of temporary files, which differs from run to run.
fn without_tokens(changes: Vec<String>) -> Vec<String> {
    let temporary = regex::Regex::new(r"\.fusee-[0-9a-f]+").unwrap();
    changes.iter().map(|change| temporary.replace_all(change, ".fusee-TOKEN").into_owned()).collect()
}

#[test]
fn a_rewind_that_is_killed_at_any_change_of_a_file_is_completed_by_the_next_command() {
    let (project, injector) = (after(turns().len()), FileKillInjector::build());
    let new = state(&project);
    let mine = "changed by the user\n";
    project.write("last.txt", mine);
    let (watched, trace) = injector.command(&project, binary(), 0);
    watched.args(["rewind", "r", "0", "--yes"]).run().exits(0);
    let changes = without_tokens(trace.changes());
    let old = state(&project);
    assert_eq!(old, state(&fresh()));
    for kind in ["create ", "rename ", "unlink ", "symlink ", "mkdir ", "rmdir ", "chmod "] {
        assert!(changes.iter().any(|change| change.starts_with(kind)), "no {kind}in {changes:#?}");
    }
    let mut mixtures = 0;
    for n in 1..=changes.len() {
        rewind(&project, "r", turns().len());
        assert_eq!(state(&project), new);
        project.write("last.txt", mine);
        let started = state(&project);
        let (command, trace) = injector.command(&project, binary(), n);
        let id = format!("k{n}");
        command.args(["rewind", "r", "0", "--yes", "--run-id", &id]).run().exits(KILLED);
        // This is where it fell: before the n-th change.
        assert_eq!(without_tokens(trace.changes()), changes[..n]);
        let between = state(&project);
        mixtures += usize::from(between != started && between != old);
        // Any command that works on the project completes it.
        let next = fusee(&project).args(["rewind", "r", "0", "--conversation", "--yes"]).run().exits(0);
        assert!(
            next.stderr.contains(&format!("the interrupted rewind {id} was completed")),
            "{}",
            next.stderr
        );
        assert_eq!(state(&project), old, "killed before `{}`", changes[n - 1]);
        let aside = project.dir().join(".fusee/aside").join(&id).join("last.txt");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), mine, "killed before `{}`", changes[n - 1]);
    }
    // Most kills left a mixture behind; this is what is repaired.
    assert!(mixtures > changes.len() / 2, "{mixtures} of {}", changes.len());
}
