//! Model-written summaries of long conversations, and every server fault while one is requested: handled by
//! the rule-based summary, by a cancellation, and by kill -9 and a resume.

use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Outcome, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Reply, ReplyPosition, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fault_matrix::{CUTS, ran};
use crate::support::{fusee, run_on, with_key};

const LIMIT: Duration = Duration::from_secs(20);

/// Turns before the summary is requested: each reads a long file, and the reported usage fills the context.
const READS: usize = 4;

/// Index of the request for the summary.
const ASKED: usize = READS;

fn project() -> Project {
    let much = "a line of a long file that nobody needs word for word\n".repeat(120);
    let names = (0..READS).map(|n| format!("part{n}.txt"));
    let project = Project::new().with(
        "fusee.toml",
        "compaction_summary = \"model\"\nmax_tokens = 20000\ntimeout_s = 1\n\n[retry_policy]\nmax_retries = 3\nbackoff_ms = 10\n",
    );
    names.fold(project, |project, name| project.with(&name, &format!("{name}\n{much}")))
}

fn reading(n: usize) -> Message {
    let tokens = if n + 1 == READS { 16_000 } else { 4_000 };
    Message::call("read_file", json!({"path": format!("part{n}.txt")})).usage(tokens, 10)
}

fn summary() -> Message {
    Message::text("- The parts hold nothing of use.\n- Decided to answer.").usage(700, 30)
}

/// Replies of an entire run, with those for the summary request.
fn replies(at_summary: Vec<Reply>) -> Vec<Reply> {
    let reads = (0..READS).map(|n| reading(n).stream());
    let last = Message::text("Nothing in it.").usage(3_000, 5).stream();
    reads.chain(at_summary).chain([last]).collect()
}

fn started<'p>(project: &'p Project, server: &Server) -> Command<'p> {
    run_on(project, server).args(["--run-id", "long"])
}

/// User messages of the last request that replaced compacted turns.
fn output(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let messages = requests.last().unwrap().arrived.messages();
    let read = |text: &String| serde_json::from_str::<Value>(text).unwrap();
    let text = |message: Value| message["content"].as_str().map(str::to_owned);
    messages.iter().map(read).filter_map(text).filter(|text| text.starts_with("[Earlier turns")).collect()
}

#[track_caller]
fn is_done(project: &Project, outcome: Outcome, case: &str) -> Vec<Value> {
    assert_eq!(outcome.code, Some(0), "{case}: {outcome:#?}");
    let shown = fusee(project).args(["show", "long", "--json"]).run().exits(0);
    let events = fusee_testkit::events::read_checked(&shown.stdout, fusee_testkit::events::Part::Whole);
    assert_eq!(of_type(&events, "compaction").len(), 1, "{case}");
    fusee(project).args(["replay", "long"]).run().exits(0);
    project.assert_no_process_left();
    events
}

#[test]
fn the_model_tells_of_old_turns_and_is_asked_once() {
    let project = project();
    let server = Server::start(replies(vec![summary().stream()]));
    let outcome = started(&project, &server).run();
    let events = is_done(&project, outcome, "undisturbed");
    let [output] = output(&server).try_into().unwrap();
    assert!(output.ends_with("\n- The parts hold nothing of use.\n- Decided to answer."), "{output}");
    let asked = &server.requests()[ASKED].arrived;
    assert!(asked.json().get("tools").is_none(), "it is asked for words alone");
    let last = events.last().unwrap();
    // The summary costs tokens but does not count as a turn.
    let tokens = (0..READS).map(|n| if n + 1 == READS { 16_010 } else { 4_010 }).sum::<u64>() + 730 + 3_005;
    assert_eq!((&last["total_turns"], &last["total_tokens"]), (&json!(READS + 1), &json!(tokens)));
    assert!(of_type(&events, "warning").iter().all(|warning| warning["code"] != "compaction_summary"));
    // A continued conversation does not contain the request for the summary.
    let next = project.script(&[Line::text("Still nothing.")]);
    fusee(&project).args(["run", "--continue", "long", "again", "--model", &next]).run().exits(0);
}

fn moments(reply: &Reply) -> [(&'static str, ReplyPosition); 4] {
    [
        ("before the headers", ReplyPosition::Head(0)),
        ("within the headers", ReplyPosition::Head(20)),
        ("within the first event", ReplyPosition::Body(30)),
        ("within the words", ReplyPosition::Body(reply.body_position("Decided"))),
    ]
}

#[test]
fn a_fault_while_the_summary_is_asked_for_leaves_the_rule() {
    let mut combinations = 0;
    let words = summary().stream();
    let cut = moments(&words).into_iter().flat_map(|(moment, at)| {
        let words = words.clone();
        CUTS.iter().map(move |(fault, cut)| (format!("{fault} {moment}"), cut(words.clone(), at)))
    });
    let whole = [
        ("500".to_owned(), Reply::error(500, "oops")),
        ("a call".to_owned(), Message::call("finish", json!({"status": "done"})).stream()),
        ("nothing".to_owned(), Message::text("").stream()),
    ];
    for (case, fault) in cut.chain(whole) {
        let project = project();
        let server = Server::start(replies(vec![fault]));
        let outcome = started(&project, &server).run();
        let events = is_done(&project, outcome, &case);
        let [output] = output(&server).try_into().unwrap();
        assert!(output.contains("\n- read part0.txt"), "{case}: {output}");
        let warned =
            of_type(&events, "warning").into_iter().filter(|event| event["code"] == "compaction_summary");
        assert_eq!(warned.count(), 1, "{case}");
        combinations += 1;
    }
    ran("for a summary, left to the rule", combinations);
}

#[test]
fn a_cancellation_or_a_kill_while_the_summary_is_asked_for_is_met() {
    let words = summary().stream();
    let mut combinations = 0;
    for (moment, at) in moments(&words) {
        let hanging = || Server::start(replies(vec![words.clone().hanging(at), words.clone()]));
        let patient = || {
            let project = project();
            std::fs::write(
                project.dir().join("fusee.toml"),
                "compaction_summary = \"model\"\nmax_tokens = 20000\n",
            )
            .unwrap();
            project
        };
        let (cancelled, server) = (patient(), hanging());
        let running = started(&cancelled, &server).start();
        server.wait_for_requests(ASKED + 1, LIMIT);
        running.signal(Signal::INT);
        let outcome = running.wait().exits(130);
        assert_eq!(outcome.events().last().unwrap()["status"], json!("cancelled"), "{moment}");
        server.wait_until_abandoned(ASKED, LIMIT);
        cancelled.assert_no_process_left();

        let (killed, server) = (patient(), hanging());
        let running = started(&killed, &server).start();
        server.wait_for_requests(ASKED + 1, LIMIT);
        running.signal(Signal::KILL);
        running.wait().events_until_killed();
        let resumed = with_key(fusee(&killed).args(["resume", "long", "--json"])).run();
        is_done(&killed, resumed, moment);
        let requests = server.requests();
        assert_eq!(requests.len(), READS + 3, "{moment}: asked again once");
        assert_eq!(requests[ASKED].arrived.messages(), requests[ASKED + 1].arrived.messages(), "{moment}");
        combinations += 2;
    }
    ran("for a summary, cancelled or killed and resumed", combinations);
}
