//! `fusee mcp`: another program starts runs, waits for them, answers them and reads them, also across the death of
//! the server.

use fusee_testkit::peer::Peer;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

const LEGACY: &str = "2025-11-25";

fn connect(project: &Project, model: &str, flags: &[&str]) -> Peer {
    let command = fusee(project).args(["mcp", "--model", model, "--sandbox", "off"]).args(flags);
    Peer::connect(command)
}

fn initialize(peer: &mut Peer, capabilities: Value) -> Value {
    let hello = json!({
        "protocolVersion": LEGACY,
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    });
    let answer = peer.request("initialize", hello);
    peer.notify("notifications/initialized", json!({}));
    answer
}

fn call(peer: &mut Peer, tool: &str, arguments: Value) -> Value {
    peer.request("tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// A result without what differs between runs of the test.
fn stable(mut result: Value) -> Value {
    let run = result["structuredContent"]["run"].as_str().unwrap_or("no run").to_owned();
    let text = result.to_string().replace(&run, "RUN");
    result = serde_json::from_str(&text).unwrap();
    result
}

fn run_of(result: &Value) -> String {
    result["structuredContent"]["run"].as_str().expect("the id of a run").to_owned()
}

/// Waits until a run asks something.
fn wait_for_question(peer: &mut Peer, run: &str) -> Value {
    loop {
        let state = call(peer, "fusee_wait", json!({ "run": run, "wait_s": 30 }));
        if state["structuredContent"]["status"] != "working" {
            return state;
        }
    }
}

#[test]
fn a_client_of_each_era_is_told_what_the_server_offers() {
    let project = Project::new();
    let model = project.script(&[]);
    let mut peer = connect(&project, &model, &[]);
    let legacy = initialize(&mut peer, json!({}));
    assert_eq!(legacy["protocolVersion"], LEGACY);
    assert_eq!(legacy["serverInfo"]["name"], "fusee");
    assert_eq!(legacy["capabilities"]["tools"], json!({}));
    assert_eq!(peer.close().exits(0).stderr, "");

    let mut peer = connect(&project, &model, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discovered = peer.request("server/discover", json!({ "_meta": meta }));
    assert_eq!(
        discovered["supportedVersions"].as_array().unwrap().last().unwrap(),
        "2026-07-28",
        "{discovered:#}"
    );
    let tools = peer.request("tools/list", json!({ "_meta": meta }));
    assert_eq!(tools["resultType"], "complete");
    peer.close().exits(0);
}

#[test]
fn the_tools_are_the_fixed_ones_and_the_tasks_of_the_project() {
    let template = r#"<task name="fusee_run" type="atomic"><description>Clashes.</description><inputs><input name="word" type="string">A word.</input></inputs><instructions>Say {{word}}.</instructions></task>"#;
    let project = Project::new().with(".fusee/templates/clash.xml", template).with(
        ".fusee/templates/greet.xml",
        &template.replace("fusee_run", "greet").replace("Clashes.", "Greets."),
    );
    let mut peer = connect(&project, &project.script(&[]), &[]);
    initialize(&mut peer, json!({}));
    let tools = peer.request("tools/list", json!({}));
    let tools = tools["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let fixed = [
        "fusee_run",
        "fusee_wait",
        "fusee_status",
        "fusee_reply",
        "fusee_cancel",
        "fusee_answer",
        "fusee_runs",
        "fusee_review",
    ];
    assert_eq!(names[..8], fixed);
    assert!(names.contains(&"task_fusee_run") && names.contains(&"greet"), "{names:?}");
    let greet = tools.iter().find(|tool| tool["name"] == "greet").unwrap();
    assert_eq!(
        greet["inputSchema"],
        json!({
            "type": "object",
            "properties": { "word": { "type": "string", "description": "A word." } },
            "required": ["word"],
            "additionalProperties": false,
        })
    );
    let prompts = peer.request("prompts/list", json!({}));
    assert!(
        prompts["prompts"].as_array().unwrap().iter().any(|prompt| prompt["name"] == "greet"),
        "{prompts:#}"
    );
    let prompt = peer.request("prompts/get", json!({ "name": "greet", "arguments": { "word": "hello" } }));
    assert_eq!(prompt["messages"][0]["content"]["text"], "Say hello.");
}

#[test]
fn a_run_answers_with_its_result_and_can_be_continued_and_read() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("Written."),
        Line::text("Again."),
    ]);
    let mut peer = connect(&project, &model, &[]);
    initialize(&mut peer, json!({}));
    let result = call(&mut peer, "fusee_run", json!({ "request": "Write it.", "flow": "flat" }));
    let run = run_of(&result);
    assert_eq!(
        stable(result.clone()),
        json!({
            "content": [
                { "type": "text", "text": "Written." },
                { "type": "text", "text": "Run RUN completed after 2 turns. Continue the conversation with fusee_reply." },
            ],
            "structuredContent": {
                "run": "RUN",
                "status": "completed",
                "answer": "Written.",
                "turns": 2,
                "tokens": result["structuredContent"]["tokens"],
                "files_changed": ["a.txt"],
            },
            "isError": false,
        })
    );
    assert_eq!(project.read("a.txt"), "one\n");
    // The state of an ended run is the same whenever it is asked for.
    assert_eq!(call(&mut peer, "fusee_wait", json!({ "run": run })), result);
    assert_eq!(call(&mut peer, "fusee_status", json!({ "run": run[..13] })), result);
    let reply = call(&mut peer, "fusee_reply", json!({ "run": run, "request": "Say it again." }));
    assert_eq!(reply["structuredContent"]["answer"], "Again.");
    let runs = call(&mut peer, "fusee_runs", json!({}));
    let listed = runs["structuredContent"]["runs"].as_array().unwrap();
    assert_eq!((listed.len(), &listed[1]["title"]), (2, &json!("Write it.")));

    let read = |peer: &mut Peer, path: &str| {
        let read = peer.request("resources/read", json!({ "uri": format!("fusee://runs/{run}{path}") }));
        read["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read:#}")).to_owned()
    };
    assert_eq!(read(&mut peer, "/diff"), "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n");
    let report: Value = serde_json::from_str(&read(&mut peer, "/report")).unwrap();
    assert_eq!(report["files_changed"], json!(["a.txt"]));
    let events = read(&mut peer, "/events");
    assert!(events.lines().last().unwrap().contains("\"type\":\"task_complete\""), "{events}");
    let missing = peer.request("resources/read", json!({ "uri": "fusee://runs/none" }));
    assert_eq!(missing["error"]["code"], -32002, "{missing:#}");
    peer.close().exits(0);
}

#[test]
fn a_slow_run_answers_in_time_reports_progress_and_goes_on() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("shell", json!({"command": "while [ ! -e go ]; do sleep 0.05; done; echo went"})),
        Line::text("Done."),
    ]);
    let mut peer = connect(&project, &model, &[]);
    initialize(&mut peer, json!({}));
    let params = json!({
        "name": "fusee_run",
        "arguments": { "request": "Wait.", "wait_s": 1, "flow": "flat" },
        "_meta": { "progressToken": "p" },
    });
    let working = peer.request("tools/call", params);
    let state = &working["structuredContent"];
    assert_eq!((&state["status"], &working["isError"]), (&json!("working"), &json!(false)));
    assert!(state["doing"].as_str().unwrap().starts_with("turn 1: shell while"), "{working:#}");
    let progress = peer.take_all(|message| message["method"] == "notifications/progress");
    assert!(!progress.is_empty(), "no progress");
    let numbers: Vec<f64> =
        progress.iter().map(|message| message["params"]["progress"].as_f64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    project.write("go", "");
    let done = call(&mut peer, "fusee_wait", json!({ "run": run_of(&working) }));
    assert_eq!(done["structuredContent"]["answer"], "Done.");
}

#[test]
fn a_run_survives_the_kill_of_its_server_and_nothing_happens_twice() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("shell", json!({"command": "echo once >> effects"})),
        Line::call(
            "shell",
            json!({"command": "echo began >> effects; while [ ! -e go ]; do sleep 0.05; done"}),
        ),
        Line::text("Finished."),
    ]);
    let mut peer = connect(&project, &model, &[]);
    initialize(&mut peer, json!({}));
    let working = call(&mut peer, "fusee_run", json!({ "request": "Go.", "wait_s": 0, "flow": "flat" }));
    let run = run_of(&working);
    while !project.read("effects").contains("began") {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    peer.kill();
    project.write("go", "");
    let mut next = connect(&project, &model, &[]);
    initialize(&mut next, json!({}));
    let listed = call(&mut next, "fusee_runs", json!({}));
    assert_eq!(listed["structuredContent"]["runs"][0]["status"], "interrupted");
    let done = call(&mut next, "fusee_wait", json!({ "run": run }));
    assert_eq!(done["structuredContent"]["answer"], "Finished.", "{done:#}");
    assert_eq!(project.read("effects"), "once\nbegan\n");
    next.close().exits(0);
}

#[test]
fn an_approval_is_answered_by_a_tool_if_the_client_has_no_forms() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("It was allowed."),
    ]);
    let mut peer = connect(&project, &model, &["--approve", "ask"]);
    initialize(&mut peer, json!({}));
    let waiting = call(&mut peer, "fusee_run", json!({ "request": "Write.", "flow": "flat" }));
    let run = run_of(&waiting);
    let question = &waiting["structuredContent"]["waiting"][0];
    assert_eq!(
        (&question["kind"], &question["tool"]),
        (&json!("approval"), &json!("write_file")),
        "{waiting:#}"
    );
    let text = waiting["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Answer with fusee_answer"), "{text}");
    let wrong = call(&mut peer, "fusee_answer", json!({ "run": run, "text": "yes" }));
    assert_eq!(wrong["isError"], true);
    let done = call(&mut peer, "fusee_answer", json!({ "run": run, "approve": true, "wait_s": 30 }));
    assert_eq!(done["structuredContent"]["answer"], "It was allowed.", "{done:#}");
    assert_eq!(project.read("a.txt"), "one\n");
    let late = call(&mut peer, "fusee_answer", json!({ "run": run, "approve": false }));
    assert_eq!(late["isError"], true, "{late:#}");
}

#[test]
fn an_approval_is_a_form_of_a_client_that_has_forms() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("It was refused."),
    ]);
    let mut peer = connect(&project, &model, &["--approve", "ask"]);
    initialize(&mut peer, json!({ "elicitation": {} }));
    let params = json!({ "name": "fusee_run", "arguments": { "request": "Write.", "flow": "flat" } });
    let running = peer.begin("tools/call", params);
    let form = peer.method("elicitation/create");
    assert_eq!(form["params"]["requestedSchema"]["required"], json!(["decision"]), "{form:#}");
    peer.answer(
        &form,
        json!({ "action": "accept", "content": { "decision": "refuse", "reason": "not now" } }),
    );
    let done = peer.response(running);
    assert_eq!(done["structuredContent"]["answer"], "It was refused.", "{done:#}");
    assert_eq!(project.read("a.txt"), "");
}

#[test]
fn an_approval_is_a_result_that_requires_input_in_the_new_era() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("Allowed."),
    ]);
    let mut peer = connect(&project, &model, &["--approve", "ask"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let mut params = json!({
        "name": "fusee_run", "arguments": { "request": "Write.", "flow": "flat" }, "_meta": meta,
    });
    let asked = peer.request("tools/call", params.clone());
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ key: { "action": "accept", "content": { "decision": "once" } } });
    let done = peer.request("tools/call", params);
    assert_eq!(done["structuredContent"]["answer"], "Allowed.", "{done:#}");
    assert_eq!(project.read("a.txt"), "one\n");
}

#[test]
fn a_question_that_another_process_answers_first_is_settled_once() {
    let project = Project::new();
    let model = project
        .script(&[Line::call("ask_user", json!({"question": "Which colour?"})), Line::text("Blue it is.")]);
    let mut one = connect(&project, &model, &[]);
    initialize(&mut one, json!({}));
    let waiting = call(&mut one, "fusee_run", json!({ "request": "Paint.", "flow": "flat" }));
    let run = run_of(&waiting);
    assert_eq!(waiting["structuredContent"]["waiting"][0]["reason"], "Which colour?", "{waiting:#}");
    let mut other = connect(&project, &model, &[]);
    initialize(&mut other, json!({}));
    let seen = wait_for_question(&mut other, &run);
    assert_eq!(seen["structuredContent"]["status"], "waiting", "{seen:#}");
    call(&mut other, "fusee_answer", json!({ "run": run, "text": "blue" }));
    let done = call(&mut one, "fusee_wait", json!({ "run": run }));
    let done = if done["structuredContent"]["status"] == "waiting" {
        // The answer of the other process is noticed within a second.
        std::thread::sleep(std::time::Duration::from_millis(2500));
        call(&mut one, "fusee_wait", json!({ "run": run }))
    } else {
        done
    };
    assert_eq!(done["structuredContent"]["answer"], "Blue it is.", "{done:#}");
}

#[test]
fn cancelling_the_call_cancels_the_run() {
    let project = Project::new();
    let model = project.script(&[Line::call("shell", json!({"command": "touch began; sleep 600"}))]);
    let mut peer = connect(&project, &model, &[]);
    initialize(&mut peer, json!({}));
    let params = json!({ "name": "fusee_run", "arguments": { "request": "Sleep.", "flow": "flat" } });
    let id = peer.begin("tools/call", params);
    while !project.dir().join("began").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    peer.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" }));
    let runs = call(&mut peer, "fusee_runs", json!({}));
    let run = run_of(&json!({ "structuredContent": runs["structuredContent"]["runs"][0] }));
    let ended = call(&mut peer, "fusee_wait", json!({ "run": run }));
    assert_eq!(
        (&ended["structuredContent"]["status"], &ended["isError"]),
        (&json!("cancelled"), &json!(true))
    );
    peer.close().exits(0);
    project.assert_no_process_left();
}

#[test]
fn a_client_that_polls_tasks_gets_a_task_that_is_the_run() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("shell", json!({"command": "while [ ! -e go ]; do sleep 0.05; done"})),
        Line::text("Done."),
    ]);
    let mut peer = connect(&project, &model, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let params =
        json!({ "name": "fusee_run", "arguments": { "request": "Wait.", "flow": "flat" }, "_meta": meta });
    let task = peer.request("tools/call", params);
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task:#}");
    project.write("go", "");
    let id = task["taskId"].as_str().unwrap();
    let done = loop {
        let state = peer.request("tasks/get", json!({ "taskId": id, "_meta": meta }));
        if state["status"] != "working" {
            break state;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!(done["status"], "completed", "{done:#}");
    assert_eq!(done["result"]["structuredContent"]["answer"], "Done.", "{done:#}");
}

#[test]
fn wrong_messages_and_arguments_are_reported_and_the_server_lives_on() {
    let project = Project::new();
    let mut peer = connect(&project, &project.script(&[]), &[]);
    initialize(&mut peer, json!({}));
    peer.send_text("this is not JSON\n\n{\"jsonrpc\":\"2.0\",\n");
    peer.send(&json!({ "jsonrpc": "2.0", "id": 99, "result": {} }));
    peer.notify("notifications/unheard-of", json!({ "x": 1 }));
    let unknown = peer.request("fusee/unheard-of", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown:#}");
    let tool = call(&mut peer, &format!("\u{1b}[31m{}", "x".repeat(10_000)), json!({}));
    assert_eq!(tool["error"]["code"], -32602, "{tool:#}");
    assert!(tool["error"]["message"].as_str().unwrap().len() < 200, "{tool:#}");
    for (tool, arguments) in [
        ("fusee_run", json!({ "request": "x", "reqest": "y" })),
        ("fusee_run", json!({ "request": "  " })),
        ("fusee_run", json!({ "request": "x", "directory": "/does/not/exist" })),
        ("fusee_wait", json!({ "run": "none" })),
        ("fusee_cancel", json!({ "run": "none" })),
    ] {
        let result = call(&mut peer, tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result:#}");
    }
    // A line that is longer than any message is dropped.
    peer.send_text(&format!("{}\n", "y".repeat(17 << 20)));
    let tools = peer.request("tools/list", json!({}));
    assert!(tools["tools"].is_array(), "{tools:#}");
    peer.close().exits(0);
}
