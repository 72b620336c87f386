//! Every server fault at every moment of a reply, handled by a retry, by a cancellation, and by kill -9 and a
//! resume.
//!
//! A task of three replies: a command, text with a call, an answer. The fault hits the first or the second;
//! after that the server works. In every case the task ends once, each command runs once, and no process is
//! left running.

use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::server::{Message, Reply, ReplyPosition, Script, Server};
use rustix::process::Signal;
use serde_json::json;

use crate::fault_matrix::{CUTS, ran};
use crate::support::{fusee, impatient, run_on, with_key};

const LIMIT: Duration = Duration::from_secs(20);

/// Indices of the reply that the fault hits.
const STRUCK: [usize; 2] = [0, 1];

fn replies() -> [Reply; 3] {
    [
        Message::call("shell", json!({"command": "echo one >> effects.txt"})).stream(),
        Message::text("Now the second command, and then an end.")
            .and_call("shell", json!({"command": "echo two >> effects.txt"}))
            .stream(),
        Message::text("Both are done.").stream(),
    ]
}

/// Moments of a reply: a name and a position.
fn moments(struck: usize) -> Vec<(&'static str, ReplyPosition)> {
    let reply = &replies()[struck];
    let within_text =
        (struck == 1).then(|| ("within the text", ReplyPosition::Body(reply.body_position("second"))));
    let all = [
        ("before the headers", ReplyPosition::Head(0)),
        ("within the headers", ReplyPosition::Head(20)),
        ("after the headers", ReplyPosition::Body(0)),
        ("within the first event", ReplyPosition::Body(30)),
        ("within the call", ReplyPosition::Body(reply.body_position("arguments\":\"{") + 14)),
        (
            "before the end of the call",
            ReplyPosition::Body(reply.body_position("finish_reason\":\"tool_calls")),
        ),
    ];
    all.into_iter().chain(within_text).collect()
}

/// Starts a server that fails once and works afterwards.
fn striking(struck: usize, fault: Reply) -> Server {
    let [first, second, third] = replies();
    let mut all = vec![first, second, third];
    all.insert(struck, fault);
    Server::start(all)
}

#[track_caller]
fn did_everything_once(project: &Project, outcome: &Outcome, case: &str) {
    assert_eq!(outcome.code, Some(0), "{case}: {outcome:#?}");
    assert_eq!(project.read("effects.txt"), "one\ntwo\n", "{case}");
    assert!(outcome.stdout.contains("Both are done."), "{case}: {}", outcome.stdout);
    project.assert_no_process_left();
}

#[test]
fn a_fault_at_any_moment_is_retried_and_nothing_happens_twice() {
    let mut combinations = 0;
    for struck in STRUCK {
        let reply = replies()[struck].clone();
        for (moment, at) in moments(struck) {
            for (fault, cut) in CUTS {
                let case = format!("{fault} {moment}, reply {struck}");
                let project = impatient();
                let server = striking(struck, cut(reply.clone(), at));
                let outcome = run_on(&project, &server).run();
                did_everything_once(&project, &outcome, &case);
                let retries = of_type(&outcome.events(), "retry").len();
                let requests = server.requests();
                assert_eq!((retries, requests.len()), (1, 4), "{case}: {}", outcome.stdout);
                let (failed, again) = (&requests[struck].arrived, &requests[struck + 1].arrived);
                assert_eq!(failed.body_text(), again.body_text(), "{case}: the retry asks something else");
                combinations += 1;
            }
        }
    }
    ran("within a reply, retried", combinations);
}

#[test]
fn a_failing_status_or_a_broken_body_is_retried() {
    let call = replies()[0].clone();
    let faults: Vec<(&str, Reply)> = vec![
        ("408", Reply::error(408, "too slow")),
        ("409", Reply::error(409, "busy")),
        ("429", Reply::error(429, "slow down")),
        ("500", Reply::error(500, "oops")),
        ("502 in HTML", Reply::raw(502, "text/html", "<html><h1>Bad Gateway</h1></html>")),
        ("503", Reply::error(503, "down")),
        ("529", Reply::error(529, "overloaded")),
        (
            "an error inside the stream",
            call.clone().rearranged(|parts| {
                parts.truncate(1);
                parts.push(b"data: {\"error\":{\"message\":\"the engine died\",\"code\":500}}\n\n".to_vec());
            }),
        ),
        ("garbage for an event", call.clone().with_garbage(2, b"data: {\"choices\":[{\"del\xff\xfe\n\n")),
        ("an empty stream", Reply::events([])),
        ("an end without a finish", call.rearranged(|parts| parts.truncate(3))),
    ];
    let mut combinations = 0;
    for struck in STRUCK {
        for (fault, reply) in &faults {
            let case = format!("{fault}, reply {struck}");
            let project = impatient();
            let server = striking(struck, reply.clone());
            let outcome = run_on(&project, &server).run();
            did_everything_once(&project, &outcome, &case);
            assert_eq!(server.requests().len(), 4, "{case}: {}", outcome.stdout);
            combinations += 1;
        }
    }
    ran("instead of a reply, retried", combinations);
}

#[test]
fn a_cut_after_the_finish_loses_nothing() {
    // Only the end marker is missing: the reply may be used or requested again, but its call runs once.
    for (fault, cut) in CUTS {
        let reply = replies()[0].clone();
        let at = ReplyPosition::Body(reply.body_position("[DONE]"));
        let project = impatient();
        let server = striking(0, cut(reply, at));
        let outcome = run_on(&project, &server).run();
        let effects = project.read("effects.txt");
        let once = |line: &str| effects.lines().filter(|other| *other == line).count() <= 1;
        if server.requests().len() == 4 && of_type(&outcome.events(), "retry").len() == 1 {
            did_everything_once(&project, &outcome, fault);
        } else {
            // The reply was used, so the script is one reply ahead: the same command comes again as a new
            // call.
            assert_eq!(outcome.code, Some(0), "{fault}: {outcome:#?}");
            assert!(once("two"), "{fault}: {effects}");
        }
    }
}

#[test]
fn a_cancellation_at_any_moment_ends_the_run_and_the_request() {
    let mut combinations = 0;
    for struck in STRUCK {
        let reply = replies()[struck].clone();
        for (moment, at) in moments(struck) {
            let case = format!("cancelled {moment}, reply {struck}");
            let project = Project::new();
            let server = striking(struck, reply.clone().hanging(at));
            let running = run_on(&project, &server).start();
            server.wait_for_requests(struck + 1, LIMIT);
            running.signal(Signal::INT);
            let outcome = running.wait().exits(130);
            assert_eq!(outcome.events().last().unwrap()["status"], json!("cancelled"), "{case}");
            server.wait_until_abandoned(struck, LIMIT);
            assert_eq!(project.read("effects.txt"), if struck == 0 { "" } else { "one\n" }, "{case}");
            project.assert_no_process_left();
            combinations += 1;
        }
    }
    ran("within a reply, cancelled", combinations);
}

#[test]
fn a_kill_at_any_moment_is_survived() {
    let mut combinations = 0;
    for struck in STRUCK {
        let reply = replies()[struck].clone();
        for (moment, at) in moments(struck) {
            let case = format!("killed {moment}, reply {struck}");
            let project = impatient();
            let server = striking(struck, reply.clone().hanging(at));
            let running = run_on(&project, &server).args(["--run-id", "killed"]).start();
            server.wait_for_requests(struck + 1, LIMIT);
            running.signal(Signal::KILL);
            let killed = running.wait();
            assert!(killed.was_killed(), "{case}: {killed:#?}");
            killed.events_until_killed();
            let resumed = with_key(fusee(&project).args(["resume", "killed", "--json"])).run();
            did_everything_once(&project, &resumed, &case);
            resumed.events_after_resume();
            let requests = server.requests();
            assert_eq!(requests.len(), 4, "{case}");
            let (killed, again) = (&requests[struck].arrived, &requests[struck + 1].arrived);
            assert_eq!(killed.messages(), again.messages(), "{case}: the resumed run asks something else");
            combinations += 1;
        }
    }
    ran("within a reply, killed and resumed", combinations);
}

#[test]
fn a_server_that_never_gets_well_ends_the_task_after_its_retries() {
    for (fault, cut) in CUTS {
        let project = impatient();
        let reply = replies()[0].clone();
        let at = ReplyPosition::Body(reply.body_position("arguments\":\"{"));
        let server = Server::start(Script::new().then_always(cut(reply, at)));
        // A server that says nothing more uses up the time of a request; the others cannot be reached.
        let exit = if *fault == "silent" { 3 } else { 4 };
        let outcome = run_on(&project, &server).run().exits(exit);
        let events = outcome.events();
        assert_eq!((server.requests().len(), of_type(&events, "retry").len()), (4, 3), "{fault}");
        assert_eq!(project.read("effects.txt"), "", "{fault}: a call of a cut stream was run");
    }
}
