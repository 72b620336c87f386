//! `fusee acp`: an editor holds conversations, also across the death of the agent.

use fusee_testkit::peer::Peer;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

pub(crate) fn connect(project: &Project, model: &str, flags: &[&str]) -> Peer {
    let command = fusee(project).args(["acp", "--model", model, "--sandbox", "off"]).args(flags);
    let mut peer = Peer::connect(command);
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    assert_eq!(peer.request("initialize", hello)["protocolVersion"], 1);
    peer
}

/// Opens a session that works in one conversation.
pub(crate) fn open(peer: &mut Peer, project: &Project) -> String {
    let opened = peer.request("session/new", json!({ "cwd": project.dir(), "mcpServers": [] }));
    let session = opened["sessionId"].as_str().expect("the id of the session").to_owned();
    let flat = json!({ "sessionId": session, "configId": "flow", "type": "id", "value": "flat" });
    let set = peer.request("session/set_config_option", flat);
    assert!(set["configOptions"].is_array(), "{set:#}");
    session
}

pub(crate) fn begin(peer: &mut Peer, session: &str, text: &str) -> u64 {
    peer.begin(
        "session/prompt",
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }),
    )
}

pub(crate) fn prompt(peer: &mut Peer, session: &str, text: &str) -> Value {
    let id = begin(peer, session, text);
    peer.response(id)
}

/// The updates that arrived so far.
pub(crate) fn updates(peer: &mut Peer) -> Vec<Value> {
    let all = peer.take_all(|message| message["method"] == "session/update");
    all.into_iter().map(|mut message| message["params"]["update"].take()).collect()
}

pub(crate) fn text(updates: &[Value], kind: &str) -> String {
    let of_kind = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    of_kind.map(|update| update["content"]["text"].as_str().unwrap()).collect()
}

/// Updates of the agent that make up the conversation, with the fragments of a message joined.
fn conversation(updates: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().unwrap();
        match kind {
            "available_commands_update" | "usage_update" | "config_option_update" | "user_message_chunk" => {}
            "agent_message_chunk" | "agent_thought_chunk"
                if joined.last().is_some_and(|last| last["sessionUpdate"] == kind) =>
            {
                let last = joined.last_mut().unwrap();
                let text = last["content"]["text"].as_str().unwrap().to_owned();
                last["content"]["text"] = json!(text + update["content"]["text"].as_str().unwrap());
            }
            // Output of a running command is live only; the result has all of it.
            "tool_call_update" if update.get("status").is_none() => {}
            _ => joined.push(update.clone()),
        }
    }
    joined
}

#[test]
fn a_conversation_is_replayed_exactly_by_another_process() {
    let project = Project::new().with("a.txt", "one\n");
    let model = project.script(&[
        Line::call("plan_tasks", json!({"action": "create", "tasks": [{"description": "Change it."}]})),
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"}))
            .with_text("I change it.")
            .reasoning("It says one."),
        Line::call("shell", json!({"command": "echo out; exit 3"})),
        Line::text("Changed."),
        Line::text("Still two."),
    ]);
    let mut peer = connect(&project, &model, &[]);
    let session = open(&mut peer, &project);
    let first = prompt(&mut peer, &session, "Change it to two.");
    assert_eq!(first["stopReason"], "end_turn", "{first:#}");
    assert!(first["usage"]["totalTokens"].as_u64().unwrap() > 0, "{first:#}");
    let second = prompt(&mut peer, &session, "What is it now?");
    assert_eq!(second["stopReason"], "end_turn", "{second:#}");
    let live = updates(&mut peer);
    assert_eq!(project.read("a.txt"), "two\n");
    assert!(live.iter().any(|update| update["sessionUpdate"] == "usage_update"), "{live:#?}");
    peer.close().exits(0);

    let mut next = connect(&project, &model, &[]);
    let listed = next.request("session/list", json!({ "cwd": project.dir() }));
    let listed: Vec<&Value> =
        listed["sessions"].as_array().unwrap().iter().map(|entry| &entry["sessionId"]).collect();
    assert_eq!(listed, [&json!(session)]);
    let load = json!({ "sessionId": session, "cwd": project.dir(), "mcpServers": [] });
    let loaded = next.request("session/load", load);
    assert!(loaded["configOptions"].is_array(), "{loaded:#}");
    let replayed = updates(&mut next);
    assert_eq!(text(&replayed, "user_message_chunk"), "Change it to two.What is it now?");
    let of_agent = conversation(&replayed);
    let kinds: Vec<&str> = of_agent.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "tool_call",
            "tool_call_update",
            "plan",
            "tool_call",
            "tool_call_update",
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ]
    );
    assert_eq!(of_agent, conversation(&live));
    next.close().exits(0);
}

#[test]
fn a_session_that_was_killed_goes_on_when_it_is_loaded() {
    let project = Project::new();
    let model = project.script(&[
        Line::call(
            "shell",
            json!({"command": "echo once >> effects; while [ ! -e go ]; do sleep 0.05; done"}),
        ),
        Line::text("Finished."),
        Line::text("Yes."),
    ]);
    let mut peer = connect(&project, &model, &[]);
    let session = open(&mut peer, &project);
    begin(&mut peer, &session, "Go.");
    while !project.read("effects").contains("once") {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    peer.kill();
    project.write("go", "");
    let mut next = connect(&project, &model, &[]);
    let load = json!({ "sessionId": session, "cwd": project.dir(), "mcpServers": [] });
    next.request("session/load", load);
    // The prompt waits for what was cut off.
    let answer = prompt(&mut next, &session, "Are you done?");
    assert_eq!(answer["stopReason"], "end_turn", "{answer:#}");
    let seen = updates(&mut next);
    assert_eq!(text(&seen, "agent_message_chunk"), "Finished.Yes.");
    assert_eq!(project.read("effects"), "once\n");
}

#[test]
fn a_permission_is_asked_for_and_every_answer_gives_one_result() {
    for (outcome, content, said) in [
        (json!({ "outcome": "selected", "optionId": "allow" }), "one\n", "Done."),
        (json!({ "outcome": "selected", "optionId": "reject" }), "", "Done."),
        (json!({ "outcome": "cancelled" }), "", "Done."),
    ] {
        let project = Project::new();
        let model = project.script(&[
            Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
            Line::text("Done."),
        ]);
        let mut peer = connect(&project, &model, &[]);
        let session = open(&mut peer, &project);
        let mode = peer.request("session/set_mode", json!({ "sessionId": session, "modeId": "ask" }));
        assert_eq!(mode, json!({}));
        let id = begin(&mut peer, &session, "Write it.");
        let request = peer.method("session/request_permission");
        assert_eq!(request["params"]["toolCall"]["kind"], "edit", "{request:#}");
        peer.answer(&request, json!({ "outcome": outcome }));
        assert_eq!(peer.response(id)["stopReason"], "end_turn");
        assert_eq!(text(&updates(&mut peer), "agent_message_chunk"), said);
        assert_eq!(project.read("a.txt"), content, "{outcome}");
    }
}

#[test]
fn a_permission_that_is_answered_elsewhere_first_is_withdrawn() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("Done."),
    ]);
    let mut peer = connect(&project, &model, &["--approve", "ask"]);
    let shown = peer.request("session/new", json!({ "cwd": project.dir(), "mcpServers": [] }));
    assert_eq!(shown["modes"]["currentModeId"], "ask");
    let session = open(&mut peer, &project);
    let id = begin(&mut peer, &session, "Write it.");
    let request = peer.method("session/request_permission");
    // Another process answers through the journal.
    let mut other = Peer::connect(fusee(&project).args(["mcp", "--model", &model]));
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    other.request("initialize", hello);
    let answer = json!({ "name": "fusee_answer", "arguments": { "run": session, "approve": true } });
    let answered = other.request("tools/call", answer);
    assert_eq!(answered["isError"], false, "{answered:#}");
    let withdrawn = peer.method("$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    assert_eq!(peer.response(id)["stopReason"], "end_turn");
    // An answer that comes too late changes nothing.
    peer.answer(&request, json!({ "outcome": { "outcome": "selected", "optionId": "reject" } }));
    assert_eq!(project.read("a.txt"), "one\n");
    assert_eq!(peer.request("session/close", json!({ "sessionId": session })), json!({}));
}

#[test]
fn a_cancelled_prompt_ends_as_cancelled_and_the_next_one_continues() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("shell", json!({"command": "touch began; sleep 600"})),
        Line::text("Here I am."),
    ]);
    let mut peer = connect(&project, &model, &[]);
    let session = open(&mut peer, &project);
    let id = begin(&mut peer, &session, "Sleep.");
    while !project.dir().join("began").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    peer.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(peer.response(id)["stopReason"], "cancelled");
    assert_eq!(prompt(&mut peer, &session, "Are you there?")["stopReason"], "end_turn");
    assert_eq!(text(&updates(&mut peer), "agent_message_chunk"), "Here I am.");
    peer.close().exits(0);
    project.assert_no_process_left();
}

#[test]
fn a_question_of_the_model_is_answered_by_the_next_prompt() {
    let project = Project::new();
    let model = project.script(&[
        Line::call("ask_user", json!({"question": "Which colour?"})),
        Line::text("Blue it is.").matching("blue"),
    ]);
    let mut peer = connect(&project, &model, &[]);
    let session = open(&mut peer, &project);
    assert_eq!(prompt(&mut peer, &session, "Paint it.")["stopReason"], "end_turn");
    assert_eq!(text(&updates(&mut peer), "agent_message_chunk"), "Which colour?");
    assert_eq!(prompt(&mut peer, &session, "blue")["stopReason"], "end_turn");
    assert_eq!(text(&updates(&mut peer), "agent_message_chunk"), "Blue it is.");
}

#[test]
fn commands_are_offered_and_never_reach_the_model() {
    let template = r#"<task name="greet" type="atomic"><description>Greet a person</description><inputs><input name="who" type="string"/></inputs><instructions>Greet {{who}}.</instructions></task>"#;
    let project = Project::new().with(".fusee/templates/greet.xml", template);
    let model = project.script(&[Line::text("Hello, Ann!").matching("Greet Ann")]);
    let mut peer = connect(&project, &model, &[]);
    let session = open(&mut peer, &project);
    let offered = peer.wait_for("commands", |message| {
        message["params"]["update"]["sessionUpdate"] == "available_commands_update"
    });
    let commands = offered["params"]["update"]["availableCommands"].as_array().unwrap().clone();
    let greet = commands.iter().find(|command| command["name"] == "greet").unwrap();
    assert_eq!(greet["input"]["hint"], "who=…");
    for (typed, said) in [
        ("/greet who=Ann", "Hello, Ann!"),
        ("/gret", "Unknown command or task `gret`; did you mean `greet`?. `/help` lists the commands."),
        ("/flow", "flow: flat"),
        ("/approve never", "approval: never"),
    ] {
        updates(&mut peer);
        assert_eq!(prompt(&mut peer, &session, typed)["stopReason"], "end_turn", "{typed}");
        assert_eq!(text(&updates(&mut peer), "agent_message_chunk"), said, "{typed}");
    }
}

#[test]
fn sessions_work_at_the_same_time_in_their_own_directories() {
    let project = Project::new();
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    let model = project.script(&[
        Line::call("shell", json!({"command": wait})).matching("first"),
        Line::text("Second.").matching("second"),
        Line::text("First."),
    ]);
    let (one, other) = (Project::new(), Project::new());
    let mut peer = connect(&project, &model, &[]);
    let (first, second) = (open(&mut peer, &one), open(&mut peer, &other));
    let waiting = begin(&mut peer, &first, "first");
    peer.wait_for("call", |message| message["params"]["update"]["sessionUpdate"] == "tool_call");
    assert_eq!(prompt(&mut peer, &second, "second")["stopReason"], "end_turn");
    one.write("go", "");
    assert_eq!(peer.response(waiting)["stopReason"], "end_turn");
    assert!(one.journal().exists() && other.journal().exists() && !project.journal().exists());
}

#[test]
fn wrong_messages_are_answered_and_the_agent_lives_on() {
    let project = Project::new();
    let mut peer = connect(&project, &project.script(&[]), &[]);
    peer.send_text("not JSON\n[]\n{\"id\":7}\n");
    let codes: Vec<i64> = (0..2)
        .map(|_| {
            peer.wait_for("error", |message| message.get("error").is_some())["error"]["code"]
                .as_i64()
                .unwrap()
        })
        .collect();
    assert_eq!(codes, [-32700, -32600]);
    for (method, params, code) in [
        ("session/unheard-of", json!({}), -32601),
        ("session/new", json!({}), -32602),
        ("session/new", json!({ "cwd": "relative", "mcpServers": [] }), -32602),
        ("session/prompt", json!({ "sessionId": "none", "prompt": [] }), -32602),
        ("session/load", json!({ "sessionId": "none", "cwd": project.dir(), "mcpServers": [] }), -32602),
        (
            "session/load",
            json!({ "sessionId": "\u{1b}[31m", "cwd": project.dir(), "mcpServers": [] }),
            -32602,
        ),
        ("session/set_mode", json!({ "sessionId": "none", "modeId": "ask" }), -32602),
    ] {
        let answer = peer.request(method, params);
        assert_eq!(answer["error"]["code"], code, "{method}: {answer:#}");
    }
    for _ in 0..2000 {
        peer.notify("session/cancel", json!({ "sessionId": "none" }));
    }
    let session = open(&mut peer, &project);
    let missing = prompt(&mut peer, &session, "Go.");
    assert_eq!(missing["error"]["code"], -32603, "a script without replies is an error: {missing:#}");
    peer.close().exits(0);
}
