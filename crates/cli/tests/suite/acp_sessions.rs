//! Sessions of `fusee acp`: many in one process, and what a loaded session remembers.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::acp::{begin, connect, open, prompt, text, updates};

/// Sessions of the test.
const SESSIONS: usize = 100;
/// Prompts of each session.
const ROUNDS: usize = 3;
/// Maximum kilobytes of memory.
const MAX_KB: u64 = 100 * 1024;

/// A field of `/proc/PID/status`, in kilobytes.
fn memory(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// All sessions work at once, each in a project of its own. The memory of the process itself is compared: the code of a
/// binary without optimization takes twice the space of the released one.
#[test]
fn a_hundred_sessions_need_less_than_a_hundred_megabytes() {
    let home = Project::new();
    let turn = [
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("shell", json!({"command": "echo hi"})),
        Line::text(&"Done. ".repeat(200)),
    ];
    // Sessions take replies in any order, and each ends its turn with a text.
    let mut lines = Vec::new();
    for _ in 0..SESSIONS * ROUNDS {
        lines.extend(turn.clone());
    }
    lines.extend((0..SESSIONS).map(|_| turn[2].clone()));
    let mut peer = connect(&home, &home.script(&lines), &[]);
    let projects: Vec<Project> =
        (0..SESSIONS).map(|_| Project::new().with("a.txt", &"x\n".repeat(100))).collect();
    let sessions: Vec<String> = projects.iter().map(|project| open(&mut peer, project)).collect();
    for _ in 0..ROUNDS {
        let prompts: Vec<u64> = sessions.iter().map(|id| begin(&mut peer, id, "Go on.")).collect();
        for id in prompts {
            assert_eq!(peer.response(id)["stopReason"], "end_turn");
        }
    }
    let pid = peer.process().id();
    let (own, all) = (memory(pid, "RssAnon"), memory(pid, "VmRSS"));
    println!("{SESSIONS} sessions: RssAnon {} MB, VmRSS {} MB", own / 1024, all / 1024);
    assert!(own < MAX_KB, "{own} kB");
    peer.close().exits(0);
}

/// The chosen value of each option.
fn choices(answer: &Value) -> Value {
    let options = answer["configOptions"].as_array().unwrap();
    options
        .iter()
        .map(|option| (option["id"].as_str().unwrap().to_owned(), option["currentValue"].clone()))
        .collect()
}

#[test]
fn a_loaded_session_keeps_its_choices() {
    let project = Project::new();
    let (configured, chosen) = (project.script(&[Line::text("One.")]), project.script(&[Line::text("Two.")]));
    let mut peer = connect(&project, &configured, &[]);
    let session = open(&mut peer, &project);
    let mut set = |id: &str, value: &str| {
        let option = json!({ "sessionId": session, "configId": id, "type": "id", "value": value });
        peer.request("session/set_config_option", option)
    };
    for (id, value) in [("model", chosen.as_str()), ("thought_level", "high"), ("approval", "never")] {
        set(id, value);
    }
    let before = choices(&set("flow", "flat"));
    assert_eq!(prompt(&mut peer, &session, "Go.")["stopReason"], "end_turn");
    peer.close().exits(0);

    let mut next = connect(&project, &configured, &[]);
    let load = json!({ "sessionId": session, "cwd": project.dir(), "mcpServers": [] });
    let loaded = next.request("session/load", load);
    assert_eq!(choices(&loaded), before);
    assert_eq!(
        before,
        json!({ "model": chosen, "flow": "flat", "approval": "never", "thought_level": "high" })
    );
    next.close().exits(0);
}

#[test]
fn a_session_reports_its_cost_and_undoes_its_last_changes() {
    let project = Project::new().with("a.txt", "one\n");
    let model = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})).usage(100, 10),
        Line::call("write_file", json!({"path": "a.txt", "content": "two\n"})).usage(120, 20),
        Line::text("Done.").usage(140, 5),
    ]);
    let mut peer = connect(&project, &model, &["--approve", "auto"]);
    let session = open(&mut peer, &project);
    let mut say = |typed: &str| {
        updates(&mut peer);
        assert_eq!(prompt(&mut peer, &session, typed)["stopReason"], "end_turn", "{typed}");
        text(&updates(&mut peer), "agent_message_chunk")
    };
    assert_eq!(say("/cost"), "This session has no messages yet.");
    say("Write it.");
    assert_eq!(project.read("a.txt"), "two\n");
    let cost = say("/cost");
    assert!(cost.starts_with("Messages: 1. Model replies: 3. Tokens: 395,"), "{cost}");
    let status = say("/status");
    assert!(status.contains("\n- Messages: 1\n- Model: ") && status.contains("\n- Flow: flat\n"), "{status}");
    assert_eq!(say("/undo"), "Undone:\n- `a.txt`");
    assert_eq!(project.read("a.txt"), "one\n");
    assert_eq!(say("/undo"), "There are no changes to undo.");
    peer.close().exits(0);
}

/// An MCP server with one tool.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif method == "tools/list": result = {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
    else: result = {"content": [{"type": "text", "text": "hello from the client's server"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

#[test]
fn a_session_that_was_killed_goes_on_with_the_servers_of_the_client() {
    let project = Project::new().with("server.py", SERVER);
    let model = project.script(&[
        Line::call("shell", json!({"command": "touch began; while [ ! -e go ]; do sleep 0.05; done"})),
        Line::call("mine_hello", json!({})),
        Line::text("It said hello.").matching("hello from the client's server"),
        Line::text("Yes."),
    ]);
    let servers = json!([
        { "name": "mine", "command": "python3", "args": [project.dir().join("server.py")], "env": [] },
    ]);
    let mut peer = connect(&project, &model, &[]);
    let opened = peer.request("session/new", json!({ "cwd": project.dir(), "mcpServers": servers }));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    peer.request(
        "session/set_config_option",
        json!({ "sessionId": session, "configId": "flow", "type": "id", "value": "flat" }),
    );
    begin(&mut peer, &session, "Go.");
    while !project.dir().join("began").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    peer.kill();
    project.write("go", "");
    let mut next = connect(&project, &model, &[]);
    let load = json!({ "sessionId": session, "cwd": project.dir(), "mcpServers": servers });
    next.request("session/load", load);
    assert_eq!(prompt(&mut next, &session, "Are you done?")["stopReason"], "end_turn");
    assert_eq!(text(&updates(&mut next), "agent_message_chunk"), "It said hello.Yes.");
    next.close().exits(0);
}
