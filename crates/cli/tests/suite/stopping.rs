//! ctrl-c in a terminal: the first stops the turn and the user says how to continue, the second ends the run.
//! The terminal is provided by `script`, which passes keys on like a keyboard.

use std::time::{Duration, Instant};

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::project::{Project, Running};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Reply, ReplyPosition, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{CTRL_C, at_terminal, fusee, kill_at_terminal, with_key};

fn with_script(project: &Project, lines: &[Line]) -> Running {
    let script = project.script(lines);
    at_terminal(project, &format!("run work --run-id terminal --sandbox off --model {script}"))
}

fn asked(running: &mut Running) {
    running.wait_for_stdout("question", |out| out.contains("What now?"));
}

/// Waits until a command has started.
fn begun(project: &Project, running: &mut Running) {
    while project.read("begun.txt").is_empty() {
        assert!(running.is_running(), "{}", running.stdout_so_far());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn long_command() -> Line {
    let long = json!({"command": "echo x >> begun.txt; sleep 300"});
    Line::call("shell", long).and_call("write_file", json!({"path": "never.txt", "content": "no"}))
}

fn shown(project: &Project) -> Vec<Value> {
    let shown = fusee(project).args(["show", "terminal", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    fusee(project).args(["replay", "terminal"]).run().exits(0);
    project.assert_no_process_left();
    events
}

#[test]
fn the_first_ctrl_c_stops_the_turn_and_words_go_on_with_it() {
    let project = Project::new();
    let mut running = with_script(&project, &[long_command(), Line::text("Quickly done.")]);
    begun(&project, &mut running);
    running.type_in(CTRL_C);
    asked(&mut running);
    running.type_in("do it quickly\n");
    let outcome = running.wait().exits(0);
    assert!(outcome.stdout.contains("Quickly done."), "{}", outcome.stdout);
    let events = shown(&project);
    let fates: Vec<&Value> = of_type(&events, "tool_result").iter().map(|result| &result["fate"]).collect();
    assert_eq!(fates, [&json!("aborted"), &json!("aborted")]);
    assert!(!project.dir().join("never.txt").exists());
    assert_eq!(of_type(&events, "message")[0]["text"], json!("do it quickly"));
    assert_eq!(events.last().unwrap()["status"], json!("completed"));
}

#[test]
fn a_request_that_was_stopped_is_made_again_when_nothing_is_said() {
    let project = Project::new();
    let text = Message::text("This never comes to its end.").stream();
    let middle = ReplyPosition::Body(text.body_position("never"));
    let server =
        Server::start([text.clone().hanging(middle), text.hanging(middle), Message::text("Done.").stream()]);
    let base = server.base_url();
    let line = format!("run work --run-id terminal -m openai:scripted --api chat --base-url {base}");
    let mut running = at_terminal(&project, &line);
    server.wait_for_requests(1, Duration::from_secs(20));
    running.type_in(CTRL_C);
    asked(&mut running);
    running.type_in("\n");
    server.wait_for_requests(2, Duration::from_secs(20));
    // Counts as a first ctrl-c again, because it is outside the window of the previous one.
    std::thread::sleep(Duration::from_millis(2100));
    running.type_in(CTRL_C);
    running.wait_for_stdout("second question", |out| out.matches("What now?").count() > 1);
    running.type_in("be brief\n");
    running.wait().exits(0);
    let requests = server.requests();
    let bodies: Vec<String> = requests.iter().map(|request| request.arrived.body_text()).collect();
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[0], bodies[1], "nothing was said, so the same is asked");
    let last: Vec<Value> =
        requests[2].arrived.messages().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let [.., unsaid, said] = last.as_slice() else { panic!("{last:?}") };
    assert_eq!(unsaid["role"], json!("assistant"));
    assert_eq!((&said["role"], &said["content"]), (&json!("user"), &json!("be brief")));
    assert_eq!(of_type(&shown(&project), "turn_start").len(), 1, "it is one turn");
}

#[test]
fn a_second_ctrl_c_ends_the_run() {
    // Shortly after the first, and long after it while nothing runs.
    for pause in [Duration::ZERO, Duration::from_millis(2100)] {
        let project = Project::new();
        let mut running = with_script(&project, &[long_command(), Line::text("Never said.")]);
        begun(&project, &mut running);
        let first = Instant::now();
        running.type_in(CTRL_C);
        asked(&mut running);
        std::thread::sleep(pause.saturating_sub(first.elapsed()));
        running.type_in(CTRL_C);
        running.wait().exits(130);
        let events = shown(&project);
        assert_eq!(events.last().unwrap()["status"], json!("cancelled"));
        assert_eq!(of_type(&events, "approval_resolved")[0]["approved"], json!(false));
        fusee(&project).args(["resume", "terminal"]).run().exits(130);
    }
}

#[test]
fn a_run_killed_at_the_question_asks_it_again() {
    for words in [Some("go on\n"), None] {
        let project = Project::new();
        let mut running = with_script(&project, &[long_command(), Line::text("Done.")]);
        begun(&project, &mut running);
        running.type_in(CTRL_C);
        asked(&mut running);
        kill_at_terminal(running);
        project.assert_no_process_left();
        match words {
            Some(words) => {
                let mut again = at_terminal(&project, "resume terminal");
                asked(&mut again);
                again.type_in(words);
                again.wait().exits(0);
            }
            // Without a terminal there is no answer.
            None => drop(with_key(fusee(&project)).args(["resume", "terminal"]).run().exits(130)),
        }
        let events = shown(&project);
        assert_eq!(project.read("begun.txt"), "x\n");
        assert_eq!(of_type(&events, "approval_resolved")[0]["approved"], json!(words.is_some()));
    }
}

#[test]
fn without_a_person_one_signal_ends_the_run() {
    let project = Project::new();
    let server = Server::start([Reply::silence()]);
    let base = server.base_url();
    let line = ["run", "x", "-m", "openai:scripted", "--api", "chat", "--base-url", &base];
    let running = with_key(fusee(&project).args(line)).start();
    server.wait_for_requests(1, Duration::from_secs(20));
    running.signal(Signal::INT);
    let outcome = running.wait().exits(130);
    assert!(!outcome.stderr.contains("What now?"), "{}", outcome.stderr);
}

#[test]
fn a_question_that_nobody_answers_in_time_is_a_refusal() {
    let project = Project::new().with("fusee.toml", "approval_timeout_s = 1\n");
    let script = project.script(&[
        Line::call("write_file", json!({"path": "made.txt", "content": "x"})),
        Line::call("ask_user", json!({"question": "Which?"})),
        Line::text("Done without."),
    ]);
    let line = format!("run work --run-id terminal --approve ask --sandbox off --model {script}");
    at_terminal(&project, &line).wait().exits(0);
    let events = shown(&project);
    let results = of_type(&events, "tool_result");
    let content = results[0]["content"].as_str().unwrap();
    assert!(content.starts_with("Not run: nobody answered within 1 s"), "{content}");
    assert!(results[1]["content"].as_str().unwrap().starts_with("Nobody is there"), "{}", results[1]);
    assert!(!project.dir().join("made.txt").exists());
}
