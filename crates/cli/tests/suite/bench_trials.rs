//! `fusee bench`: what becomes of a trial: further tries, causes of failures, trials at the same time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Reply, Server};
use serde_json::{Value, json};

use crate::support::{fusee, with_key};

const SUITE: &str = r#"
test = "python3 check.py"
timeout_s = 20

[[case]]
name = "two"
prompt = "Make x two in leap.py."
files = "two"
solution = ["leap.py"]
tests = ["check.py"]
"#;

fn project() -> Project {
    Project::new()
        .with("suite/suite.toml", SUITE)
        .with("suite/two/leap.py", "x = 1\n")
        .with("suite/two/check.py", "import leap\nassert leap.x == 2, f'x is {leap.x}'\n")
}

fn bench<'p>(project: &'p Project, args: &[&str]) -> Command<'p> {
    fusee(project).args(["bench"]).args(args).limit(Duration::from_secs(120))
}

fn only_result(project: &Project, out: &str) -> Value {
    serde_json::from_str(project.read(&format!("{out}/results.jsonl")).trim()).unwrap()
}

fn answer(code: &str) -> Line {
    Line::text(&format!("leap.py\n```python\n{code}\n```\n"))
}

#[test]
fn an_answer_of_direct_that_fails_the_tests_gets_another_try_with_their_output() {
    let project = project();
    for verify in [None, Some("--verify")] {
        let out = if verify.is_some() { "verified" } else { "plain" };
        let script = project
            .script(&[answer("x = 3").matching("Make x two"), answer("x = 2").matching("The tests fail")]);
        bench(&project, &["run", "suite", "-m", &script, "--flow", "direct", "--out", out])
            .args(verify)
            .env("FUSEE_TASK_REPLAN_MAX", "0")
            .run()
            .exits(0);
        let result = only_result(&project, out);
        let found = (&result["passed"], &result["tries"], &result["cause"]);
        assert_eq!(found, (&json!(true), &json!(2), &Value::Null), "{result:#}");
    }
}

#[test]
fn an_unsolved_trial_of_direct_has_no_cause_and_is_graded() {
    let project = project();
    for (out, lines) in [
        ("wrong", [answer("x = 3"), answer("x = 4"), answer("x = 5"), answer("x = 6")]),
        ("unusable", ["No.", "Nothing.", "No file.", "Never."].map(Line::text)),
    ] {
        let script = project.script(&lines);
        bench(&project, &["run", "suite", "-m", &script, "--flow", "direct", "--verify", "--out", out])
            .env("FUSEE_TASK_REPLAN_MAX", "0")
            .run()
            .exits(0);
        let result = only_result(&project, out);
        let found = (&result["passed"], &result["tries"], &result["cause"]);
        assert_eq!(found, (&json!(false), &json!(2), &Value::Null), "{result:#}");
    }
}

#[test]
fn tests_that_a_suite_names_are_protected_whatever_they_are_called() {
    let project = project();
    let script = project.script(&[
        Line::call("read_file", json!({"path": "check.py"})),
        Line::call("write_file", json!({"path": "check.py", "content": "pass\n"})),
        Line::call("shell", json!({"command": "echo pass > check.py; cat check.py"})),
        Line::call("read_file", json!({"path": "check.py"})),
        Line::text("Done."),
    ]);
    bench(&project, &["run", "suite", "-m", &script, "--tries", "1", "--out", "out"]).run().exits(0);
    let result = only_result(&project, "out");
    assert_eq!((&result["passed"], &result["cause"]), (&json!(false), &Value::Null), "{result:#}");
    let run = result["run"].as_str().unwrap();
    let shown = fusee(&project).args(["show", run, "--json"]).run().exits(0).stdout;
    assert_eq!(shown.matches("Test files cannot be changed in this task: check.py").count(), 2, "{shown}");
    assert_eq!(project.read("out/trials/two.1/patch.diff"), "");
}

#[test]
fn trials_at_the_same_time_are_as_many_as_the_server_has_slots() {
    const REPLY_TIME: Duration = Duration::from_millis(700);
    for slots in [Some(1), None] {
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let noted = arrivals.clone();
        let server = Server::with_metadata(move |arrived| {
            if let Some(slots) = slots.filter(|_| arrived.path.ends_with("/props")) {
                return Reply::json(200, &json!({ "total_slots": slots }));
            }
            if arrived.method != "POST" {
                return Reply::error(404, "not here");
            }
            noted.lock().unwrap().push(Instant::now());
            Message::text("Done.").stream().after(REPLY_TIME)
        });
        let project = project();
        let url = server.base_url();
        let args = ["run", "suite", "-m", "openai:some", "--base-url", &url, "--attempts", "4"];
        with_key(bench(&project, &args))
            .args(["--tries", "1", "--flow", "flat", "--out", "out"])
            .run()
            .exits(0);
        let arrivals = arrivals.lock().unwrap();
        assert!(arrivals.len() >= 4);
        let one_by_one = arrivals.windows(2).all(|two| two[1] - two[0] >= REPLY_TIME);
        assert_eq!(one_by_one, slots.is_some(), "{slots:?}: {arrivals:?}");
    }
}
