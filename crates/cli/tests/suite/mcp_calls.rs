//! Calls of MCP servers in both eras of the protocol: progress, cancellation, questions to the user, changed tools.

use std::time::{Duration, Instant};

use fusee_testkit::events::of_type;
use fusee_testkit::peer::Peer;
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::ClosedPort;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

/// A server until revision 2025-11-25. `slow` reports progress for two seconds, `form` asks the user, `many` asks without
/// end, `change` announces other tools, `hang` never answers. Cancellations are written to a file.
const LEGACY: &str = r#"
import json, sys, time, threading
lock = threading.Lock()
def send(message):
    with lock: sys.stdout.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n"); sys.stdout.flush()
def text(id, words): send({"id": id, "result": {"content": [{"type": "text", "text": words}]}})
asked = {}
def ask(key, call, then):
    asked[key] = (call, then)
    schema = {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "the city"}, "days": {"type": "integer"}}}
    send({"id": key, "method": "elicitation/create", "params": {"message": "Where to?", "requestedSchema": schema}})
def slow(id, token):
    for n in range(8):
        time.sleep(0.25)
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": n + 1, "total": 8, "message": "part\nnot shown"}})
    text(id, "slow done")
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "t", "version": json.dumps(message["params"]["capabilities"])}}})
    elif method == "tools/list":
        names = ["slow", "form", "many", "change", "hang"]
        send({"id": id, "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}})
    elif method == "notifications/cancelled":
        open("cancelled", "a").write(json.dumps(message["params"]["requestId"]) + "\n")
    elif method == "tools/call":
        name = message["params"]["name"]
        open("called", "a").write(json.dumps(id) + "\n")
        if name == "slow": threading.Thread(target=slow, args=(id, message["params"]["_meta"]["progressToken"])).start()
        elif name == "form": ask("q", id, lambda id, answer: text(id, json.dumps(answer, sort_keys=True)))
        elif name == "many":
            def again(id, answer, n=[0]):
                n[0] += 1
                if n[0] < 15: ask("m%d" % n[0], id, again)
                else: text(id, "%d answers, the last: %s" % (n[0], answer["action"]))
            ask("m0", id, again)
        elif name == "change":
            send({"method": "notifications/tools/list_changed"})
            text(id, "changed")
    elif id in asked:
        call, then = asked.pop(id)
        then(call, message["result"])
"#;

/// A server of revision 2026-07-28 only, with a question in its result.
const MODERN: &str = r#"
import json, sys
META = "io.modelcontextprotocol/"
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if id is None: continue
    def send(**answer): print(json.dumps(dict(answer, jsonrpc="2.0", id=id)), flush=True)
    if method == "initialize":
        send(error={"code": -32601, "message": "there is no initialize"})
        continue
    meta = params.get("_meta", {})
    if meta.get(META + "protocolVersion") != "2026-07-28" or META + "clientCapabilities" not in meta:
        send(error={"code": -32602, "message": "no metadata"})
    elif method == "server/discover":
        send(result={"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"})
    elif method == "tools/list":
        send(result={"resultType": "complete", "tools": [{"name": "form", "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"})
    elif "inputResponses" in params:
        send(result={"resultType": "complete", "content": [{"type": "text", "text": json.dumps([params["requestState"], params["inputResponses"]], sort_keys=True)}]})
    else:
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
        question = {"method": "elicitation/create", "params": {"mode": "form", "message": "Really?", "requestedSchema": schema}}
        send(result={"resultType": "input_required", "inputRequests": {"k": question}, "requestState": "s-1"})
"#;

fn project(server: &str, timeout_s: u32) -> Project {
    let project = Project::new().with("server.py", server);
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings =
        format!("[mcp.test]\ncommand = \"python3\"\nargs = [\"server.py\"]\ntimeout_s = {timeout_s}\n");
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    project
}

fn contents(events: &[Value]) -> Vec<String> {
    of_type(events, "tool_result")
        .iter()
        .map(|result| result["content"].as_str().unwrap().to_owned())
        .collect()
}

fn call(project: &Project, tool: &str) -> Outcome {
    let script = project.script(&[Line::call(tool, json!({})), Line::text("Done.")]);
    run_json(project, &script).args(["--run-id", "r"]).run().exits(0)
}

/// A run whose questions a client of `fusee mcp` answers with these texts; returns the events of the run.
fn answered(project: &Project, script: &str, answers: &[&str]) -> Vec<Value> {
    let mut peer = Peer::connect(fusee(project).args(["mcp", "--model", script, "--sandbox", "off"]));
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    peer.request("initialize", hello);
    peer.notify("notifications/initialized", json!({}));
    let mut call = |tool: &str, arguments: Value| {
        peer.request("tools/call", json!({"name": tool, "arguments": arguments}))["structuredContent"].take()
    };
    let mut state = call("fusee_run", json!({"request": "Go.", "flow": "flat"}));
    let id = state["run"].as_str().unwrap().to_owned();
    for answer in answers {
        assert_eq!(state["status"], "waiting", "{state:#}");
        call("fusee_answer", json!({"run": id, "text": answer}));
        state = call("fusee_wait", json!({"run": id, "wait_s": 30}));
    }
    assert_eq!((&state["status"], &state["answer"]), (&json!("completed"), &json!("Done.")), "{state:#}");
    peer.close().exits(0);
    let shown = fusee(project).args(["show", "--json", &id]).run().exits(0);
    fusee(project).args(["replay", &id]).run().exits(0);
    fusee_testkit::events::read_checked(&shown.stdout, fusee_testkit::events::Part::Whole)
}

#[test]
fn progress_is_shown_and_keeps_a_call_alive() {
    let project = project(LEGACY, 1);
    let events = call(&project, "test_slow").events();
    assert_eq!(contents(&events), ["slow done"]);
    let shown: String =
        of_type(&events, "tool_output").iter().map(|output| output["text"].as_str().unwrap()).collect();
    assert!(shown.starts_with("1/8 part\n2/8 part\n"), "{shown:?}");
}

#[test]
fn a_silent_call_ends_at_its_time_limit_and_is_cancelled_on_the_server() {
    let project = project(LEGACY, 1);
    let started = Instant::now();
    // The second call is answered after the server has read that the first is cancelled.
    let script = project.script(&[
        Line::call("test_hang", json!({})),
        Line::call("test_change", json!({})),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    let silent = "The server `test` gave no answer within 1 s. The call may or may not have run.";
    assert_eq!(contents(&events), [silent, "changed"]);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert_eq!(project.read("cancelled").lines().next(), project.read("called").lines().next());
}

#[test]
fn a_question_of_a_server_is_asked_field_by_field() {
    let project = project(LEGACY, 10);
    let script = project.script(&[Line::call("test_form", json!({})), Line::text("Done.")]);
    let events = answered(&project, &script, &["Bern", "3"]);
    assert_eq!(contents(&events), [r#"{"action": "accept", "content": {"city": "Bern", "days": 3}}"#]);
    let asked: Vec<&str> = of_type(&events, "approval_requested")
        .iter()
        .map(|asked| asked["arguments"]["question"].as_str().unwrap())
        .collect();
    assert_eq!(
        asked,
        [
            "The MCP server `test` asks: Where to?\ncity: the city",
            "The MCP server `test` asks: Where to?\ndays (integer) (may be left empty)",
        ]
    );
}

#[test]
fn without_anybody_to_ask_a_question_is_declined_and_questions_have_a_bound() {
    let asking = project(LEGACY, 10);
    let ran = call(&asking, "test_form");
    assert_eq!(contents(&ran.events()), [r#"{"action": "decline"}"#]);
    fusee(&asking).args(["replay", "r"]).run().exits(0);
    let many = project(LEGACY, 10);
    let events = call(&many, "test_many").events();
    assert_eq!(contents(&events), ["15 answers, the last: decline"]);
    assert_eq!(of_type(&events, "approval_requested").len(), 10);
}

#[test]
fn a_server_of_the_newer_revision_asks_with_its_result() {
    let project = project(MODERN, 10);
    let script = project.script(&[Line::call("test_form", json!({})), Line::text("Done.")]);
    let events = answered(&project, &script, &["yes"]);
    assert_eq!(contents(&events), [r#"["s-1", {"k": {"action": "accept", "content": {"sure": true}}}]"#]);
}

#[test]
fn changed_tools_are_announced_once_and_used_by_the_next_run() {
    let project = project(LEGACY, 10);
    let script = project.script(&[
        Line::call("test_change", json!({})),
        Line::call("test_form", json!({"a": 1})),
        Line::call("test_form", json!({"a": 2})),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    let shown: Vec<&str> =
        of_type(&events, "tool_output").iter().map(|output| output["text"].as_str().unwrap()).collect();
    assert_eq!(shown, ["The tools of this server have changed; a new run will use them.\n"]);
}

/// A server of revision 2026-07-28 that answers calls with tasks. `work` is done at the third look, `form` asks the user
/// on the way, `break` fails, `hang` goes on for ever. Requests are written to a file.
const TASKS: &str = r#"
import json, sys
looks, answers = {}, {}
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if id is None: continue
    def send(**answer): print(json.dumps(dict(answer, jsonrpc="2.0", id=id)), flush=True)
    def task(name, status, **more):
        now = "2026-11-01T00:00:00Z"
        return dict(more, taskId=name, status=status, createdAt=now, lastUpdatedAt=now, ttlMs=None, pollIntervalMs=60)
    open("requests", "a").write(json.dumps([method, params.get("_meta", {}).get("traceparent")]) + "\n")
    if method == "initialize": send(error={"code": -32601, "message": "there is no initialize"})
    elif method == "server/discover":
        send(result={"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, "ttlMs": 0, "cacheScope": "private"})
    elif method == "tools/list":
        send(result={"resultType": "complete", "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["work", "form", "break", "hang"]], "ttlMs": 0, "cacheScope": "private"})
    elif method == "tools/call":
        if "io.modelcontextprotocol/tasks" not in params["_meta"]["io.modelcontextprotocol/clientCapabilities"].get("extensions", {}):
            send(error={"code": -32021, "message": "no tasks"})
        else: send(result=task(params["name"], "working", resultType="task", statusMessage="begun"))
    elif method == "tasks/get":
        name = params["taskId"]
        looks[name] = looks.get(name, 0) + 1
        done = {"content": [{"type": "text", "text": "%s after %d looks %s" % (name, looks[name], json.dumps(answers.get(name)))}]}
        if name == "break": state = task(name, "failed", error={"code": -32603, "message": "out of paper"})
        elif name == "form" and name not in answers:
            schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
            question = {"method": "elicitation/create", "params": {"mode": "form", "message": "Really?", "requestedSchema": schema}}
            state = task(name, "input_required", inputRequests={"k": question})
        elif name == "hang" or looks[name] < 3: state = task(name, "working", statusMessage="look %d" % looks[name])
        else: state = task(name, "completed", result=done)
        send(result=dict(state, resultType="complete"))
    elif method == "tasks/update":
        answers[params["taskId"]] = params["inputResponses"]
        send(result={"resultType": "complete"})
    elif method == "tasks/cancel": send(result={"resultType": "complete"})
"#;

#[test]
fn a_call_answered_with_a_task_is_followed_to_its_result() {
    let project = project(TASKS, 5);
    let events = call(&project, "test_work").events();
    assert_eq!(contents(&events), ["work after 3 looks null"]);
    let shown: String =
        of_type(&events, "tool_output").iter().map(|output| output["text"].as_str().unwrap()).collect();
    assert_eq!(shown, "begun\nlook 1\nlook 2\n");
}

#[test]
fn a_task_that_fails_is_told_to_the_model() {
    let project = project(TASKS, 5);
    let events = call(&project, "test_break").events();
    let [content] = &contents(&events)[..] else { panic!("{events:#?}") };
    assert!(content.contains("refused") && content.contains("out of paper"), "{content}");
}

#[test]
fn a_question_of_a_task_is_asked_and_answered() {
    let project = project(TASKS, 5);
    let script = project.script(&[Line::call("test_form", json!({})), Line::text("Done.")]);
    let events = answered(&project, &script, &["yes"]);
    let content = contents(&events).pop().unwrap();
    assert!(content.starts_with("form after") && content.contains("\"sure\": true"), "{content}");
}

#[test]
fn a_call_says_which_trace_it_belongs_to() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let project = project(TASKS, 5);
    let collector = ClosedPort::reserve().base_url();
    let trace = |variables: &[(&str, &str)]| {
        let _ = std::fs::remove_file(project.dir().join("requests"));
        let script = project.script(&[Line::call("test_work", json!({})), Line::text("Done.")]);
        let command = run_json(&project, &script);
        variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run().exits(0);
        let text = project.read("requests");
        let mut requests = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        requests.find(|request| request[0] == "tools/call").unwrap()[1].take()
    };
    assert_eq!(trace(&[]), Value::Null);
    let found = trace(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector), ("TRACEPARENT", PARENT)]);
    let found = found.as_str().unwrap();
    // The same trace; the span is the one of the agent.
    assert_eq!((&found[..36], found.len()), (&PARENT[..36], PARENT.len()), "{found}");
}

#[test]
fn a_task_is_cancelled_with_its_call() {
    let project = project(TASKS, 5);
    let script = project.script(&[Line::call("test_hang", json!({})), Line::text("Done.")]);
    let mut running = run_json(&project, &script).start();
    running.wait_for_stdout("look 1", |out| out.contains("look 1"));
    running.signal(Signal::INT);
    running.wait().exits(130);
    let requests = project.read("requests");
    assert_eq!(requests.lines().last(), Some(r#"["tasks/cancel", null]"#), "{requests}");
}
