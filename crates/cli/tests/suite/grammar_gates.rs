//! Gates with schema-constrained replies: calls that would be refused cannot be generated. Checked on the
//! requests.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{Message, Reply, Request, Server};
use serde_json::{Value, json};

use crate::support::fusee;

/// Tools that the schema of a request allows, with the allowed paths where they are listed.
fn open(request: &Request) -> Vec<String> {
    let body = request.arrived.json();
    let schema = &body["response_format"]["json_schema"]["schema"];
    let alternatives = schema["anyOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
    let shown = |alternative: &Value| {
        let properties = &alternative["properties"];
        let tool = properties["tool"]["const"].as_str().unwrap().to_owned();
        let arguments = &properties["arguments"]["properties"];
        match [&arguments["path"]["enum"], &arguments["paths"]["items"]["enum"]].map(Value::is_array) {
            [true, _] => format!("{tool} {}", arguments["path"]["enum"]),
            [false, true] => format!("{tool} {}", arguments["paths"]["items"]["enum"]),
            [false, false] => tool,
        }
    };
    alternatives.iter().map(shown).collect()
}

fn header(tool: &str, arguments: Value) -> Reply {
    Message::text(&json!({"thought": "so", "tool": tool, "arguments": arguments}).to_string()).stream()
}

fn run<'p>(project: &'p Project, server: &Server, request: &str) -> Command<'p> {
    run_with(project, server, "llama.cpp:m", request)
}

fn run_with<'p>(project: &'p Project, server: &Server, model: &str, request: &str) -> Command<'p> {
    fusee(project)
        .args(["run", request, "--model", model, "--base-url", &server.base_url(), "--approve", "auto"])
        .env("FUSEE_TOOL_FORMAT", "schema")
}

#[test]
fn a_small_model_is_led_through_the_stages() {
    let project = Project::new();
    project.write("solution.py", "def one():\n    return 2\n");
    project.write("test_solution.py", "import solution\nassert solution.one() == 1\n");
    let server = Server::start([
        header("list_dir", json!({})),
        header("read_file", json!({"path": "solution.py"})),
        header("read_files", json!({"paths": ["test_solution.py"]})),
        header(
            "plan_tasks",
            json!({"action": "update", "tasks": [{"id": "1", "description": "Return one"}]}),
        ),
        header("list_dir", json!({})),
        header("write_file", json!({"path": "solution.py"})),
        // With another length: Python detects a changed file by its modification second and its length.
        Message::text("def one():\n    return 1 + 2\n```\n").stream(),
        header("list_dir", json!({})),
        header("write_file", json!({"path": "solution.py"})),
        Message::text("def one():\n    return 1\n```\n").stream(),
    ]);
    run(&project, &server, "Fix solution.py. The tests are in test_solution.py.")
        .args(["--flow", "staged", "--verify", "python3 test_solution.py", "--run-id", "led"])
        .run()
        .exits(0);
    assert_eq!(project.read("solution.py"), "def one():\n    return 1\n");

    let requests: Vec<Vec<String>> = server
        .requests()
        .iter()
        .filter(|request| request.arrived.json().get("grammar").is_none())
        .map(open)
        .collect();
    let ends = |open: &Vec<String>| open.iter().any(|name| name == "finish" || name == "answer");
    // Nothing was read yet: every read tool is allowed, ending is not.
    let both = r#"["solution.py","test_solution.py"]"#;
    assert!(requests[0].contains(&format!("read_file {both}")), "{:?}", requests[0]);
    assert!(!requests[0].iter().any(|name| name.starts_with("write_file") || name == "shell_poll"));
    // A list call read no file, so only the required reads remain.
    assert_eq!(requests[1], [format!("read_file {both}"), format!("read_files {both}")]);
    // A file that was read need not be read again.
    assert!(requests[2].contains(&r#"read_file ["test_solution.py"]"#.to_owned()), "{:?}", requests[2]);
    // Both are read: a plan is required, and nothing is left to read.
    assert!(requests[3].contains(&"plan_tasks".to_owned()), "{:?}", requests[3]);
    assert!(!requests[3].iter().any(|name| name.starts_with("read_")), "{:?}", requests[3]);
    // Updating a missing plan creates it. Then files may be changed, and the last message states the change
    // to make.
    let last = server.requests()[4].arrived.json()["messages"].as_array().unwrap().last().unwrap()["content"]
        .clone();
    let last = last.as_str().unwrap();
    assert!(last.contains("`python3 test_solution.py` does not pass yet:\n\nTraceback"), "{last}");
    let asked = "Now make the change. Fix solution.py. The tests are in test_solution.py. In `thought`, say first what is wrong in the code.";
    assert!(last.ends_with(asked), "{last}");
    // After a read call only the change is allowed.
    assert!(requests[4].contains(&"write_file".to_owned()), "{:?}", requests[4]);
    assert_eq!(requests[5], ["write_file"]);
    // The tests fail: the changed file may be read again, and ending is not allowed.
    assert!(requests[6].contains(&r#"read_file ["solution.py"]"#.to_owned()), "{:?}", requests[6]);
    assert_eq!(requests[7], ["write_file"]);
    assert_eq!((requests.len(), requests.iter().any(ends)), (8, false));
    // The initial file list is a journaled step: a replay needs no workspace.
    drop(server);
    std::fs::remove_file(project.dir().join("test_solution.py")).unwrap();
    fusee(&project).args(["replay", "led"]).run().exits(0);
}

#[test]
fn protected_tests_cannot_be_named_by_what_changes_files() {
    let project = Project::new();
    project.write("solution.py", "x = 1\n");
    project.write("test_solution.py", "import solution\n");
    let server = Server::start([header("finish", json!({"status": "blocked", "summary": "No."}))]);
    run(&project, &server, "Fix solution.py.").args(["--benchmark"]).run();
    let open = open(&server.requests()[0]);
    for name in [r#"write_file ["solution.py"]"#, r#"edit_file ["solution.py"]"#] {
        assert!(open.contains(&name.to_owned()), "{open:?}");
    }
    assert!(open.contains(&r#"read_file ["solution.py","test_solution.py"]"#.to_owned()), "{open:?}");
}

#[test]
fn a_model_that_writes_files_whole_is_not_led_into_other_ways() {
    let project = Project::new().with("solution.py", "x = 1\n");
    let open_of = |model: &str| {
        let server = Server::start([header("finish", json!({"status": "blocked", "summary": "No."}))]);
        run_with(&project, &server, model, "Fix solution.py.").args(["--flow", "flat"]).run();
        open(&server.requests()[0])
    };
    let changes = |open: &[String]| -> Vec<String> {
        let names = open.iter().filter_map(|name| name.split(' ').next());
        names
            .filter(|name| ["write_file", "edit_file", "apply_patch"].contains(name))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(changes(&open_of("llama.cpp:qwen2.5-coder-1.5b")), ["write_file"]);
    assert_eq!(changes(&open_of("llama.cpp:m")), ["write_file", "edit_file", "apply_patch"]);
    // A long file is not rewritten for a small change.
    project.write("long.py", &"x = 1\n".repeat(2_000));
    assert_eq!(changes(&open_of("llama.cpp:qwen2.5-coder-1.5b")), ["write_file", "edit_file", "apply_patch"]);
}
