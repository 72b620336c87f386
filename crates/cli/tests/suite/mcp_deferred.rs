//! Tools of MCP servers that are too many to be sent with each request: found with `find_tools`, called with `call_tool`.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Script, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run_on, with_key};

/// Sixty tools with long descriptions. Calls are written to a file; `tool_59` never answers the first one.
const MANY: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    def send(result): print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
    if method == "initialize":
        send({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}
        describe = lambda n: ("Prints the invoice." if n == 7 else "Does nothing of note.") + " Words." * 90
        send({"tools": [{"name": "tool_%02d" % n, "description": describe(n), "inputSchema": schema} for n in range(60)]})
    elif method == "tools/call":
        params = message["params"]
        open("called", "a").write(json.dumps([params["name"], params["arguments"]]) + "\n")
        if params["name"] != "tool_59":
            send({"content": [{"type": "text", "text": "%s got %d" % (params["name"], params["arguments"]["value"])}]})
"#;

fn project(settings: &str) -> Project {
    let project = Project::new().with("server.py", MANY);
    configure(&project, settings);
    project
}

fn configure(project: &Project, settings: &str) {
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = format!("{settings}\n[mcp.test]\ncommand = [\"python3\", \"server.py\"]\n");
    std::fs::write(folder.join("config.toml"), settings).unwrap();
}

/// The definitions that each request offers.
fn offered(server: &Server) -> Vec<Value> {
    server.requests().iter().map(|request| request.arrived.json()["tools"].clone()).collect()
}

fn names(tools: &Value) -> Vec<String> {
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.as_array().unwrap().iter().map(name).collect()
}

fn calls(events: &[Value]) -> Vec<(String, Value)> {
    let call = |call: &&Value| (call["name"].as_str().unwrap().to_owned(), call["arguments"].clone());
    of_type(events, "tool_call").iter().map(call).collect()
}

fn contents(events: &[Value]) -> Vec<String> {
    let content = |result: &&Value| result["content"].as_str().unwrap().to_owned();
    of_type(events, "tool_result").iter().map(content).collect()
}

fn call_tool(name: &str, value: i32) -> Message {
    Message::call("call_tool", json!({"name": name, "arguments": {"value": value}}))
}

fn script(turns: &[Message]) -> Server {
    Server::start(turns.iter().map(Message::stream).collect::<Script>())
}

#[test]
fn many_tools_are_found_and_called_instead_of_sent() {
    let plain = script(&[Message::text("Done.")]);
    run_on(&Project::new(), &plain).run().exits(0);
    let project = project("");
    let find = Message::call("find_tools", json!({"query": "print invoice"}));
    let server = script(&[find, call_tool("test_tool_07", 5), Message::text("Done.")]);
    let events = run_on(&project, &server).args(["--run-id", "r"]).run().exits(0).events();

    // Every request offers the tools of a run without servers, and two more.
    let requests = offered(&server);
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|tools| *tools == requests[0]));
    let is_added =
        |tool: &&Value| ["find_tools", "call_tool"].contains(&tool["function"]["name"].as_str().unwrap());
    let (added, others): (Vec<&Value>, Vec<&Value>) =
        requests[0].as_array().unwrap().iter().partition(|tool| is_added(tool));
    assert_eq!(json!(others), offered(&plain)[0]);
    assert_eq!(
        json!(added),
        json!([
            {"type": "function", "function": {
                "name": "find_tools",
                "description": "Finds tools that are not listed here, by words of their names and descriptions; shows their definitions. Call them with call_tool. There are 60 test_….",
                "parameters": {"type": "object", "properties": {"query": {"type": "string", "description": "Words, such as `create issue`; empty to list all names"}}, "required": ["query"], "additionalProperties": false}
            }},
            {"type": "function", "function": {
                "name": "call_tool",
                "description": "Calls a tool that find_tools has shown.",
                "parameters": {"type": "object", "properties": {"name": {"type": "string", "description": "Name of the tool"}, "arguments": {"type": "object", "description": "Its arguments, as its definition says"}}, "required": ["name"], "additionalProperties": false}
            }},
        ])
    );

    // The call has the name and the arguments of the tool that it is about.
    assert_eq!(calls(&events)[1], ("test_tool_07".to_owned(), json!({"value": 5})));
    let contents = contents(&events);
    let found: Value = serde_json::from_str(&contents[0]).unwrap();
    assert_eq!(
        (&found["name"], &found["parameters"]["required"]),
        (&json!("test_tool_07"), &json!(["value"]))
    );
    assert_eq!(contents[1], "tool_07 got 5");
    assert_eq!(project.read("called"), "[\"tool_07\", {\"value\": 5}]\n");
    fusee(&project).args(["replay", "r"]).run().exits(0);
    // What was sent to the model stays as the model made it.
    let sent = server.requests()[2].arrived.json()["messages"].to_string();
    assert!(sent.contains("call_tool"), "{sent}");
}

#[test]
fn tools_within_their_share_are_sent() {
    let project = project("mcp_context_share = 0.5");
    let server = script(&[Message::call("test_tool_03", json!({"value": 1})), Message::text("Done.")]);
    let events = run_on(&project, &server).run().exits(0).events();
    assert_eq!(contents(&events), ["tool_03 got 1"]);
    let names = names(&offered(&server)[0]);
    assert_eq!(names.iter().filter(|name| name.starts_with("test_tool_")).count(), 60);
    assert!(!names.contains(&"find_tools".to_owned()) && !names.contains(&"call_tool".to_owned()));
}

#[test]
fn a_wrong_call_is_answered_with_what_to_do() {
    let project = project("");
    let server = script(&[
        call_tool("test_tool_99", 1),
        Message::call("call_tool", json!({"name": "test_tool_01", "arguments": {"valve": 1}})),
        Message::call("find_tools", json!({"query": "xylophone"})),
        // Directly, by the name that the model has found.
        Message::call("test_tool_02", json!({"value": 2})),
        // The arguments as text.
        Message::call("call_tool", json!({"name": "test_tool_02", "arguments": "{\"value\": 3}"})),
        Message::text("Done."),
    ]);
    let events = run_on(&project, &server).run().exits(0).events();
    let contents = contents(&events);
    assert_eq!(contents[0], "There is no tool `test_tool_99` to call this way; look for it with find_tools.");
    assert!(contents[1].contains("value"), "{}", contents[1]);
    assert!(contents[2].starts_with("No tool has these words. The tools are: test_tool_00, test_tool_01, "));
    assert_eq!(contents[3..], ["tool_02 got 2", "tool_02 got 3"]);
}

#[test]
fn approval_and_hooks_see_the_tool_that_is_called() {
    let project = project("");
    let hook = json!({"type": "command", "command": "echo not today >&2; exit 2"});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "test_tool_07", "hooks": [hook]}]}});
    project.write(".fusee/hooks.json", &hooks.to_string());
    fusee(&project).args(["trust", "--yes"]).run().exits(0);
    let server =
        script(&[call_tool("test_tool_07", 1), call_tool("test_tool_08", 1), Message::text("Done.")]);
    let events = run_on(&project, &server).args(["--approve", "ask"]).run().exits(0).events();
    let contents = contents(&events);
    assert!(contents[0].contains("not today"), "{}", contents[0]);
    assert!(contents[1].contains("nobody is there to approve it"), "{}", contents[1]);
    let asked = |event: &&Value| (event["name"].clone(), event["arguments"].clone());
    let asked: Vec<_> = of_type(&events, "approval_requested").iter().map(asked).collect();
    assert_eq!(asked, [(json!("test_tool_08"), json!({"value": 1}))]);
    assert!(!project.dir().join("called").exists());
    assert_eq!(
        of_type(&events, "tool_result").iter().filter(|result| result["fate"] == "refused").count(),
        2
    );
}

#[test]
fn a_resumed_run_keeps_the_tools_that_it_had() {
    let project = project("");
    let server = script(&[call_tool("test_tool_59", 1), Message::text("Done.")]);
    let mut running = run_on(&project, &server).args(["--run-id", "r"]).start();
    running.wait_for_stdout("the call", |out| out.contains("\"tool_call\""));
    while !project.dir().join("called").exists() {
        assert!(running.is_running());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.signal(Signal::KILL);
    running.wait();
    configure(&project, "mcp_context_share = 1.0");
    let resumed = with_key(fusee(&project).args(["resume", "r", "--json"])).run().exits(0);
    let contents = contents(&resumed.events_after_resume());
    assert!(contents[0].contains("may or may not have run; it was not repeated"), "{}", contents[0]);
    let requests = offered(&server);
    assert_eq!((requests.len(), &requests[0]), (2, &requests[1]));
    assert_eq!(project.read("called").lines().count(), 1);
    fusee(&project).args(["replay", "r"]).run().exits(0);
}
