//! Budgets of a task, its questions to the user, and the format of its answer.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Server};
use serde_json::{Value, json};

use crate::support::{fusee, run, run_json};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

#[test]
fn an_answer_that_fits_its_schema_is_printed_bare() {
    let project = Project::new().with("schema.json", SCHEMA);
    let script = project.script(&[Line::text("Here it is:\n```json\n{\"n\": 1}\n```")]);
    let outcome = run(&project, &script).args(["--output-schema", "schema.json"]).run();
    // Text around a fence is not JSON, but the value inside is found.
    assert_eq!(outcome.exits(0).stdout, "{\"n\": 1}\n");
}

#[test]
fn an_answer_that_does_not_fit_is_mended_once_and_then_a_failure() {
    let project = Project::new().with("schema.json", SCHEMA);
    let wrong = || Line::text("{\"n\": \"one\"}");
    let args = ["--output-schema", "schema.json", "--run-id", "mended"];
    let mended = project.script(&[wrong(), Line::text("{\"n\": 1}")]);
    let events = run_json(&project, &mended).args(args).run().exits(0).events();
    assert_eq!(events.last().unwrap()["answer"], json!("{\"n\": 1}"));
    let output: Vec<&Value> = of_type(&events, "message").iter().map(|event| &event["text"]).collect();
    assert_eq!(
        output[1],
        &json!(
            "Your answer is not as it was asked for: at `/n`: \"one\" is not of type \"integer\". Answer again, all \
             of it."
        )
    );
    fusee(&project).args(["replay", "mended"]).run().exits(0);
    let never = project.script(&[wrong(), Line::call("finish", json!({"status": "done", "summary": "no"}))]);
    let events = run_json(&project, &never).args(["--output-schema", "schema.json"]).run().exits(1).events();
    let error = &events.last().unwrap()["error"];
    assert_eq!((&error["code"], &error["reason"]), (&json!("TURN_FAILED"), &json!("output_format_failure")));
    project.write("schema.json", r#"{"type": "objekt"}"#);
    let bad = run(&project, &never).args(["--output-schema", "schema.json"]).run().exits(2);
    assert!(bad.stderr.contains("objekt"), "{}", bad.stderr);
}

#[test]
fn money_ends_a_task_before_the_request_that_would_cost_too_much() {
    let project = Project::new();
    let user = project.home().join(".config/fusee");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("config.toml"), "[price]\ninput = 10.0\noutput = 100.0\n").unwrap();
    let look = |n: usize| Line::call("shell", json!({"command": format!("echo {n}")})).usage(1000, 100);
    let script = project.script(&(0..9).map(look).collect::<Vec<_>>());
    // A turn costs 1 000 × $10 / 10⁶ + 100 × $100 / 10⁶ = $0.02.
    let events = run_json(&project, &script).args(["--budget-usd", "0.07"]).run().exits(3).events();
    let last = events.last().unwrap();
    assert_eq!((&last["error"]["code"], &last["error"]["reason"]), (&json!("BUDGET"), &json!("cost")));
    assert_eq!(last["total_turns"], json!(3));
    let warnings: Vec<&Value> = of_type(&events, "warning").iter().map(|event| &event["code"]).collect();
    assert_eq!(warnings, Vec::<&Value>::new());
}

#[test]
fn a_budget_without_a_known_price_is_warned_about() {
    let project = Project::new();
    let script = project.script(&[Line::text("Done.")]);
    let events = run_json(&project, &script).args(["--budget-usd", "1"]).run().exits(0).events();
    assert_eq!(of_type(&events, "warning")[0]["code"], json!("unknown_price"));
    let wrong = run(&project, &script).args(["--budget-usd=-1"]).run().exits(2);
    assert!(wrong.stderr.contains("budget"), "{}", wrong.stderr);
}

#[test]
fn a_question_with_nobody_there_is_answered_so() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("think", json!({"thought": "Which colour?"})),
        Line::call("ask_user", json!({"question": "Which colour?"})),
        Line::text("Blue, I assumed."),
    ]);
    let events = run_json(&project, &script).args(["--run-id", "asked"]).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    assert_eq!((&results[0]["ok"], &results[0]["content"]), (&json!(true), &json!("Noted.")));
    assert_eq!(
        (&results[1]["ok"], &results[1]["content"]),
        (
            &json!(false),
            &json!(
                "Nobody is there to answer. Decide yourself and say in your answer what you assumed, or finish as \
                 blocked."
            )
        )
    );
    fusee(&project).args(["replay", "asked"]).run().exits(0);
}

#[test]
fn a_review_refuses_what_would_change_something() {
    let project = Project::new().with("a.txt", "one\n");
    let script = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"})),
        Line::call("shell", json!({"command": "touch b.txt"})),
        Line::text("Nothing is wrong."),
    ]);
    let events = run_json(&project, &script).args(["--review"]).run().exits(0).events();
    assert_eq!(events[0]["turn_type"], json!("review"));
    let fates: Vec<&Value> = of_type(&events, "tool_result").iter().map(|event| &event["fate"]).collect();
    assert_eq!(fates, [&Value::Null, &json!("refused"), &json!("refused")]);
    assert_eq!((project.read("a.txt").as_str(), project.read("b.txt").as_str()), ("one\n", ""));
}

#[test]
fn finishing_by_a_call_ends_its_turn_once() {
    let project = Project::new();
    let script = project.script(&[Line::call("finish", json!({"status": "done", "summary": "All done."}))]);
    let events = run_json(&project, &script).run().exits(0).events();
    assert_eq!(of_type(&events, "turn_complete").len(), 1);
    assert_eq!(events.last().unwrap()["answer"], json!("All done."));
}

#[test]
fn a_stage_is_charged_at_the_price_of_its_own_model() {
    let project = Project::new().with(
        "fusee.toml",
        "[[flow]]\nid = \"one\"\nprompt = \"First.\"\n\n[[flow]]\nid = \"two\"\nprompt = \"Second.\"\nmodel = \
         \"lmstudio:second\"\n",
    );
    let user = project.home().join(".config/fusee");
    std::fs::create_dir_all(&user).unwrap();
    let price = |model: &str, input: u32| {
        format!("[[price]]\nprovider = [\"lmstudio\"]\nmodel = [\"{model}\"]\ninput = {input}\noutput = 0\n")
    };
    std::fs::write(user.join("prices.toml"), price("first", 1) + &price("second", 3)).unwrap();
    let done = |stage: &str| {
        Message::call("flow_stage_done", json!({ "stage": stage, "summary": stage })).usage(1_000_000, 10)
    };
    let server = Server::start([done("one"), done("two")]);
    let run = run_json(&project, "lmstudio:first").env("LMSTUDIO_BASE_URL", server.base_url());
    let events = run.args(["--run-id", "staged"]).run().exits(0).events();
    let ends = of_type(&events, "task_complete");
    let costs: Vec<_> = ends.iter().map(|end| end["cost_usd"].clone()).collect();
    assert_eq!(json!(costs), json!([1.0, 3.0, 4.0]));
    fusee(&project).args(["replay", "staged"]).run().exits(0);
}
