//! Several answers of a small model: dropped without a test, at the same time, voted on, escalated, and kept when a
//! limit ends the run.

use std::sync::Mutex;

use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Reply, Server};
use serde_json::{Value, json};

use crate::small_models::{TESTS, answer, of_type, project, run, samples};
use crate::support::fusee;

#[test]
fn answers_that_cannot_pass_are_dropped_before_a_test_runs() {
    let project = project();
    let file = |text: &str| Message::text(&format!("leap.py\n```python\n{text}```\n")).stream();
    let server = Server::start([
        file("def one():\n    return (1\n\n\ndef two():\n    return 2\n"),
        file("def one():\n    pass\n\n\ndef two():\n    pass\n"),
        answer("1", "2"),
    ]);
    let events = run(&project, &server).run().exits(0).events();
    assert_eq!(
        samples(&events),
        [
            json!([1, "not_parsed", null, null]),
            json!([2, "unchanged", null, null]),
            json!([3, "passed", 2, 0])
        ]
    );
    let first = of_type(&events, "sample")[0];
    assert_eq!(first["reason"], "leap.py: line 2 does not parse");
    assert!(first["tokens"].as_u64().unwrap() > 0);
    let verified =
        of_type(&events, "tool_call").into_iter().filter(|call| call["call_id"] == "verify-1").count();
    assert_eq!(verified, 1);
    let report = of_type(&events, "flow_stage_report")[0];
    assert_eq!(report["payload"]["kept"], json!({ "n": 3, "why": "it passes" }));
    assert_eq!(report["payload"]["samples"].as_array().unwrap().len(), 3);
}

#[test]
fn answers_after_the_first_run_at_once_on_a_server_with_slots() {
    let project = project();
    let replies = Mutex::new(0);
    let server = Server::with_metadata(move |arrived| {
        if arrived.path.ends_with("/props") {
            return Reply::json(200, &json!({ "total_slots": 3 }));
        }
        if arrived.method != "POST" {
            return Reply::error(404, "not here");
        }
        let mut count = replies.lock().unwrap();
        *count += 1;
        match *count {
            1 => answer("0", "0"),
            2 => answer("1", "0"),
            3 => answer("1", "2"),
            n => answer("0", &n.to_string()),
        }
    });
    let events =
        run(&project, &server).env("FUSEE_SAMPLES", "4").env("FUSEE_REPAIRS", "0").run().exits(0).events();
    assert!(project.read("leap.py").contains("return 1") && project.read("leap.py").contains("return 2"));
    let started: Vec<&Value> = of_type(&events, "stage_started");
    assert_eq!(started.len(), 4, "one alone, then three at once");
    let passed: Vec<&Value> =
        of_type(&events, "sample").into_iter().filter(|sample| sample["verdict"] == "passed").collect();
    assert_eq!(passed.len(), 1);
    fusee(&project).args(["replay", "small"]).run().exits(0);
}

#[test]
fn tests_that_do_not_end_are_stopped_and_the_model_is_told_so() {
    let project = project();
    let file = |one: &str| {
        let text = format!("leap.py\n```python\ndef one():\n    {one}\n\n\ndef two():\n    return 2\n```\n");
        Message::text(&text).stream()
    };
    let server = Server::start([file("while True: pass"), file("return 1")]);
    let events = run(&project, &server).run().exits(0).events();
    assert_eq!(samples(&events), [json!([1, "failed", null, null]), json!([2, "passed", 2, 0])]);
    let calls = of_type(&events, "tool_call");
    let verify = calls.iter().find(|call| call["call_id"] == "verify-1").unwrap();
    assert_eq!(verify["arguments"]["timeout"], 30, "{verify}");
    let repair = server.requests()[1].arrived.json()["messages"].to_string();
    assert!(
        repair.contains("The tests do not come to an end") && !repair.contains("give a longer"),
        "{repair}"
    );
}

#[test]
fn an_answer_that_does_not_end_is_cut() {
    let project = project();
    let endless: String = (0..2000).map(|n| format!("Then I add {n} and {}.\n", n * 7)).collect();
    let server = Server::start([Message::text(&endless).stream(), answer("1", "2")]);
    let events = run(&project, &server).run().exits(0).events();
    assert_eq!(samples(&events), [json!([1, "no_edit", null, null]), json!([2, "passed", 2, 0])]);
    let messages = of_type(&events, "message");
    let answers = messages.iter().filter(|event| event["role"] == "assistant");
    let longest = answers.map(|event| event["text"].as_str().unwrap().len()).max();
    assert_eq!(longest, Some(8 << 10));
}

#[test]
fn a_file_of_a_made_up_name_is_the_file_of_the_task() {
    let project = project();
    let text = "solution.py\n```python\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n```\n";
    let server = Server::start([Message::text(text).stream()]);
    let events = run(&project, &server).run().exits(0).events();
    assert_eq!(samples(&events), [json!([1, "passed", 2, 0])]);
    assert!(project.read("leap.py").contains("return 2") && !project.dir().join("solution.py").exists());
}

#[test]
fn the_instructions_of_an_exercise_are_shown_without_being_named() {
    let project = project().with(".docs/instructions.md", "# Leap\n\nOne is 1 and two is 2.\n");
    let server = Server::start([answer("1", "2")]);
    let flags = ["run", "make the tests pass", "--model", "llama.cpp:qwen2.5-coder-1.5b", "--json"];
    let run = fusee(&project).args(flags).args(["--base-url", &server.base_url()]);
    let events = run.env("PYTHONDONTWRITEBYTECODE", "1").run().exits(0).events();
    assert_eq!(samples(&events), [json!([1, "passed", 2, 0])]);
    let prompt = server.requests()[0].arrived.json()["messages"].to_string();
    for shown in ["One is 1 and two is 2.", "def one", "LeapTest"] {
        assert!(prompt.contains(shown), "{shown}: {prompt}");
    }
}

/// The workspace of a trial is seen at another path than its own, and so must be its copies.
#[test]
fn answers_of_a_trial_are_tested_and_not_the_files_before_them() {
    let config = r#"{"files": {"solution": ["leap.py"], "test": ["test_leap.py"]}}"#;
    let project = Project::new()
        .with("suite/leap/.meta/config.json", config)
        .with("suite/leap/.docs/instructions.md", "One is 1 and two is 2.\n")
        .with("suite/leap/leap.py", "def one():\n    pass\n\n\ndef two():\n    pass\n")
        .with("suite/leap/test_leap.py", TESTS);
    let server = Server::start([answer("1", "0"), answer("1", "2")]);
    fusee(&project)
        .args(["bench", "run", "suite", "-m", "llama.cpp:qwen2.5-coder-1.5b", "--out", "out"])
        .args(["--base-url", &server.base_url()])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .run()
        .exits(0);
    let result: Value = serde_json::from_str(project.read("out/results.jsonl").trim()).unwrap();
    let found = ["passed", "cause", "turns", "tries"].map(|key| result[key].clone());
    assert_eq!(found, [json!(true), Value::Null, json!(2), json!(1)], "{result}");
}

#[test]
fn without_tests_answers_vote_and_the_run_says_so() {
    let project = Project::new().with("leap.py", "def one():\n    pass\n");
    let file =
        |n: u32| Message::text(&format!("leap.py\n```python\ndef one():\n    return {n}\n```\n")).stream();
    let server = Server::start([file(1), file(2), file(2)]);
    let outcome = run(&project, &server).run().exits(0);
    let events = outcome.events();
    assert_eq!(project.read("leap.py"), "def one():\n    return 2\n");
    let verdicts: Vec<&str> =
        of_type(&events, "sample").iter().map(|sample| sample["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["unverified", "unverified", "unverified"]);
    let said = events.last().unwrap()["answer"].as_str().unwrap();
    assert!(said.ends_with("Nothing verified this change: two answers agree."), "{said}");
}

#[test]
fn the_model_chooses_among_answers_that_differ() {
    let project = Project::new().with("leap.py", "def one():\n    pass\n");
    let file =
        |n: u32| Message::text(&format!("leap.py\n```python\ndef one():\n    return {n}\n```\n")).stream();
    let server = Server::start([file(1), file(2), file(3), Message::text("Answer 2 is right.").stream()]);
    let events = run(&project, &server).run().exits(0).events();
    assert_eq!(project.read("leap.py"), "def one():\n    return 2\n");
    let asked = server.requests()[3].arrived.json().to_string();
    assert!(asked.contains("Which of these answers is right?"), "{asked}");
    let report = of_type(&events, "flow_stage_report")[0];
    assert_eq!(report["payload"]["kept"], json!({ "n": 2, "why": "the model chose it" }));
}

#[test]
fn a_larger_model_gets_one_attempt_if_configured() {
    let project = project();
    let server = Server::start([answer("1", "0"), answer("1", "2")]);
    let events = run(&project, &server)
        .env("FUSEE_SAMPLES", "1")
        .env("FUSEE_REPAIRS", "0")
        .env("FUSEE_ESCALATE", "llama.cpp:large")
        .run()
        .exits(0)
        .events();
    assert_eq!(samples(&events), [json!([1, "failed", 1, 1]), json!([2, "passed", 2, 0])]);
    let requests = server.requests();
    assert_eq!(requests[1].arrived.json()["model"], "large");
    assert!(requests[1].arrived.json().to_string().contains("test_two"), "it is told what failed");
}

#[test]
fn the_best_answer_is_kept_when_a_limit_ends_the_run() {
    let project = project();
    let slow = answer("9", "9").after(std::time::Duration::from_secs(45));
    let server = Server::start([answer("1", "0"), slow]);
    let events = run(&project, &server).args(["--timeout", "20"]).run().exits(3).events();
    assert_eq!(events.last().unwrap()["error"]["code"], "TIMEOUT");
    let message = events.last().unwrap()["error"]["message"].as_str().unwrap();
    assert!(message.contains("the files are those of answer 1, which passes 1 of 2 tests"), "{message}");
    assert_eq!(project.read("leap.py"), "def one():\n    return 1\n\n\ndef two():\n    return 0\n");
}

#[test]
fn doctor_tests_a_model_and_writes_its_profile() {
    let project = Project::new();
    let replies = Mutex::new(0);
    let server = Server::with_metadata(move |arrived| {
        if arrived.path.ends_with("/props") {
            return Reply::json(
                200,
                &json!({ "total_slots": 2, "default_generation_settings": { "n_ctx": 4096 } }),
            );
        }
        if arrived.method != "POST" {
            let list = json!({ "data": [{ "id": "tiny", "meta": { "n_ctx_train": 32768 } }] });
            return Reply::json(200, &list);
        }
        let mut count = replies.lock().unwrap();
        *count += 1;
        let text = match *count {
            1 => "I would call ping.".to_owned(),
            2 => "greet.py\n```python\ndef greet(name):\n    return \"Goodbye, \" + name\n```".to_owned(),
            3 => "{\"kind\": \"pun\", \"lines\": 2}".to_owned(),
            _ => (1..=150).map(|n| format!("{n}\n")).collect(),
        };
        Message::text(&text).stream()
    });
    let doctor = |flags: &[&str]| {
        fusee(&project)
            .args(["doctor", "llama.cpp:tiny", "--base-url", &server.base_url()])
            .args(flags.iter().copied())
            .run()
            .exits(0)
            .stdout
    };
    let shown = doctor(&["--write"]);
    for line in [
        "tool call",
        "makes no tool call",
        "answers with the whole file",
        "the server constrains replies to a schema",
        "ends by itself",
        "4096 tokens",
        "2 requests at once",
        "tool_format = \"schema\"",
        "small = true",
        "edit_format = \"whole\"",
        "written to ",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}
