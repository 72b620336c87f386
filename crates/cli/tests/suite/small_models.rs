//! Small models without any flag: the runtime chooses the flow, finds the tests, takes several answers and keeps
//! the best.

use std::time::Duration;

use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{Message, Reply, ReplyPosition, Server};
use serde_json::{Value, json};

use crate::support::fusee;

pub(crate) const TESTS: &str = "import unittest\nimport leap\n\n\nclass LeapTest(unittest.TestCase):\n\
    \x20   def test_one(self):\n        self.assertEqual(leap.one(), 1)\n\n\
    \x20   def test_two(self):\n        self.assertEqual(leap.two(), 2)\n";

pub(crate) fn project() -> Project {
    Project::new()
        .with("leap.py", "def one():\n    pass\n\n\ndef two():\n    pass\n")
        .with("test_leap.py", TESTS)
}

/// An answer with the new file.
pub(crate) fn answer(one: &str, two: &str) -> Reply {
    let file = format!("def one():\n    return {one}\n\n\ndef two():\n    return {two}\n");
    Message::text(&format!("leap.py\n```python\n{file}```\n")).stream()
}

pub(crate) fn run<'p>(project: &'p Project, server: &Server) -> Command<'p> {
    fusee(project)
        .args(["run", "Implement leap.py", "--model", "llama.cpp:qwen2.5-coder-1.5b"])
        .args(["--base-url", &server.base_url(), "--json", "--run-id", "small"])
        // Bytecode is cached by time and size, and these files change within a second.
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

pub(crate) fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The judged answers: number, verdict, tests passed and failed.
pub(crate) fn samples(events: &[Value]) -> Vec<Value> {
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
    let events = run(&project, &server).env("FUSEE_REPAIRS", "0").run().exits(0).events();
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
    let server = Server::start([answer("1", "0"), answer("0", "0"), answer("1", "3")]);
    let events =
        run(&project, &server).env("FUSEE_SAMPLES", "2").env("FUSEE_REPAIRS", "2").run().exits(1).events();
    assert_eq!(
        samples(&events),
        [json!([1, "failed", 1, 1]), json!([2, "failed", 0, 2]), json!([3, "failed", 1, 1])]
    );
    // The repair of the first answer is not better, and neither is another answer, so that the first one stays.
    assert!(project.read("leap.py").contains("return 1") && project.read("leap.py").contains("return 0"));
    let repair = server.requests()[1].arrived.json();
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
fn a_model_without_a_size_in_its_name_is_small_if_its_server_says_so() {
    for (parameters, flow) in [(1_543_714_304_u64, Some("direct")), (70_000_000_000, None)] {
        let project = project();
        let server = Server::with_metadata(move |arrived| {
            if arrived.path.ends_with("/models") {
                let list = json!({ "data": [{ "id": "coder.gguf", "meta": { "n_params": parameters } }] });
                return Reply::json(200, &list);
            }
            if arrived.method == "POST" { answer("1", "2") } else { Reply::error(404, "not here") }
        });
        let events = fusee(&project)
            .args(["run", "Implement leap.py", "--model", "llama.cpp:coder", "--json"])
            .args(["--base-url", &server.base_url()])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .run()
            .exits(0)
            .events();
        let chosen = of_type(&events, "flow_chosen").first().map(|event| event["flow"].as_str().unwrap());
        assert_eq!(chosen, flow, "{parameters}");
    }
}

/// A project with several sources, of which the failing test uses one.
fn shop() -> Project {
    let tests = "import unittest\nfrom shop.price import net\n\n\nclass PriceTest(unittest.TestCase):\n\
        \x20   def test_net(self):\n        self.assertEqual(net(119), 100)\n";
    let sources = ["cart", "stock", "mail", "users", "orders", "reports"];
    let project = Project::new().with("shop/__init__.py", "").with("tests/__init__.py", "");
    let project = sources.iter().fold(project, |project, name| {
        project.with(&format!("shop/{name}.py"), &format!("def {name}_of(x):\n    return x\n"))
    });
    project.with("shop/price.py", "def net(gross):\n    return gross\n").with("tests/test_price.py", tests)
}

#[test]
fn the_file_behind_a_failing_test_is_located_without_any_flag() {
    let project = shop();
    let fixed = "shop/price.py\n```python\ndef net(gross):\n    return round(gross / 1.19)\n```\n";
    let server = Server::start([Message::text(fixed).stream()]);
    let run = fusee(&project)
        .args(["run", "fix the failing test", "-m", "llama.cpp:qwen2.5-coder-1.5b"])
        .args(["--base-url", &server.base_url(), "--json"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .run()
        .exits(0);
    let events = run.events();
    let located = of_type(&events, "files_located");
    assert_eq!(
        located[0]["files"],
        json!([{ "path": "shop/price.py", "reason": "used by tests/test_price.py" }])
    );
    assert_eq!(located[0]["tests"], json!(["tests/test_price.py"]));
    let prompt = server.requests()[0].arrived.json()["messages"].to_string();
    assert!(prompt.contains("shop/price.py") && prompt.contains("test_net"), "{prompt}");
    assert!(!prompt.contains("orders_of"), "other files are not shown: {prompt}");
    assert_eq!(samples(&events), [json!([1, "passed", 1, 0])]);
    assert!(project.read("shop/price.py").contains("1.19"));
}

#[test]
fn a_request_that_names_no_file_is_shown_what_fails() {
    let project = project();
    let server = Server::start([answer("1", "2")]);
    let flags = ["run", "fix the failing tests", "-m", "llama.cpp:qwen2.5-coder-1.5b", "--json"];
    let run = fusee(&project).args(flags).args(["--base-url", &server.base_url()]);
    run.env("PYTHONDONTWRITEBYTECODE", "1").run().exits(0);
    let request = server.requests()[0].arrived.json();
    let prompt =
        request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    for shown in ["(test_leap.py:7)", "self.assertEqual(leap.one(), 1)", "expected: 1", "actual: None"] {
        assert!(prompt.contains(shown), "{shown}: {prompt}");
    }
    let folder = project.dir().canonicalize().unwrap();
    assert!(!prompt.contains(folder.to_str().unwrap()), "paths are those of the project: {prompt}");
}

#[test]
fn tests_that_run_only_in_their_own_directory_are_run_there() {
    let (source, tests) = ("def one():\n    pass\n\n\ndef two():\n    pass\n", TESTS);
    let project = Project::new().with("leap-years/leap.py", source).with("leap-years/test_leap.py", tests);
    let text = "leap-years/leap.py\n```python\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n```\n";
    let server = Server::start([Message::text(text).stream()]);
    let flags = ["run", "fix the failing tests", "-m", "llama.cpp:qwen2.5-coder-1.5b", "--json"];
    let run = fusee(&project).args(flags).args(["--base-url", &server.base_url()]);
    let events = run.env("PYTHONDONTWRITEBYTECODE", "1").run().exits(0).events();
    let report = of_type(&events, "task_report").into_iter().find(|report| report["task"] == "main").unwrap();
    assert_eq!(report["verify"]["command"], "cd leap-years && python3 -m unittest test_leap");
    assert_eq!(samples(&events), [json!([1, "passed", 2, 0])]);
}

#[test]
fn the_choice_of_files_is_one_line_of_output() {
    let project = shop();
    let fixed = "shop/price.py\n```python\ndef net(gross):\n    return round(gross / 1.19)\n```\n";
    let server = Server::start([Message::text(fixed).stream()]);
    let run = fusee(&project)
        .args(["run", "fix the failing test", "-m", "llama.cpp:qwen2.5-coder-1.5b"])
        .args(["--base-url", &server.base_url()])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .run()
        .exits(0);
    let err = run.stderr.clone();
    assert!(err.contains("flow direct: the model is small"), "{err}");
    assert!(err.contains("files: shop/price.py (used by tests/test_price.py)"), "{err}");
    assert!(err.contains("answer 1: passed, 1 test passes, 0 fail"), "{err}");
}

#[test]
fn a_task_that_changed_nothing_is_tried_again_with_direct() {
    let project = project();
    let talk = Message::text("Please provide the failing test details.");
    let server = Server::start([talk.stream(), answer("1", "2")]);
    let events = run(&project, &server).args(["--flow", "flat"]).run().exits(0).events();
    let chosen = of_type(&events, "flow_chosen");
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0]["flow"], "direct");
    assert_eq!(chosen[0]["reason"], "nothing was changed by flat");
    assert_eq!(samples(&events), [json!([1, "passed", 2, 0])]);
    assert!(project.read("leap.py").contains("return 2"));
    let ends: Vec<&Value> =
        of_type(&events, "task_complete").into_iter().filter(|event| event["task"] == "main").collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["status"], "completed");
    assert_eq!(ends[0]["total_turns"], 2);
    // The second method has no tools, and its own prompt.
    let second = server.requests()[1].arrived.json();
    assert!(second["tools"].is_null() && second.to_string().contains("You are shown files of a project"));
}

#[test]
fn a_task_that_changes_nothing_in_any_way_fails_and_says_what_to_do() {
    let project = project();
    let talk = || Message::text("Please provide the failing test details.").stream();
    let server = Server::start([talk(), talk(), talk()]);
    let run = run(&project, &server).args(["--flow", "flat"]).env("FUSEE_SAMPLES", "2").run().exits(1);
    let events = run.events();
    let end = events.last().unwrap();
    assert_eq!(end["status"], "failed");
    assert_eq!(end["error"]["reason"], "nothing_changed");
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("nothing was changed: no usable answer in 2 tries"), "{message}");
    assert_eq!(samples(&events), [json!([1, "no_edit", null, null]), json!([2, "no_edit", null, null])]);
    let shown = fusee(&project)
        .args(["run", "Implement leap.py", "--model", "llama.cpp:qwen2.5-coder-1.5b"])
        .args(["--base-url", &Server::start([talk()]).base_url()])
        .env("FUSEE_SAMPLES", "1")
        .run()
        .exits(1);
    assert!(shown.stderr.contains("name the file in the request"), "{}", shown.stderr);
}

#[test]
fn an_answer_that_asks_for_a_file_is_given_the_file() {
    let project = project();
    let server = Server::start([
        Message::text("Could you share the code of leap.py?").stream(),
        Message::text("It defines one and two.").stream(),
    ]);
    let events = fusee(&project)
        .args(["run", "What does leap.py do?", "--model", "llama.cpp:qwen2.5-coder-1.5b"])
        .args(["--base-url", &server.base_url(), "--json"])
        .run()
        .exits(0)
        .events();
    assert_eq!(events.last().unwrap()["answer"], "It defines one and two.");
    assert!(server.requests()[1].arrived.json().to_string().contains("def one()"));
}

#[test]
fn flat_sends_the_same_bytes_whether_it_was_chosen_or_not() {
    let bodies: Vec<Vec<u8>> = [&["--flow", "flat"][..], &[]]
        .iter()
        .map(|flags| {
            let project = Project::new().with("leap.py", "x = 1\n");
            let server = Server::start([Message::text("Done.").stream()]);
            fusee(&project)
                .args([
                    "run",
                    "Implement leap.py",
                    "--model",
                    "llama.cpp:m",
                    "--base-url",
                    &server.base_url(),
                ])
                .args(flags.iter().copied())
                .run()
                .exits(0);
            let body = server.requests()[0].arrived.body.clone();
            let text = String::from_utf8(body).unwrap();
            text.replace(project.dir().to_str().unwrap(), "DIR").into_bytes()
        })
        .collect();
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn an_answer_ends_with_its_last_file() {
    let project = project();
    let file = "def one():\n    return 1\n\n\ndef two():\n    return 2\n";
    let text = format!(
        "Here it is.\n\nleap.py\n```python\n{file}```\n\nBoth functions return what the tests expect."
    );
    let reply = Message::text(&text).stream_in_deltas_of(8);
    // Without the cut, the run would wait for the rest.
    let middle = reply.body_len() - 300;
    let server = Server::start([reply.hanging(ReplyPosition::Body(middle))]);
    let events = run(&project, &server).run().exits(0).events();
    server.wait_until_abandoned(0, Duration::from_secs(10));
    assert_eq!(project.read("leap.py"), file);
    assert_eq!(samples(&events), [json!([1, "passed", 2, 0])]);
    assert_eq!(
        of_type(&events, "task_complete")[0]["answer"],
        format!("Here it is.\n\nleap.py\n```python\n{file}```\n").trim_end(),
    );
    fusee(&project).args(["replay", "small"]).run().exits(0);
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
