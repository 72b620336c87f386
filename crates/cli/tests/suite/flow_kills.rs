//! kill -9 in the stages of every flow: the resumed run produces the same files and report, and the changes
//! of a killed command are not lost.

use std::time::Duration;

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::flows::{done, plan, project, read, report, write};
use crate::support::{fusee, run_json};

struct Case {
    mode: &'static str,
    lines: Vec<Line>,
}

/// An agent file with custom stages.
const AGENT: &str = r#"{
  "name": "staged", "description": "Three stages.",
  "flow": [
    {"id": "context", "label": "CONTEXT", "prompt": "Gather context.", "require_files_read": 1},
    {"id": "architect", "prompt": "Propose an approach.", "allow_missing_done": true, "tools_allow": ["read_file"]},
    {"id": "implement", "prompt": "Make the change.", "require_code_change": true}
  ],
  "flow_stage_retries": 1
}"#;

fn cases() -> [Case; 6] {
    let planned = || plan(&["Change a.txt", "Change b.txt"]);
    [
        Case {
            mode: "staged",
            lines: vec![
                read("a.txt"),
                read("tests/test_a.txt"),
                planned(),
                write("b.txt"),
                write("a.txt"),
                Line::text("Done."),
            ],
        },
        Case {
            mode: "staged3",
            lines: vec![
                read("a.txt"),
                Line::text("a.txt matters."),
                planned(),
                Line::text("Planned."),
                write("a.txt"),
                Line::text("Done."),
            ],
        },
        Case {
            mode: "branched",
            lines: vec![
                read("a.txt"),
                planned(),
                write("b.txt"),
                Line::text("The first is done."),
                write("a.txt"),
                Line::text("Done."),
            ],
        },
        Case {
            mode: "flow",
            lines: vec![
                read("a.txt"),
                done("context"),
                Line::text("Write it anew."),
                // The signal is missing once, so the stage is retried.
                read("a.txt"),
                Line::text("I am done."),
                write("b.txt"),
                write("a.txt"),
                done("implement"),
            ],
        },
        Case { mode: "direct", lines: vec![Line::text("a.txt\n```\nnew\n```")] },
        // An answer and its repair that do not pass, another answer that does; the repair also names another file.
        Case {
            mode: "samples",
            lines: vec![
                Line::text("a.txt\n```\nfirst\n```"),
                Line::text("a.txt\n```\nsecond\n```\n\nb.txt\n```\nleft over\n```"),
                Line::text("It says first.\n\na.txt\n```\nnew\n```"),
            ],
        },
    ]
}

fn start<'p>(project: &'p Project, script: &str, mode: &str) -> Command<'p> {
    let line = ["run", "Fix a.txt.", "--model", script, "--sandbox", "off", "--json", "--run-id", "killed"];
    let command = fusee(project).args(line);
    if mode == "flow" {
        let file = project.home().join("agent.json");
        std::fs::write(&file, AGENT).unwrap();
        return command.args(["--agent".as_ref(), file.as_os_str()]);
    }
    if mode == "samples" {
        let command = command.env("FUSEE_SAMPLES", "2").env("FUSEE_REPAIRS", "1");
        return command.args(["--flow", "direct", "--verify", "grep -q new a.txt"]);
    }
    command.args(["--flow", mode, "--verify", "grep -q new a.txt"])
}

/// Everything that must be the same in every case: files, and each report without its position in the run.
fn state(project: &Project) -> Value {
    let shown = fusee(project).args(["show", "killed", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    let reports: Vec<Value> = events
        .iter()
        .filter(|event| ["task_report", "flow_stage_report"].contains(&event["type"].as_str().unwrap()))
        .map(|event| {
            let mut event = event.clone();
            ["seq", "ts", "run"].into_iter().for_each(|key| drop(event.as_object_mut().unwrap().remove(key)));
            for sample in event["payload"]["samples"].as_array_mut().into_iter().flatten() {
                sample["duration_ms"] = Value::Null;
            }
            event
        })
        .collect();
    let last = events.last().unwrap();
    fusee(project).args(["replay", "killed"]).run().exits(0);
    json!({
        "a.txt": project.read("a.txt"),
        "b.txt": project.dir().join("b.txt").exists(),
        "reports": reports,
        "status": last["status"],
        "answer": last["answer"],
        "turns": last["total_turns"],
    })
}

fn sweep(case: &Case) {
    let killer = KillInjector::build();
    let undisturbed = project();
    let script = undisturbed.script(&case.lines);
    let (command, trace) = killer.watch(start(&undisturbed, &script, case.mode));
    command.run().exits(0);
    let expected = state(&undisturbed);
    assert_eq!(expected["status"], "completed");
    let writes = trace.count();
    assert!(writes >= 4, "{}: only {writes} journal writes", case.mode);
    for n in (1..=writes).step_by(2) {
        let project = project();
        let script = project.script(&case.lines);
        let before = project.read("a.txt");
        killer.kill_at(start(&project, &script, case.mode), n, KillTime::After).run();
        if case.mode == "samples" {
            let now = project.read("a.txt");
            assert!([before.as_str(), "new\n"].contains(&now.as_str()), "killed after write {n}: {now}");
        }
        let resumed = fusee(&project).args(["resume", "killed"]).run();
        if resumed.code == Some(2) {
            // Killed before the run was journaled.
            start(&project, &script, case.mode).run().exits(0);
        } else {
            assert_eq!(resumed.code, Some(0), "{} killed after write {n}: {resumed:#?}", case.mode);
        }
        assert_eq!(state(&project), expected, "{} killed after write {n}", case.mode);
    }
}

#[test]
fn a_kill_between_several_answers_shows_no_candidate_and_pays_for_none_twice() {
    sweep(&cases()[5]);
}

#[test]
fn a_kill_in_any_stage_of_staged_leaves_no_trace() {
    sweep(&cases()[0]);
}

#[test]
fn a_kill_in_any_stage_of_staged3_leaves_no_trace() {
    sweep(&cases()[1]);
}

#[test]
fn a_kill_in_any_task_of_branched_leaves_no_trace() {
    sweep(&cases()[2]);
}

#[test]
fn a_kill_in_any_stage_of_an_agent_files_own_flow_leaves_no_trace() {
    sweep(&cases()[3]);
}

#[test]
fn a_kill_in_direct_leaves_no_trace() {
    sweep(&cases()[4]);
}

#[test]
fn what_a_killed_command_changed_is_in_the_report() {
    let project = project();
    let shell = |command: &str| Line::call("shell", json!({"command": command}));
    let script = project.script(&[
        shell("echo first > first.txt"),
        shell("echo more >> a.txt; rm tests/test_a.txt; echo begun > begun.txt; sleep 60"),
        shell("echo last > last.txt"),
        Line::text("Done."),
    ]);
    let mut running = run_json(&project, &script).args(["--run-id", "killed"]).start();
    while project.read("begun.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    fusee(&project).args(["resume", "killed"]).run().exits(0);
    let shown = fusee(&project).args(["show", "killed", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    assert_eq!(
        report(&events)["files_changed"],
        json!(["a.txt", "begun.txt", "first.txt", "last.txt", "tests/test_a.txt"])
    );
    let results = of_type(&events, "tool_result");
    assert_eq!(results[1]["fate"], "interrupted");
    let output = results[1]["content"].as_str().unwrap();
    assert!(
        output.ends_with("[These files changed since it began: a.txt, begun.txt, tests/test_a.txt.]"),
        "{output}"
    );
    fusee(&project).args(["replay", "killed"]).run().exits(0);
    let left = std::fs::read_dir(project.journal().with_extension("db-looks")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the first look goes with the run");
}
