//! Resuming after a kill: where the run continues, what the model is told, what a finished run returns.

use std::time::Duration;

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::project::{Command, Project, Running};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run, run_json};

fn resume(project: &Project) -> Command<'_> {
    fusee(project).args(["resume", "killed", "--json"])
}

fn start(project: &Project, lines: &[Line]) -> Running {
    run_json(project, &project.script(lines)).args(["--run-id", "killed"]).start()
}

fn kill(running: Running) {
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
}

/// Kills the run while its command sleeps, after the command's first effect.
fn kill_in_command(project: &Project, rest: &[Line]) {
    let command = json!({"command": "echo begun >> effects.txt; sleep 60; echo ended >> effects.txt"});
    let lines: Vec<Line> = [Line::call("shell", command)].iter().chain(rest).cloned().collect();
    let mut running = start(project, &lines);
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(2));
    }
    kill(running);
    project.assert_no_process_left();
}

fn shown(project: &Project) -> Vec<Value> {
    read_checked(&fusee(project).args(["show", "killed", "--json"]).run().exits(0).stdout, Part::Whole)
}

#[test]
fn a_command_in_flight_is_not_run_again_and_the_model_is_told() {
    let project = Project::new();
    kill_in_command(&project, &[Line::text("I will check.")]);
    let resumed = resume(&project).run().exits(0).events_after_resume();
    assert_eq!(of_type(&resumed, "task_resumed").len(), 1);
    let events = shown(&project);
    let result = of_type(&events, "tool_result")[0];
    assert_eq!((&result["ok"], &result["fate"]), (&json!(false), &json!("interrupted")), "{result:#}");
    let content = result["content"].as_str().unwrap();
    assert!(content.contains("interrupted") && content.contains("not known"), "{content}");
    assert_eq!(project.read("effects.txt"), "begun\n");
}

#[test]
fn the_last_run_is_resumed_when_none_is_named() {
    let project = Project::new();
    kill_in_command(&project, &[Line::text("I will check.")]);
    let resumed = fusee(&project).args(["resume"]).run().exits(0);
    assert_eq!(resumed.stdout, "I will check.\n");
}

#[test]
fn the_script_goes_on_after_the_lines_the_journal_has_seen() {
    let project = Project::new();
    let lines = [
        Line::error(503, "down").delay_ms(0),
        Line::call("shell", json!({"command": "echo first >> effects.txt"})),
        Line::text("This one is waited for.").delay_ms(60_000),
        Line::text("Never reached."),
    ];
    let mut running = start(&project, &lines);
    running.wait_for_stdout("second turn", |out| out.matches("\"turn_start\"").count() >= 2);
    kill(running);
    // The line was requested but never answered: it does not count as used, and its delay starts over.
    let mut running = resume(&project).start();
    running.wait_for_stdout("task_resumed", |out| out.contains("\"task_resumed\""));
    std::thread::sleep(Duration::from_millis(300));
    assert!(running.is_running(), "{}", running.stdout_so_far());
    assert_eq!(project.read("effects.txt"), "first\n");
    kill(running);
}

#[test]
fn files_that_changed_meanwhile_are_named_to_the_model() {
    let project = Project::new().with("a.txt", "before\n");
    let read = Line::call("read_file", json!({"path": "a.txt"}));
    let wait = Line::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"}));
    let edit = Line::call("edit_file", json!({"path": "a.txt", "old": "before", "new": "after"}));
    let mut running = start(&project, &[read, wait, edit, Line::text("Done.")]);
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(2));
    }
    kill(running);
    project.write("a.txt", "before, but not as before\n");
    resume(&project).run().exits(0);
    let events = shown(&project);
    let output = events.iter().any(|event| {
        ["message", "tool_result", "warning"].iter().any(|kind| event["type"] == *kind)
            && event.to_string().contains("a.txt")
            && event.to_string().contains("changed")
    });
    assert!(output, "{events:#?}");
    // The edit is refused: the run has not seen the file's current content.
    let results = of_type(&events, "tool_result");
    assert_eq!(results[2]["ok"], json!(false), "{results:#?}");
    assert_eq!(project.read("a.txt"), "before, but not as before\n");
}

#[test]
fn a_finished_run_repeats_its_result_and_its_exit_code() {
    let project = Project::new();
    run(&project, &project.script(&[Line::text("Forty-two.")])).args(["--run-id", "good"]).run().exits(0);
    run(&project, &project.script(&[Line::error(401, "no")])).args(["--run-id", "bad"]).run().exits(1);
    let good = fusee(&project).args(["resume", "good"]).run().exits(0);
    assert_eq!(good.stdout, "Forty-two.\n");
    fusee(&project).args(["resume", "bad"]).run().exits(1);
}

#[test]
fn settings_of_the_run_need_not_be_given_again() {
    let project = Project::new();
    let loops: Vec<Line> =
        (0..9).map(|n| Line::call("shell", json!({"command": format!("echo {n}")}))).collect();
    let mut first = vec![Line::call("shell", json!({"command": "echo x >> effects.txt; sleep 60"}))];
    first.extend(loops);
    let script = project.script(&first);
    let mut running = run_json(&project, &script).args(["--run-id", "killed", "--max-turns", "3"]).start();
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(2));
    }
    kill(running);
    resume(&project).run().exits(3);
    let events = shown(&project);
    assert_eq!(events.last().unwrap()["error"]["code"], json!("MAX_TURNS"));
    assert_eq!(of_type(&events, "turn_start").len(), 3);
}

#[test]
fn flags_change_limits_and_approvals_from_where_it_goes_on() {
    let project = Project::new();
    let say = |n: u32| Line::call("shell", json!({"command": format!("echo {n} >> said.txt")}));
    let rest: Vec<Line> = (0..9).map(say).collect();
    kill_in_command(&project, &rest);
    // There is no user to ask, so from here on no command runs; and six turns are enough.
    resume(&project).args(["--approve", "ask", "--max-turns", "6"]).run().exits(3);
    let events = shown(&project);
    assert_eq!(of_type(&events, "turn_start").len(), 6);
    assert_eq!(project.read("said.txt"), "");
    assert_eq!(of_type(&events, "task_resumed")[0]["amended"]["terms"]["approve"], json!("ask"));
    // The change is part of the run: a replay applies it at the same point, and the result stays the same.
    fusee(&project).args(["replay", "killed"]).run().exits(0);
    fusee(&project).args(["resume", "killed"]).run().exits(3);
}

#[test]
fn a_change_of_flags_outlives_the_next_kill() {
    let project = Project::new();
    let wait = Line::call("shell", json!({"command": "echo again >> effects.txt; sleep 60"}));
    let rest: Vec<Line> =
        (0..9).map(|n| Line::call("shell", json!({"command": format!("echo {n}")}))).collect();
    kill_in_command(&project, &[vec![wait], rest].concat());
    let mut running = resume(&project).args(["--max-turns", "4"]).start();
    while !project.read("effects.txt").contains("again") {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(2));
    }
    kill(running);
    resume(&project).run().exits(3);
    assert_eq!(of_type(&shown(&project), "turn_start").len(), 4);
    fusee(&project).args(["replay", "killed"]).run().exits(0);
}

#[test]
fn the_rest_of_a_run_is_shown_with_what_came_before_in_mind() {
    let project = Project::new();
    let write = Line::call("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let wait = Line::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"}));
    let mut running = start(&project, &[write, wait, Line::text("Done.")]);
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(2));
    }
    kill(running);
    let output = fusee(&project).args(["resume", "killed"]).run().exits(0).stderr;
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "run killed resumed");
    assert_eq!(lines[1], "  > shell echo begun >> effects.txt; sleep 60");
    assert!(lines[2].starts_with("    interrupted"), "{output}");
    assert!(output.contains("changed effects.txt, new.txt"), "{output}");
}
