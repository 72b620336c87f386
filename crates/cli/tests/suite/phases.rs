//! Phase control of the binary: what decides a task's phase, what the model is told about it, where it shows,
//! and that a failed probe does no harm.

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Request, Script, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::flows::{plan, project, read, report, write};
use crate::support::{fusee, run, run_json, run_on};

const PROMPTS: &str =
    "[phase_control.prompts]\ncontext = \"READ FIRST\"\nplan = \"PLAN NOW\"\nimplement = \"CHANGE NOW\"\n";

fn with_mode(mode: &str, more: &str) -> Project {
    project().with("fusee.toml", &format!("{more}\n[phase_control]\nmode = \"{mode}\"\n{PROMPTS}"))
}

/// Renders the phase events, one line each.
fn phases(events: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |event: &Value| {
        let output = match event["type"].as_str()? {
            "phase_state" => text(&event["phase"]),
            "phase_transition" => {
                format!("{} -> {}: {}", text(&event["from"]), text(&event["to"]), text(&event["reason"]))
            }
            "phase_probe_error" => format!("error: {}", text(&event["message"])),
            _ => return None,
        };
        Some(format!("{} {} {output}", text(&event["task"]), event["turn_index"]))
    };
    events.iter().filter_map(line).collect()
}

fn replays(project: &Project, events: &[Value]) {
    let id = events[0]["run"].as_str().unwrap();
    fusee(project).args(["replay", id]).run().exits(0);
}

#[test]
fn rules_follow_what_was_really_done() {
    let project = with_mode("rules", "");
    let lines = [
        read("a.txt"),
        plan(&["Change a.txt"]),
        write("a.txt"),
        plan(&["Change it again"]),
        Line::call("shell", json!({"command": "echo more >> a.txt"})),
        Line::text("Done."),
    ];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    assert_eq!(
        phases(&events),
        [
            "main 0 context",
            "main 1 context -> plan: 1 file was read",
            "main 2 plan -> implement: a plan was made",
            "main 4 implement -> plan: a new plan was made",
            "main 5 plan -> implement: a file changed",
        ]
    );
    replays(&project, &events);
}

#[test]
fn the_phases_of_a_staged_flow_and_those_of_phase_control_are_told_apart() {
    let project = with_mode("rules", "task_flow_mode = \"staged\"\n");
    let lines = [read("a.txt"), plan(&["Change a.txt"]), write("a.txt"), Line::text("Done.")];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    let of = |source: &str| {
        let theirs: Vec<Value> = events.iter().filter(|event| event["source"] == source).cloned().collect();
        phases(&theirs)
    };
    assert_eq!(
        of("flow"),
        [
            "main 0 explore",
            "main 1 explore -> plan: the required files were read",
            "main 2 plan -> implement: a plan was made",
        ]
    );
    assert_eq!(
        of("phase_control"),
        [
            "main 0 context",
            "main 1 context -> plan: 1 file was read",
            "main 2 plan -> implement: a plan was made",
        ]
    );
    assert_eq!(phases(&events).len(), 6, "each is one or the other");
    replays(&project, &events);
}

#[test]
fn a_model_is_asked_after_each_turn_and_only_for_a_word() {
    let project = with_mode("llm", "[phase_control.probe]\nuser_prompt = \"{phase} of {states}?\"\n");
    let lines = [
        read("a.txt").usage(100, 10),
        Line::text("plan").usage(20, 1),
        write("a.txt").usage(200, 10),
        Line::text("It is implement.").usage(20, 1),
        Line::text("Done.").usage(300, 10),
    ];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    assert_eq!(
        phases(&events),
        [
            "main 0 context",
            "main 1 context -> plan: reported by the model",
            "main 2 plan -> implement: reported by the model",
        ]
    );
    let last = events.last().unwrap();
    assert_eq!(
        (&last["total_turns"], &last["total_tokens"]),
        (&json!(3), &json!(672)),
        "questions are paid for"
    );
    assert_eq!(of_type(&events, "message").len(), 1, "nothing of it is in the conversation");
    replays(&project, &events);
}

#[test]
fn in_hybrid_the_rules_go_first() {
    let project = with_mode("hybrid", "");
    let lines = [
        Line::call("list_dir", json!({"path": "."})),
        Line::text("context"),
        read("a.txt"),
        write("a.txt"),
        Line::call("think", json!({"thought": "hm"})),
        Line::text("plan"),
        Line::text("Done."),
    ];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    assert_eq!(
        phases(&events),
        [
            "main 0 context",
            "main 2 context -> plan: 1 file was read",
            "main 3 plan -> implement: a file changed",
            "main 4 implement -> plan: reported by the model",
        ]
    );
}

#[test]
fn a_question_that_fails_changes_nothing() {
    let project = with_mode("llm", "");
    let lines = [
        read("a.txt"),
        Line::error(500, "on fire"),
        read("tests/test_a.txt"),
        Line::text("no idea"),
        write("a.txt"),
        Line::error(401, "who are you?"),
        Line::text("Done."),
    ];
    let events = run_json(&project, &project.script(&lines)).run().exits(0).events();
    let output = phases(&events);
    assert_eq!(output.len(), 4, "{output:?}");
    assert!(output[1].starts_with("main 1 error: ") && output[1].contains("on fire"), "{output:?}");
    assert_eq!(
        output[2],
        "main 2 error: the answer \"no idea\" names none of the phases context, plan, implement"
    );
    assert!(output[3].contains("who are you?"), "{output:?}");
    assert_eq!(events.last().unwrap()["status"], "completed");
    assert_eq!(of_type(&events, "retry").len(), 0);
    assert_eq!(report(&events)["feedback_counts"], json!({}));
    replays(&project, &events);
}

#[test]
fn the_phase_goes_on_from_stage_to_stage() {
    let project = with_mode("rules", "");
    let lines = [
        read("a.txt"),
        Line::text("a.txt matters."),
        plan(&["Change a.txt"]),
        Line::text("Planned."),
        write("a.txt"),
        Line::text("Done."),
    ];
    let events =
        run_json(&project, &project.script(&lines)).args(["--flow", "staged3"]).run().exits(0).events();
    assert_eq!(
        phases(&events),
        [
            "main/context 0 context",
            "main/context 1 context -> plan: 1 file was read",
            "main/plan 0 plan",
            "main/plan 1 plan -> implement: a plan was made",
            "main/implement 0 implement",
        ]
    );
}

fn body(request: &Request) -> Value {
    request.arrived.json()
}

/// Last line of the system prompt, and last message, of every request.
fn sent(server: &Server) -> Vec<(String, String)> {
    let output = |request: &Value| {
        let messages = request["messages"].as_array().unwrap();
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let last_line = |text: String| text.lines().last().unwrap_or_default().to_owned();
        (last_line(text(&messages[0])), last_line(text(messages.last().unwrap())))
    };
    server.requests().iter().map(|request| output(&body(request))).collect()
}

fn answers() -> Script {
    [
        Message::call("read_file", json!({"path": "a.txt"})),
        Message::call("write_file", json!({"path": "a.txt", "content": "new\n"})),
        Message::text("Done."),
    ]
    .into_iter()
    .collect()
}

#[test]
fn the_words_of_a_phase_stand_at_the_end_of_the_system_prompt() {
    let project = with_mode("rules", "");
    let server = Server::start(answers());
    let events = run_on(&project, &server).run().exits(0).events();
    let ends: Vec<String> = sent(&server).into_iter().map(|(system, _)| system).collect();
    assert_eq!(ends, ["READ FIRST", "PLAN NOW", "CHANGE NOW"]);
    let said = of_type(&events, "message").iter().filter(|event| event["role"] == "user").count();
    assert_eq!(said, 0, "they are in no message");
    replays(&project, &events);
}

#[test]
fn at_the_tail_they_follow_the_last_message_and_the_prefix_survives() {
    let project = with_mode("rules", "phase_prompt_at = \"tail\"\n");
    let server = Server::start(answers());
    let events = run_on(&project, &server).run().exits(0).events();
    let ends: Vec<String> = sent(&server).into_iter().map(|(_, last)| last).collect();
    assert_eq!(ends, ["READ FIRST", "PLAN NOW", "CHANGE NOW"]);
    let requests: Vec<Vec<Value>> = server
        .requests()
        .iter()
        .map(|request| body(request)["messages"].as_array().unwrap().clone())
        .collect();
    for pair in requests.windows(2) {
        let kept = pair[0].len() - 1;
        assert_eq!(pair[0][..kept], pair[1][..kept]);
    }
    assert_eq!(requests[1].len(), 5, "system, request, call, result and the words: {:#?}", requests[1]);
    assert_eq!(requests[2].len(), 7, "the words are not kept: {:#?}", requests[2]);
    replays(&project, &events);
}

#[test]
fn the_question_has_no_tools_and_no_history_and_its_own_knobs() {
    let project = with_mode("llm", "[phase_control.probe]\nmax_tokens = 7\ntemperature = 0.5\n");
    let server = Server::start(
        [Message::call("read_file", json!({"path": "a.txt"})), Message::text("plan"), Message::text("Done.")]
            .into_iter()
            .collect::<Script>(),
    );
    let events = run_on(&project, &server).run().exits(0).events();
    assert_eq!(phases(&events).len(), 2);
    let question = body(&server.requests()[1]);
    assert!(question.get("tools").is_none(), "{question:#}");
    assert_eq!(question["messages"].as_array().unwrap().len(), 2);
    assert_eq!(question["temperature"], json!(0.5));
    let most = question.get("max_tokens").or_else(|| question.get("max_completion_tokens"));
    assert_eq!(most, Some(&json!(7)), "{question:#}");
    let words = question["messages"][1]["content"].as_str().unwrap();
    assert!(words.contains("read_file") && words.contains("1 files read"), "{words}");
}

#[test]
fn phase_log_says_where_phases_show() {
    let lines = [read("a.txt"), Line::text("Done.")];
    let shown = |target: &str| {
        let project = with_mode("rules", &format!("phase_log = \"{target}\"\n"));
        let outcome = run(&project, &project.script(&lines)).args(["--run-id", "p"]).run().exits(0);
        let log = fusee(&project).args(["show", "p", "--log"]).run().exits(0).stdout;
        let after = log.split_once("\nphases\n").map(|(_, after)| after.lines().count());
        (outcome.stdout, after, log.matches(" phase_").count())
    };
    let on_stdout = "phase context\nphase context -> plan: 1 file was read\nDone.\n".to_owned();
    assert_eq!(shown("off"), ("Done.\n".to_owned(), None, 0));
    assert_eq!(shown("stdout"), (on_stdout.clone(), None, 0));
    assert_eq!(shown("log"), ("Done.\n".to_owned(), Some(2), 2));
    assert_eq!(shown("both"), (on_stdout, Some(2), 2));
}

#[test]
fn a_run_killed_while_it_asks_for_the_phase_goes_on_there() {
    let project = with_mode("llm", "");
    let lines = [
        read("a.txt"),
        Line::text("plan"),
        write("a.txt"),
        Line::text("implement").delay_ms(700),
        Line::text("Done."),
    ];
    let script = project.script(&lines);
    let mut running = run_json(&project, &script).args(["--run-id", "killed"]).start();
    running.wait_for_stdout("the change", |out| out.matches("\"turn_complete\"").count() >= 2);
    std::thread::sleep(std::time::Duration::from_millis(100));
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    fusee(&project).args(["resume", "killed"]).run().exits(0);
    let shown = fusee(&project).args(["show", "killed", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    assert_eq!(
        phases(&events),
        [
            "main 0 context",
            "main 1 context -> plan: reported by the model",
            "main 2 plan -> implement: reported by the model",
        ]
    );
    assert_eq!(events.last().unwrap()["answer"], "Done.");
    replays(&project, &events);
}
