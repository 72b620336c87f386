//! The line-based chat: messages that continue each other, commands, exit codes, leaving and returning.

use fusee_testkit::project::{Command, Outcome, Project};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::fusee;

fn talk<'p>(project: &'p Project, script: &str, lines: &str) -> Command<'p> {
    fusee(project).args(["--plain", "--model", script, "--sandbox", "off"]).stdin(lines)
}

/// Runs of the project, oldest first.
fn runs(project: &Project) -> Vec<Value> {
    let listed = fusee(project).args(["runs", "--json"]).run().exits(0).stdout;
    let mut runs: Vec<Value> = serde_json::from_str(&listed).unwrap();
    runs.reverse();
    runs
}

fn first_event(project: &Project, run: &Value) -> Value {
    let shown: Outcome = fusee(project).args(["show", "--json", run["run"].as_str().unwrap()]).run().exits(0);
    serde_json::from_str(shown.stdout.lines().next().unwrap()).unwrap()
}

#[test]
fn each_message_is_a_run_that_continues_the_one_before() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("Written."),
        Line::text("It holds one."),
    ]);
    let lines = "write one \\\nto a.txt\nwhat does it hold?\n/diff\n/plan\n/quit\nnever read\n";
    let outcome = talk(&project, &script, lines).run().exits(0);
    let expected = "Written.\nIt holds one.\na.txt\n+ one\nno plan\n";
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
    let runs = runs(&project);
    let titles: Vec<&str> = runs.iter().map(|run| run["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["write one to a.txt", "what does it hold?"]);
    assert_eq!(first_event(&project, &runs[1])["continues"], runs[0]["run"]);
    fusee(&project).args(["replay", runs[1]["run"].as_str().unwrap()]).run().exits(0);
}

#[test]
fn a_pipe_opens_it_and_silence_or_nothing_gives_the_short_help() {
    let project = Project::new();
    let script = project.script(&[Line::text("Hello.")]);
    let spoken = fusee(&project).args(["--model", &script]).stdin("hello\n").run().exits(0);
    assert_eq!(spoken.stdout, "Hello.\n");
    for silent in [fusee(&project), fusee(&project).stdin("")] {
        let help = silent.run().exits(0);
        assert!(help.stdout.contains("Commands:"), "{}", help.stdout);
    }
    assert_eq!(runs(&project).len(), 1);
}

#[test]
fn the_exit_code_is_that_of_the_last_task_and_a_wrong_command_ends_nothing() {
    let project = Project::new();
    let script =
        project.script(&[Line::text("One."), Line::error(401, "who are you?"), Line::text("Three.")]);
    let outcome = talk(&project, &script, "one\ntwo\n").run().exits(1);
    assert_eq!(outcome.stdout, "One.\n");
    assert!(outcome.stderr.contains("who are you?"), "{}", outcome.stderr);
    let script = project.script(&[Line::text("Three.")]);
    let outcome = talk(&project, &script, "/modle\n/model\n/approve ask\n//three\n").run().exits(0);
    let expected = format!(
        "{script} is the current model\nask: you are asked before every change (starting with the next message)\nThree.\n"
    );
    assert_eq!(outcome.stdout, expected);
    assert!(outcome.stderr.contains("unknown command /modle; did you mean `/model`?"), "{}", outcome.stderr);
    assert_eq!(runs(&project).last().unwrap()["title"], json!("/three"));
}

#[test]
fn questions_without_a_terminal_are_refusals() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "x"})),
        Line::text("It was not allowed."),
    ]);
    let outcome = talk(&project, &script, "write\ny\n").args(["--approve", "ask"]).run();
    assert!(outcome.stdout.starts_with("It was not allowed.\n"), "{outcome:#?}");
    assert_eq!(project.read("a.txt"), "");
}

#[test]
fn files_named_with_an_at_come_along() {
    let project = Project::new().with("notes.txt", "the secret word is quince\n");
    let script = project.script(&[Line::text("Quince.").matching("the secret word is quince")]);
    let outcome = talk(&project, &script, "what is the word in @notes.txt?\n").run().exits(0);
    assert_eq!(outcome.stdout, "Quince.\n");
    std::fs::remove_file(project.dir().join("notes.txt")).unwrap();
    let run = runs(&project)[0]["run"].as_str().unwrap().to_owned();
    fusee(&project).args(["replay", &run]).run().exits(0);
}

#[test]
fn models_change_and_conversations_are_left_behind() {
    let project = Project::new();
    let one = project.script(&[Line::text("One."), Line::text("unused")]);
    let other = project.script(&[Line::text("Other."), Line::text("Fresh.")]);
    let lines = format!("a\n/model {other}\nb\n/new\nc\n/export all.txt\n/export all.txt\n");
    let outcome = talk(&project, &one, &lines).run().exits(2);
    let expected = format!(
        "One.\n{other} is used starting with the next message\nOther.\nnew conversation: the next message starts \
         without history\nFresh.\n1 message written to all.txt\n"
    );
    assert_eq!(outcome.stdout, expected);
    assert!(outcome.stderr.contains("cannot write all.txt"), "{}", outcome.stderr);
    assert!(project.read("all.txt").contains("Fresh."));
    let runs = runs(&project);
    assert_eq!(first_event(&project, &runs[1])["continues"], runs[0]["run"]);
    assert_eq!(first_event(&project, &runs[2]).get("continues"), None);
}

#[test]
fn killed_in_the_middle_it_goes_on_with_resume_and_the_conversation_with_it() {
    let project = Project::new();
    let script = project.script(&[
        Line::text("First."),
        Line::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"})),
        Line::text("Second."),
    ]);
    let mut running = talk(&project, &script, "one\ntwo\n").start();
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    let script = project.script(&[Line::text("Second after all."), Line::text("Third.")]);
    let outcome = talk(&project, &script, "/resume\nthree\n").run().exits(0);
    // The resumed run uses its original model, a script that starts over; the next message uses the new one.
    assert_eq!(outcome.stdout, "First.\nSecond after all.\n", "{}", outcome.stderr);
    assert_eq!(project.read("effects.txt"), "begun\n");
    let runs = runs(&project);
    assert_eq!(runs.len(), 3, "{runs:#?}");
    assert_eq!(first_event(&project, &runs[2])["continues"], runs[1]["run"]);
}

#[test]
fn a_signal_ends_the_task_and_the_conversation_of_a_pipe() {
    let project = Project::new();
    let script =
        project.script(&[Line::call("shell", json!({"command": "touch begun; sleep 60"})), Line::text("x")]);
    let mut running = talk(&project, &script, "one\ntwo\n").start();
    while !project.dir().join("begun").exists() {
        assert!(running.is_running());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    running.signal(Signal::INT);
    running.wait().exits(130);
    let runs = runs(&project);
    assert_eq!((runs.len(), &runs[0]["status"]), (1, &json!("cancelled")));
    project.assert_no_process_left();
}
