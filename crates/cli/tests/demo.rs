//! `fusee demo` end to end: what a new user sees in the first minute, and what must remain afterwards.
#![expect(clippy::expect_used, reason = "a test panics when it fails")]

use std::fs;
use std::path::PathBuf;

use fusee_testkit::events;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Server};
use serde_json::json;

/// A demo whose temporary files are in a directory of the test.
struct Stage {
    project: Project,
    temporary: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let project = Project::new();
        let temporary = project.scratch("tmp");
        fs::create_dir(&temporary).expect("a directory");
        Self { project, temporary }
    }

    fn demo(&self, args: &[&str]) -> Command<'_> {
        let command = self.project.command(env!("CARGO_BIN_EXE_fusee")).args(["demo"]).args(args);
        command.env("TMPDIR", &self.temporary)
    }

    fn fusee(&self, args: &[&str]) -> Command<'_> {
        self.project.command(env!("CARGO_BIN_EXE_fusee")).args(args)
    }

    /// Unpacked projects that still exist.
    fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.temporary).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path().join("freetime")).collect()
    }
}

#[test]
fn the_recorded_model_really_makes_the_tests_pass_and_nothing_is_left_behind() {
    let stage = Stage::new();
    let outcome = stage.demo(&[]).run().exits(0);
    assert!(outcome.stdout.contains("3 of 10 failed at first, all 10 pass now"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("a recording, played from a file"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("+        cursor = max(cursor, busy.end)"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\x1b') && !outcome.stderr.contains('\x1b'), "colours in a pipe");
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
    assert!(!stage.project.journal().exists(), "the demo wrote into the user's project");
}

#[test]
fn with_json_stdout_is_the_events_and_nothing_else() {
    let outcome = Stage::new().demo(&["--json"]).run().exits(0);
    let events = outcome.events();
    let changed: Vec<_> =
        events::of_type(&events, "file_changed").iter().map(|event| event["path"].clone()).collect();
    assert_eq!(changed, ["freetime/span.py", "freetime/day.py"]);
    assert!(outcome.stderr.contains("all 10 pass now"), "{}", outcome.stderr);
}

#[test]
fn killed_on_the_way_it_goes_on_and_does_nothing_twice() {
    let stage = Stage::new();
    let outcome = stage.demo(&["--kill", "--keep"]).run().exits(0);
    assert!(outcome.stderr.contains("kill -9"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("all 10 pass now"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("none was requested or run again"), "{}", outcome.stdout);
    let [project] = stage.left().try_into().expect("one project");
    let place = project.to_str().expect("a readable path");

    let shown = stage.fusee(&["show", "-C", place, "demo", "--json"]).run().exits(0);
    let events = shown.events();
    assert_eq!(events::of_type(&events, "task_resumed").len(), 1);
    let is_interrupted = |event: &&serde_json::Value| event["fate"] == "interrupted";
    let interrupted = events::of_type(&events, "tool_result").into_iter().filter(is_interrupted).count();
    // The recording has eight replies; one more only answers an interruption. On a machine so busy that the
    // kill comes after the command, there is no interruption.
    assert!(interrupted <= 1);
    assert_eq!(events::of_type(&events, "turn_complete").len(), 8 + interrupted);
    assert_eq!(events::of_type(&events, "file_changed").len(), 2);
    stage.fusee(&["replay", "-C", place, "demo"]).run().exits(0);
}

#[test]
fn a_kept_project_can_be_looked_at_and_replayed_with_the_commands_that_were_printed() {
    let stage = Stage::new();
    let outcome = stage.demo(&["--keep"]).run().exits(0);
    let commands: Vec<Vec<&str>> = outcome
        .stdout
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(env!("CARGO_BIN_EXE_fusee")))
        .map(|line| line.split("  ").next().unwrap_or_default().split_whitespace().collect())
        .filter(|words: &Vec<&str>| matches!(words.first(), Some(&("show" | "replay"))))
        .collect();
    assert_eq!(commands.len(), 2, "{}", outcome.stdout);
    for command in commands {
        stage.fusee(&command).run().exits(0);
    }
}

#[test]
fn a_model_that_does_not_fix_it_is_exit_1() {
    let stage = Stage::new();
    let model = stage.project.script(&[Line::text("I would rather not.")]);
    let outcome = stage.demo(&["-m", &model, "--sandbox", "off"]).run().exits(1);
    assert!(outcome.stdout.contains("3 of 10 failed at first, 3 of 10 fail now"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("changed  nothing"), "{}", outcome.stdout);
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_model_on_a_server_is_given_the_same_project() {
    let stage = Stage::new();
    let fix = "cd freetime && sed -i 's/cursor = busy.end/cursor = max(cursor, busy.end)/' day.py";
    let server = Server::start([
        Message::call("shell", json!({ "command": fix })).stream(),
        Message::text("The cursor may not go back.").stream(),
    ]);
    let args = ["-m", "some-model", "--base-url", &server.base_url()];
    let outcome = stage.demo(&args).run();
    assert_eq!(server.requests().len(), 2, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("+        cursor = max(cursor, busy.end)"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("a recording"), "{}", outcome.stdout);
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
}

#[test]
fn without_python_it_says_what_is_missing() {
    let stage = Stage::new();
    let outcome = stage.demo(&[]).env("PATH", stage.project.scratch("nowhere")).run().exits(2);
    assert!(outcome.stderr.contains("python3 is not on the PATH"), "{}", outcome.stderr);
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let stage = Stage::new();
    let outcome = stage.demo(&[]).env("TMPDIR", "/proc/nowhere").run().exits(1);
    assert!(outcome.stderr.contains("cannot unpack the demo into /proc/nowhere"), "{}", outcome.stderr);
}
