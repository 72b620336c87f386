//! Small models without any flag: the runtime chooses the flow, finds the tests, takes several answers and keeps
//! the best.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{Message, Reply, Server};
use serde_json::{Value, json};

use crate::support::fusee;

const TESTS: &str = "import unittest\nimport leap\n\n\nclass LeapTest(unittest.TestCase):\n\
    \x20   def test_one(self):\n        self.assertEqual(leap.one(), 1)\n\n\
    \x20   def test_two(self):\n        self.assertEqual(leap.two(), 2)\n";

fn project() -> Project {
    Project::new()
        .with("leap.py", "def one():\n    pass\n\n\ndef two():\n    pass\n")
        .with("test_leap.py", TESTS)
}

/// An answer with the new file.
fn answer(one: &str, two: &str) -> Reply {
    let file = format!("def one():\n    return {one}\n\n\ndef two():\n    return {two}\n");
    Message::text(&format!("leap.py\n```python\n{file}```\n")).stream()
}

fn run<'p>(project: &'p Project, server: &Server) -> Command<'p> {
    fusee(project)
        .args(["run", "Implement leap.py", "--model", "llama.cpp:qwen2.5-coder-1.5b"])
        .args(["--base-url", &server.base_url(), "--json", "--run-id", "small"])
        // Bytecode is cached by time and size, and these files change within a second.
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The judged answers: number, verdict, tests passed and failed.
fn samples(events: &[Value]) -> Vec<Value> {
    let fields = |event: &&Value| json!([event["n"], event["verdict"], event["passed"], event["failed"]]);
    of_type(events, "sample").iter().map(fields).collect()
}

#[test]
fn a_small_model_gets_direct_with_the_projects_own_tests() {
    let project = project();
    let server = Server::start([answer("1", "2")]);
    let events = run(&project, &server).run().exits(0).events();
    let chosen = of_type(&events, "flow_chosen");
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0]["flow"], "direct");
    assert_eq!(chosen[0]["reason"], "the model is small, and the request is about leap.py, test_leap.py");
    assert_eq!(samples(&events), [json!([1, "passed", 2, 0])]);
    let report = of_type(&events, "task_report").into_iter().find(|report| report["task"] == "main").unwrap();
    assert_eq!(report["verify"]["command"], "python3 -m unittest test_leap");
    assert_eq!(report["verify"]["passed"], true);
    let request = server.requests()[0].arrived.json();
    assert_eq!(request["temperature"], 0.0);
    assert!(request["tools"].is_null());
}

#[test]
fn the_first_answer_that_passes_is_taken_and_the_others_leave_nothing() {
    let project = project();
    let extra = Message::text(
        "leap.py\n```python\ndef one():\n    return 1\n```\n\nhelper.py\n```python\nx = 1\n```\n",
    );
    let server = Server::start([
        answer("0", "0"),
        extra.stream(),
        answer("0", "0"),
        Message::text("No.").stream(),
        answer("1", "2"),
    ]);
    let events = run(&project, &server).run().exits(0).events();
    assert_eq!(
        samples(&events),
        [
            json!([1, "failed", 0, 2]),
            json!([2, "failed", 1, 1]),
            json!([3, "duplicate", null, null]),
            json!([4, "no_edit", null, null]),
            json!([5, "passed", 2, 0]),
        ]
    );
    assert!(project.read("leap.py").contains("return 2"));
    assert!(!project.dir().join("helper.py").exists());
    let requests = server.requests();
    let temperatures: Vec<Value> =
        requests.iter().map(|request| request.arrived.json()["temperature"].clone()).collect();
    assert_eq!(temperatures, [json!(0.0), json!(0.7), json!(0.7), json!(0.7), json!(0.7)]);
    // All samples answer the same prompt, so that the server reads it once.
    let messages: Vec<Value> =
        requests.iter().map(|request| request.arrived.json()["messages"].clone()).collect();
    assert!(messages.iter().all(|each| *each == messages[0]));
}

#[test]
fn the_best_answer_is_repaired_and_kept_if_none_passes() {
    let project = project();
    let server = Server::start([answer("1", "0"), answer("0", "0"), answer("1", "3"), answer("9", "9")]);
    let events =
        run(&project, &server).env("FUSEE_SAMPLES", "2").env("FUSEE_REPAIRS", "2").run().exits(1).events();
    assert_eq!(
        samples(&events),
        [json!([1, "failed", 1, 1]), json!([2, "failed", 0, 2]), json!([3, "failed", 1, 1])]
    );
    // The third answer is not better than the first, so that repairs end and the first one stays.
    assert!(project.read("leap.py").contains("return 1") && project.read("leap.py").contains("return 0"));
    let repair = server.requests()[2].arrived.json();
    let prompt =
        repair["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(
        prompt.contains("test_two") && prompt.contains("expected: 2") && prompt.contains("actual: 0"),
        "{prompt}"
    );
    assert!(prompt.contains("return 0"), "the repair shows the best answer: {prompt}");
    let message = events.last().unwrap()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the files are those of answer 1, which passes 1 of 2 tests"), "{message}");
}

#[test]
fn large_models_and_questions_get_one_session() {
    let project = project();
    for (model, request) in
        [("llama.cpp:m", "Implement leap.py"), ("llama.cpp:qwen2.5-coder-1.5b", "What is leap.py?")]
    {
        let server = Server::start([Message::text("Done.").stream()]);
        let events = fusee(&project)
            .args(["run", request, "--model", model, "--base-url", &server.base_url(), "--json"])
            .run()
            .exits(0)
            .events();
        assert!(of_type(&events, "flow_chosen").is_empty(), "{model}: {request}");
        assert!(server.requests()[0].arrived.json()["tools"].is_array());
    }
}

#[test]
fn a_reply_that_repeats_itself_is_cut_and_the_next_sample_taken() {
    let project = project();
    let looping = format!("leap.py\n```python\n{}", "def one():\n    return 1\n".repeat(2000));
    let server = Server::start([Message::text(&looping).stream().in_pieces_of(200), answer("1", "2")]);
    let events = run(&project, &server).run().exits(0).events();
    assert_eq!(samples(&events).last(), Some(&json!([2, "passed", 2, 0])));
    let messages = of_type(&events, "message");
    let first = messages.iter().find(|event| event["role"] == "assistant").unwrap();
    assert!(first["text"].as_str().unwrap().len() < 2000);
}
