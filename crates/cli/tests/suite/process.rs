//! The process: what it leaves behind when it is killed, and how it handles system limits.

use std::time::{Duration, Instant};

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{binary, fusee};

/// Command lines of processes on this machine that contain this word.
fn processes_with(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()))
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

fn within_seconds(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A duration for `sleep` that no other process on the machine uses.
fn mark(project: &Project, sandbox: &str) -> String {
    let name = project.dir().display().to_string() + sandbox;
    format!("7{}", name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte)))
}

#[test]
fn kill_9_leaves_no_process_of_a_command_behind() {
    for sandbox in ["off", "on"] {
        let project = Project::new();
        let mark = mark(&project, sandbox);
        // Children in their own sessions, in another directory, ignoring signals, and orphaned.
        let command = format!(
            "cd /; sleep {mark} & setsid sleep {mark} & (setsid sh -c 'trap \"\" HUP TERM INT; (setsid sleep {mark} </dev/null >/dev/null 2>&1 &); sleep {mark}' &); exec sleep {mark}"
        );
        let script = project.script(&[Line::call("shell", json!({"command": command})), Line::text("Done.")]);
        let line = ["run", "x", "--json", "--sandbox", sandbox, "--model", &script];
        let mut running = fusee(&project).args(line).start();
        while processes_with(&mark).len() < 5 {
            assert!(running.is_running(), "{}", running.stdout_so_far());
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal(Signal::KILL);
        assert!(running.wait().was_killed());
        within_seconds("a process was left", || processes_with(&mark).is_empty());
        project.assert_no_process_left();
    }
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_death() {
    let project = Project::new();
    let script = project.script(&[Line::text("Done.")]);
    let line = format!("ulimit -f 8; exec {} run x --sandbox off --model {script}", binary());
    let outcome = project.command("/bin/sh").args(["-c", &line]).run();
    assert_eq!((outcome.code, outcome.signal), (Some(1), None), "{outcome:#?}");
    assert!(outcome.stderr.contains("journal.db"), "{outcome:#?}");
}

#[test]
fn commands_keep_the_users_limit_of_open_files_and_fusee_takes_what_it_may() {
    let project = Project::new();
    let command = "ulimit -n; grep 'open files' /proc/$FUSEE/limits";
    let command =
        command.replace("$FUSEE", "$(ps -o ppid= -p $(ps -o ppid= -p $PPID | tr -d ' ') | tr -d ' ')");
    let script = project.script(&[Line::call("shell", json!({"command": command})), Line::text("Done.")]);
    let line = format!(
        "ulimit -Sn 64; ulimit -Hn 512; exec {} run x --json --sandbox off --model {script}",
        binary()
    );
    let events = project.command("/bin/sh").args(["-c", &line]).run().exits(0).events();
    let result = of_type(&events, "tool_result")[0]["content"].as_str().unwrap().to_owned();
    let words: Vec<&str> = result.split_whitespace().collect();
    assert_eq!(words[..6], ["64", "Max", "open", "files", "512", "512"], "{result}");
}

#[test]
fn a_task_whose_commands_kill_the_process_that_starts_them_again_and_again_fails() {
    let project = Project::new();
    let kill = |n: u32| json!({"command": format!("kill -9 $(ps -o ppid= -p $PPID) # {n}")});
    let mut lines: Vec<Line> = (0..20).map(|n| Line::call("shell", kill(n))).collect();
    lines.push(Line::text("Done."));
    let script = project.script(&lines);
    let ran =
        fusee(&project).args(["run", "x", "--json", "--sandbox", "off", "--model", &script]).run().exits(1);
    let ends = of_type(&ran.events(), "task_complete").len();
    assert_eq!(ends, 1, "{ran:#?}");
    assert!(ran.stdout.contains("The process that starts commands is gone"), "{ran:#?}");
}
