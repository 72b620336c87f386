//! Faults, cancellations and kills while no reply is being received: while an approval is pending, while a
//! command runs, and before the server is up.
//!
//! The task is that of `http_faults`: two commands and an answer. In every case it ends once, each command
//! runs at most once, and no process is left running.

use std::time::Duration;

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::project::{Project, Running};
use fusee_testkit::server::{ClosedPort, Message, Reply, ReplyPosition, Script, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fault_matrix::{CUTS, ran};
use crate::support::{
    CTRL_C, at_terminal, fusee, impatient, kill_at_terminal, run_http, run_on, signal_at_terminal, with_key,
};

const LIMIT: Duration = Duration::from_secs(20);

/// Approval questions of a task: one before each command.
const QUESTIONS: [usize; 2] = [0, 1];

fn replies() -> Vec<Reply> {
    replies_where(0, "")
}

/// Like `replies`, with one command extended.
fn replies_where(number: usize, more: &str) -> Vec<Reply> {
    let append = |word: &str| {
        let more = if word == ["one", "two"][number] { more } else { "" };
        json!({"command": format!("echo {word} >> effects.txt{more}")})
    };
    vec![
        Message::call("shell", append("one")).stream(),
        Message::text("Now the second command.").and_call("shell", append("two")).stream(),
        Message::text("Both are done.").stream(),
    ]
}

fn asked_on(project: &Project, server: &Server) -> Running {
    let line =
        "run work --run-id between --approve ask --sandbox off -m openai:scripted --api chat --base-url";
    at_terminal(project, &format!("{line} {}", server.base_url()))
}

/// Waits for the question with this number.
fn question(running: &mut Running, number: usize) {
    running.wait_for_stdout("question", |out| out.matches("n [REASON]: ").count() > number);
    // Input typed before the question does not count as its answer.
    std::thread::sleep(Duration::from_millis(100));
}

fn answers(running: &mut Running, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        question(running, number);
        running.type_in("y\n");
    }
}

/// Checks the journaled events of the run as a complete lifecycle, and replays it.
#[track_caller]
fn whole(project: &Project, case: &str) -> Vec<Value> {
    let shown = fusee(project).args(["show", "between", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    let replayed = fusee(project).args(["replay", "between"]).run();
    assert_eq!(replayed.code, Some(0), "{case}: {replayed:#?}");
    project.assert_no_process_left();
    events
}

#[track_caller]
fn did_everything_once(project: &Project, case: &str) -> Vec<Value> {
    let events = whole(project, case);
    assert_eq!(events.last().unwrap()["status"], json!("completed"), "{case}");
    assert_eq!(project.read("effects.txt"), "one\ntwo\n", "{case}");
    events
}

fn resolved(events: &[Value]) -> Vec<bool> {
    of_type(events, "approval_resolved").iter().map(|event| event["approved"] == json!(true)).collect()
}

#[test]
fn a_fault_before_or_after_an_approval_is_retried_and_nothing_is_asked_twice() {
    let mut combinations = 0;
    for struck in QUESTIONS {
        let reply = replies()[struck].clone();
        let moments = [
            ("before the headers", ReplyPosition::Head(0)),
            ("after the headers", ReplyPosition::Body(0)),
            ("within the call", ReplyPosition::Body(reply.body_position("arguments\":\"{") + 14)),
            ("before the end", ReplyPosition::Body(reply.body_position("finish_reason\":\"tool_calls"))),
        ];
        for (moment, at) in moments {
            for (fault, cut) in CUTS {
                let case = format!("{fault} {moment}, reply {struck}");
                let project = impatient();
                let mut all = replies();
                all.insert(struck, cut(reply.clone(), at));
                let server = Server::start(all);
                let mut running = asked_on(&project, &server);
                answers(&mut running, QUESTIONS);
                running.wait().exits(0);
                let events = did_everything_once(&project, &case);
                assert_eq!(
                    (resolved(&events), of_type(&events, "retry").len()),
                    (vec![true; 2], 1),
                    "{case}"
                );
                combinations += 1;
            }
        }
    }
    ran("around an approval, retried", combinations);
}

/// States of a server after it was away.
fn returns() -> [(&'static str, Option<Reply>); 4] {
    [
        ("well", None),
        ("overloaded", Some(Reply::error(503, "overloaded"))),
        ("resetting", Some(Reply::silence().resetting(ReplyPosition::Head(0)))),
        ("garbled", Some(replies()[0].clone().with_garbage(1, b"data: {\"choi\xff\n\n"))),
    ]
}

#[test]
fn a_server_that_goes_away_while_a_person_thinks_is_found_again() {
    let mut combinations = 0;
    for gone in QUESTIONS {
        for (returned, fault) in returns() {
            let case = format!("gone at question {gone}, back {returned}");
            let project = impatient();
            let mut all = replies();
            let spoiled = fault.is_some();
            fault.into_iter().for_each(|fault| all.insert(gone + 1, fault));
            let server = Server::start(all);
            let mut running = asked_on(&project, &server);
            answers(&mut running, 0..gone);
            question(&mut running, gone);
            server.hang_up();
            answers(&mut running, gone..QUESTIONS.len());
            running.wait().exits(0);
            let events = did_everything_once(&project, &case);
            assert_eq!(resolved(&events), [true; 2], "{case}");
            // An idle connection that was closed does not count as a failed request.
            assert_eq!(of_type(&events, "retry").len(), usize::from(spoiled), "{case}");
            combinations += 1;
        }
    }
    ran("during an approval, the server gone", combinations);
}

#[test]
fn a_cancellation_during_an_approval_ends_the_turn_or_the_run_and_runs_nothing() {
    let mut combinations = 0;
    let begun = |at: usize| {
        let (project, server) = (impatient(), Server::start(replies()));
        let mut running = asked_on(&project, &server);
        answers(&mut running, 0..at);
        question(&mut running, at);
        (project, server, running)
    };
    let effects = |at: usize| if at == 0 { "" } else { "one\n" };
    for at in QUESTIONS {
        // SIGTERM, or ctrl-c twice in a row: cancels the run.
        for (name, terminated) in [("SIGTERM", true), ("ctrl-c twice", false)] {
            let case = format!("{name} at question {at}");
            let (project, server, mut running) = begun(at);
            if terminated {
                signal_at_terminal(&running, Signal::TERM);
            } else {
                running.type_in(CTRL_C);
                running.wait_for_stdout("what now", |out| out.contains("What now?"));
                running.type_in(CTRL_C);
            }
            running.wait().exits(130);
            let events = whole(&project, &case);
            assert_eq!(events.last().unwrap()["status"], json!("cancelled"), "{case}");
            let last = *of_type(&events, "tool_result").last().unwrap();
            assert_eq!(last["fate"], json!("aborted"), "{case}");
            assert_eq!(project.read("effects.txt"), effects(at), "{case}");
            assert_eq!(server.requests().len(), at + 1, "{case}");
            combinations += 1;
        }
        // ctrl-c once: cancels the turn; the task continues with or without a message.
        for words in ["", "go on without it"] {
            let case = format!("ctrl-c at question {at}, then {words:?}");
            let (project, server, mut running) = begun(at);
            running.type_in(CTRL_C);
            running.wait_for_stdout("what now", |out| out.contains("What now?"));
            std::thread::sleep(Duration::from_millis(100));
            running.type_in(&format!("{words}\n"));
            answers(&mut running, at + 1..QUESTIONS.len());
            running.wait().exits(0);
            let events = whole(&project, &case);
            let fates: Vec<bool> =
                of_type(&events, "tool_result").iter().map(|result| result["fate"] == "aborted").collect();
            assert_eq!(fates, [at == 0, at == 1], "{case}");
            assert_eq!(project.read("effects.txt"), ["two\n", "one\n"][at], "{case}");
            assert_eq!(server.requests().len(), 3, "{case}");
            combinations += 1;
        }
    }
    ran("during an approval, cancelled", combinations);
}

/// Continuation after a kill at a question.
enum Then {
    /// The user gives this answer to the same question.
    Says(&'static str),
    /// Another kill, then yes.
    KilledAgain,
    /// No user is available.
    Nobody,
    /// Yes, and the server answers the next request with this.
    Fault(Reply),
}

#[test]
fn a_run_killed_during_an_approval_asks_again_and_goes_on() {
    let faults = returns().into_iter().filter_map(|(name, fault)| Some((name, Then::Fault(fault?))));
    let thens: Vec<(&str, Then)> = [
        ("yes", Then::Says("y\n")),
        ("no", Then::Says("n not this\n")),
        ("killed again", Then::KilledAgain),
        ("nobody", Then::Nobody),
    ]
    .into_iter()
    .chain(faults)
    .collect();
    let mut combinations = 0;
    for at in QUESTIONS {
        for (name, then) in &thens {
            let case = format!("killed at question {at}, then {name}");
            let project = impatient();
            let mut all = replies();
            if let Then::Fault(fault) = then {
                all.insert(at + 1, fault.clone());
            }
            let server = Server::start(all);
            let mut running = asked_on(&project, &server);
            answers(&mut running, 0..at);
            question(&mut running, at);
            kill_at_terminal(running);
            project.assert_no_process_left();
            let resumed = || at_terminal(&project, "resume between");
            // Remaining questions: answered ones are not asked again.
            let left = QUESTIONS.len() - at;
            match then {
                Then::Nobody => {
                    with_key(fusee(&project)).args(["resume", "between"]).run().exits(0);
                }
                Then::Says(words) => {
                    let mut again = resumed();
                    question(&mut again, 0);
                    again.type_in(words);
                    answers(&mut again, 1..left);
                    again.wait().exits(0);
                }
                Then::KilledAgain => {
                    let mut again = resumed();
                    question(&mut again, 0);
                    kill_at_terminal(again);
                    let mut again = resumed();
                    answers(&mut again, 0..left);
                    again.wait().exits(0);
                }
                Then::Fault(_) => {
                    let mut again = resumed();
                    answers(&mut again, 0..left);
                    again.wait().exits(0);
                }
            }
            let allowed: Vec<bool> = QUESTIONS
                .into_iter()
                .map(|number| match then {
                    Then::Nobody => number < at,
                    Then::Says(words) if number == at => words.starts_with('y'),
                    Then::Says(_) | Then::KilledAgain | Then::Fault(_) => true,
                })
                .collect();
            let events = whole(&project, &case);
            assert_eq!(resolved(&events), allowed, "{case}");
            let ran = ["one\n", "two\n"].into_iter().zip(allowed).filter(|(_, allowed)| *allowed);
            assert_eq!(project.read("effects.txt"), ran.map(|(line, _)| line).collect::<String>(), "{case}");
            combinations += 1;
        }
    }
    ran("during an approval, killed and resumed", combinations);
}

/// Waits until the command with this number has started.
fn command(project: &Project, running: &mut Running, number: usize) {
    while project.read("effects.txt").lines().count() <= number {
        assert!(running.is_running(), "{}", running.stdout_so_far());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Suffix that keeps a command running until a file exists.
const UNTIL_LET_GO: &str = "; while [ ! -e let-go ]; do sleep 0.01; done";

#[test]
fn a_server_that_goes_away_while_a_command_runs_is_found_again() {
    let mut combinations = 0;
    for at in QUESTIONS {
        let case = format!("gone during command {at}");
        let (project, server) = (impatient(), Server::start(replies_where(at, UNTIL_LET_GO)));
        let mut running = run_on(&project, &server).args(["--run-id", "between"]).start();
        command(&project, &mut running, at);
        server.hang_up();
        project.write("let-go", "");
        running.wait().exits(0);
        let events = did_everything_once(&project, &case);
        // An idle connection that was closed does not count as a failed request.
        assert_eq!(of_type(&events, "retry").len(), 0, "{case}");
        combinations += 1;
    }
    ran("during a tool, the server gone", combinations);
}

/// Starts a task and waits until its command with this number, which never ends, is running.
fn within_command(at: usize, more: Vec<Reply>) -> (Project, Server, Running) {
    let (project, mut all) = (impatient(), replies_where(at, "; sleep 300"));
    more.into_iter().for_each(|reply| all.insert(at + 1, reply));
    let server = Server::start(all);
    let mut running = run_on(&project, &server).args(["--run-id", "between"]).start();
    command(&project, &mut running, at);
    (project, server, running)
}

#[test]
fn a_cancellation_during_a_command_ends_it_and_the_run() {
    let mut combinations = 0;
    for at in QUESTIONS {
        for signal in [Signal::INT, Signal::TERM] {
            let case = format!("{signal:?} during command {at}");
            let (project, server, running) = within_command(at, Vec::new());
            running.signal(signal);
            running.wait().exits(130);
            let events = whole(&project, &case);
            assert_eq!(events.last().unwrap()["status"], json!("cancelled"), "{case}");
            assert_eq!(of_type(&events, "tool_result")[at]["fate"], json!("aborted"), "{case}");
            assert_eq!(server.requests().len(), at + 1, "{case}");
            combinations += 1;
        }
    }
    ran("during a tool, cancelled", combinations);
}

#[test]
fn a_run_killed_during_a_command_tells_the_model_and_goes_on() {
    let mut combinations = 0;
    for at in QUESTIONS {
        for (returned, fault) in returns() {
            let case = format!("killed during command {at}, the server then {returned}");
            let (project, _server, running) = within_command(at, fault.into_iter().collect());
            running.signal(Signal::KILL);
            assert!(running.wait().was_killed());
            project.assert_no_process_left();
            with_key(fusee(&project)).args(["resume", "between"]).run().exits(0);
            let events = did_everything_once(&project, &case);
            let fates: Vec<bool> = of_type(&events, "tool_result")
                .iter()
                .map(|result| result["fate"] == "interrupted")
                .collect();
            assert_eq!(fates, [at == 0, at == 1], "{case}");
            combinations += 1;
        }
    }
    ran("during a tool, killed and resumed", combinations);
}

/// The process that starts commands is killed while one runs: that command ends as usual, and another process starts the
/// next one.
#[test]
fn a_run_whose_fork_server_is_killed_does_all_of_its_work() {
    let (project, server) = (impatient(), Server::start(replies_where(0, UNTIL_LET_GO)));
    let mut running = run_on(&project, &server).args(["--run-id", "between"]).start();
    command(&project, &mut running, 0);
    let fork_server = rustix::process::Pid::from_raw(running.child().cast_signed()).unwrap();
    rustix::process::kill_process(fork_server, Signal::KILL).unwrap();
    project.write("let-go", "");
    running.wait().exits(0);
    let events = did_everything_once(&project, "fork server killed");
    let results = of_type(&events, "tool_result");
    assert_eq!(results.iter().map(|result| &result["ok"]).collect::<Vec<_>>(), [&json!(true); 2]);
}

#[test]
fn a_server_that_is_not_there_yet_is_waited_for_cancelled_and_killed() {
    let patient = || Project::new().with("fusee.toml", "[retry_policy]\nmax_retries = 50\nbackoff_ms = 20\n");
    let begun = |project: &Project, port: &ClosedPort| {
        let mut running = run_http(project, &port.base_url()).args(["--run-id", "between"]).start();
        running.wait_for_stdout("retry", |out| out.contains("\"type\":\"retry\""));
        running
    };
    let script = || replies().into_iter().collect::<Script>();
    let (retried, cancelled, killed) = (patient(), patient(), patient());

    let port = ClosedPort::reserve();
    let running = begun(&retried, &port);
    let _server = port.open(script());
    running.wait().exits(0);
    did_everything_once(&retried, "retried");

    let port = ClosedPort::reserve();
    let running = begun(&cancelled, &port);
    running.signal(Signal::INT);
    running.wait().exits(130);
    assert_eq!(whole(&cancelled, "cancelled").last().unwrap()["status"], json!("cancelled"));

    let port = ClosedPort::reserve();
    let running = begun(&killed, &port);
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    let server = port.open(script());
    with_key(fusee(&killed)).args(["resume", "between"]).run().exits(0);
    did_everything_once(&killed, "killed");
    server.wait_for_requests(3, LIMIT);
    ran("while connecting, retried, cancelled, killed and resumed", 3);
}
