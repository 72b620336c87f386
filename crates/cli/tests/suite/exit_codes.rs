//! The table of exit codes; each row is a run that ends with that code.

use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{ClosedPort, Message, Reply, Script, Server};
use serde_json::{Value, json};

use crate::support::{fusee, impatient, run, run_http, run_json, run_on};

/// Status of a run, and code and reason of its error.
fn end(outcome: &Outcome) -> (String, String, String) {
    let events = outcome.events();
    let last = events.last().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    (text(&last["status"]), text(&last["error"]["code"]), text(&last["error"]["reason"]))
}

#[track_caller]
fn ends(outcome: &Outcome, status: &str, code: &str, reason: &str) {
    assert_eq!(end(outcome), (status.to_owned(), code.to_owned(), reason.to_owned()), "{}", outcome.stdout);
}

const GREET: &str = r#"<task type="atomic" name="greet"><description>Greets.</description><inputs><input name="who"/></inputs><instructions>Greet {{who}}.</instructions></task>"#;

fn shell_lines(count: usize) -> Vec<Line> {
    (0..count).map(|n| Line::call("shell", json!({"command": format!("echo {n}")}))).collect()
}

#[test]
fn completed_is_0() {
    let project = Project::new();
    let outcome = run_json(&project, &project.script(&[Line::text("Done.")])).run().exits(0);
    ends(&outcome, "completed", "-", "-");
}

#[test]
fn a_refusing_model_is_1_at_once_with_its_own_words() {
    for status in [400, 401, 403, 404, 422] {
        let project = impatient();
        let server = Server::start([Reply::error(status, "not with this key")]);
        let outcome = run_on(&project, &server).run().exits(1);
        ends(&outcome, "failed", "TURN_FAILED", "llm_error");
        let events = outcome.events();
        let message = &events.last().unwrap()["error"]["message"];
        assert!(message.as_str().unwrap().contains("not with this key"), "{status}: {message}");
        assert_eq!((server.requests().len(), of_type(&events, "retry").len()), (1, 0), "{status}");
    }
}

#[test]
fn a_script_at_its_end_is_a_refusal_that_says_so() {
    let project = Project::new();
    let outcome = run_json(&project, &project.script(&shell_lines(1))).run().exits(1);
    ends(&outcome, "failed", "TURN_FAILED", "llm_error");
    let message = outcome.events().last().unwrap()["error"]["message"].to_string();
    assert!(message.contains("script"), "{message}");
}

#[test]
fn the_loop_guard_is_1() {
    let project = Project::new();
    let same = Line::call("shell", json!({"command": "echo same"}));
    let outcome = run_json(&project, &project.script(&vec![same; 8])).run().exits(1);
    ends(&outcome, "failed", "TURN_FAILED", "execution_halted");
}

#[test]
fn a_model_that_says_it_is_blocked_has_failed_with_1() {
    let project = Project::new();
    let blocked = Line::call("finish", json!({"status": "blocked", "summary": "No way in."}));
    let script = project.script(&[blocked]);
    let outcome = run_json(&project, &script).args(["--run-id", "b"]).run().exits(1);
    ends(&outcome, "failed", "TURN_FAILED", "blocked");
    let events = outcome.events();
    let last = events.last().unwrap();
    assert_eq!(last["answer"], "No way in.");
    assert_eq!(last["error"]["message"], "the model reports that it is blocked: No way in.");
    assert_eq!(of_type(&events, "task_report")[0]["status"], "failed");
    let runs = fusee(&project).args(["runs", "--json"]).run().exits(0);
    assert!(runs.stdout.contains("\"failed\""), "{}", runs.stdout);
}

#[test]
fn a_reply_that_is_cut_off_twice_exhausts_the_output() {
    let project = impatient();
    let cut = || {
        let delta = |delta: Value, end: Value| {
            json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
            .to_string()
        };
        let words = delta(json!({"role": "assistant", "content": "Half a"}), Value::Null);
        Reply::events([words, delta(json!({}), json!("length")), "[DONE]".to_owned()])
    };
    let server = Server::start([cut(), cut()]);
    let outcome = run_on(&project, &server).run().exits(3);
    ends(&outcome, "failed", "TOKEN_LIMIT", "output");
    assert_eq!(outcome.events().last().unwrap()["answer"], "Half a");
}

#[test]
fn a_silent_model_is_a_timeout_counted_in_milliseconds() {
    let agent = r#"{"timeout": 300, "retryPolicy": {"maxRetries": 1, "backoffMs": 10}}"#;
    let project = Project::new().with("agent.json", agent);
    let server = Server::start(Script::new().then_always(Reply::silence()));
    let outcome = run_on(&project, &server).args(["--agent", "agent.json"]).run().exits(3);
    ends(&outcome, "failed", "TIMEOUT", "time");
    assert_eq!(server.requests().len(), 2);
    let tried = of_type(&outcome.events(), "retry").len();
    assert_eq!(tried, 1, "{}", outcome.stdout);
    let reason = of_type(&outcome.events(), "retry")[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("0.3 s") || reason.contains("300 ms"), "{reason}");
}

#[test]
fn what_keeps_a_run_from_starting_is_on_the_stream() {
    let project = Project::new().with(".fusee/templates/greet.xml", GREET).with("broken.toml", "x = \n");
    let done = project.script(&[Line::text("Done.")]);
    let missing = "configuration_error";
    let cases: &[(&[&str], i32, &str)] = &[
        (&["run", "x", "--model", "script:none.jsonl"], 2, missing),
        (&["run", "x", "--model", &done, "--agent", "none.toml"], 2, missing),
        (&["run", "x", "--model", &done, "--agent", "broken.toml"], 2, missing),
        (&["run", "x", "--model", &done, "--prompt", "none.toml"], 2, missing),
        (&["run", "x", "--model", &done, "--output-schema", "none.json"], 2, missing),
        (&["run", "x", "--model", &done, "--continue", "never"], 2, missing),
        (&["run", "x", "--model", &done, "-C", "no/such/directory"], 2, missing),
        (&["run", "x"], 2, missing),
        (&["run", "--model", &done], 2, missing),
        (&["run", "--template", "nothing-like-it", "--model", &done], 2, "template_not_found"),
        (&["run", "/task greet", "--model", &done], 2, "input_validation_failure"),
        (&["run", "(no-such-form 1)", "--model", &done], 2, missing),
        (&["review", "--model", "script:none.jsonl"], 2, missing),
        (&["review", "nowhere.py", "--model", &done], 2, missing),
        (&["review", "--continue", "--model", &done], 2, missing),
        (&["review", "-C", "no/such/directory", "--model", &done], 2, missing),
        (&["run", "x", "--model", &done, "--max-turns", "many"], 2, missing),
        (&["run", "x", "--model", &done, "--no-such-flag"], 2, missing),
        (&["review", "--fail-on", "everything", "--model", &done], 2, missing),
    ];
    for (args, exit, reason) in cases {
        let outcome = fusee(&project).args(args.iter()).args(["--json"]).run().exits(*exit);
        assert_eq!(
            end(&outcome),
            ("failed".to_owned(), "INIT_FAILED".to_owned(), (*reason).to_owned()),
            "{args:?}"
        );
        let events = outcome.events();
        let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["task_started", "error", "task_complete"], "{args:?}");
        assert!(outcome.stderr.starts_with("error") || !outcome.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn wrong_usage_is_2_and_names_the_nearest() {
    let project = Project::new();
    let unknown = fusee(&project).args(["rnu", "x"]).run().exits(2);
    assert!(unknown.stderr.contains("run"), "{}", unknown.stderr);
    let flag = fusee(&project).args(["run", "x", "--modle", "script:x"]).run().exits(2);
    assert!(flag.stderr.contains("--model"), "{}", flag.stderr);
    fusee(&project).args(["run", "x", "--max-turns", "many", "--model", "script:x"]).run().exits(2);
    let missing = run(&project, "script:no-such-file.jsonl").run().exits(2);
    assert!(missing.stderr.contains("no-such-file.jsonl"), "{}", missing.stderr);
    let broken = project.scratch("broken.jsonl");
    std::fs::write(&broken, "{\"text\":\"fine\"}\n{\"txet\": 1}\n").unwrap();
    let broken = run(&project, &format!("script:{}", broken.display())).run().exits(2);
    assert!(broken.stderr.contains("txet"), "{}", broken.stderr);
}

#[test]
fn a_wrong_configuration_is_2_with_its_place() {
    let project = Project::new().with("fusee.toml", "max_turns = 3\nmax_truns = 4\n");
    let outcome = run(&project, &project.script(&[Line::text("Done.")])).run().exits(2);
    assert!(
        outcome.stderr.contains("fusee.toml") && outcome.stderr.contains("max_turns"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn no_model_is_2_and_says_what_to_do() {
    let project = Project::new();
    let outcome = fusee(&project).args(["run", "x"]).run().exits(2);
    for way in ["fusee -m openai:MODEL", "fusee -m MODEL --base-url URL", "fusee doctor", "fusee demo"] {
        assert!(outcome.stderr.contains(way), "{}", outcome.stderr);
    }
}

#[test]
fn a_run_id_in_use_or_malformed_is_2() {
    let project = Project::new();
    let done = project.script(&[Line::text("Done.")]);
    run(&project, &done).args(["--run-id", "once"]).run().exits(0);
    let again = run(&project, &done).args(["--run-id", "once"]).run().exits(2);
    assert!(again.stderr.contains("once"), "{}", again.stderr);
    let long = "x".repeat(65);
    for id in ["", "a b", "a/b", "..", "é", long.as_str()] {
        run(&project, &done).args(["--run-id", id]).run().exits(2);
    }
    fusee(&project).args(["resume", "never"]).run().exits(2);
    fusee(&project).args(["show", "never"]).run().exits(2);
    fusee(&project).args(["replay", "never"]).run().exits(2);
}

#[test]
fn limits_are_3_each_under_its_code() {
    let project = Project::new();
    let lines = shell_lines(9);
    let turns = run_json(&project, &project.script(&lines)).args(["--max-turns", "2"]).run().exits(3);
    ends(&turns, "failed", "MAX_TURNS", "turns");
    assert_eq!(of_type(&turns.events(), "turn_start").len(), 2);

    let slow = [Line::call("shell", json!({"command": "sleep 30"})), Line::text("Late.")];
    let time = run_json(&project, &project.script(&slow)).args(["--timeout", "1"]).run().exits(3);
    ends(&time, "failed", "TIMEOUT", "time");
    assert!(time.elapsed < Duration::from_secs(10), "{:?}", time.elapsed);
    project.assert_no_process_left();

    let long = "word ".repeat(4000);
    let full = [Line::text(&long).and_call("shell", json!({"command": "echo x"})), Line::text("Done.")];
    let tokens = run_json(&project, &project.script(&full)).args(["--max-tokens", "1500"]).run().exits(3);
    ends(&tokens, "failed", "TOKEN_LIMIT", "context");
}

#[test]
fn what_there_is_of_an_answer_outlives_a_limit() {
    let project = Project::new();
    let lines =
        [Line::text("So far: the cause is in a.txt.").and_call("shell", json!({"command": "echo x"}))];
    let outcome = run_json(&project, &project.script(&lines)).args(["--max-turns", "1"]).run().exits(3);
    ends(&outcome, "failed", "MAX_TURNS", "turns");
    let events = outcome.events();
    assert_eq!(events.last().unwrap()["answer"], json!("So far: the cause is in a.txt."));
}

#[test]
fn a_model_that_cannot_be_reached_is_4_after_its_retries() {
    let project = impatient();
    let port = ClosedPort::reserve();
    let outcome = run_http(&project, &port.base_url()).run().exits(4);
    ends(&outcome, "failed", "TURN_FAILED", "llm_error");
    assert_eq!(of_type(&outcome.events(), "retry").len(), 3);

    let down = Server::start(Script::new().then_always(Reply::error(503, "down for repairs")));
    let outcome = run_on(&project, &down).run().exits(4);
    assert_eq!((down.requests().len(), of_type(&outcome.events(), "retry").len()), (4, 3));
    assert!(outcome.stdout.contains("down for repairs"), "{}", outcome.stdout);
}

#[test]
fn a_model_that_comes_back_in_time_is_0() {
    let project = impatient();
    let replies = [Reply::error(503, "down"), Reply::error(500, "again"), Message::text("Back.").stream()];
    let server = Server::start(replies);
    let outcome = run_on(&project, &server).run().exits(0);
    assert_eq!(outcome.events().last().unwrap()["answer"], json!("Back."));
}
