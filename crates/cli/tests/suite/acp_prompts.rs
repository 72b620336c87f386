//! What a prompt over ACP can contain and what a session can choose, seen in the requests to the model.

use fusee_testkit::peer::Peer;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Script, Server};
use serde_json::{Value, json};

use crate::acp::{open, prompt, text, updates};
use crate::support::{fusee, with_key};

/// A GIF of one pixel.
const DOT: &str = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

fn connect(project: &Project, server: &Server, model: &str) -> (Peer, Value) {
    let base_url = server.base_url();
    let args = ["acp", "--model", model, "--api", "chat", "--base-url", &base_url, "--sandbox", "off"];
    let mut peer = Peer::connect(with_key(fusee(project).args(args)));
    let hello = peer.request("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    (peer, hello)
}

fn answers(count: usize) -> Server {
    Server::start((0..count).map(|_| Message::text("Done.").stream()).collect::<Script>())
}

fn send(peer: &mut Peer, session: &str, blocks: &Value) -> Value {
    peer.request("session/prompt", json!({ "sessionId": session, "prompt": blocks }))
}

#[test]
fn an_image_of_a_prompt_reaches_the_model() {
    let project = Project::new();
    let server = answers(2);
    let (mut peer, hello) = connect(&project, &server, "openai:gpt-4o");
    assert_eq!(hello["agentCapabilities"]["promptCapabilities"]["image"], true);
    let session = open(&mut peer, &project);
    let image = json!({ "type": "image", "mimeType": "image/gif", "data": DOT });
    let words = json!({ "type": "text", "text": "What is this?" });
    assert_eq!(send(&mut peer, &session, &json!([words, image.clone()]))["stopReason"], "end_turn");
    // It stays in the conversation.
    assert_eq!(prompt(&mut peer, &session, "And now?")["stopReason"], "end_turn");
    let url = json!(format!("data:image/gif;base64,{DOT}"));
    for request in server.requests() {
        let messages = request.arrived.json()["messages"].clone();
        let parts = messages.as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
        let images: Vec<&Value> = parts
            .flatten()
            .filter(|part| part["type"] == "image_url")
            .map(|part| &part["image_url"]["url"])
            .collect();
        assert_eq!(images, [&url], "{messages:#}");
    }
    assert_eq!(server.requests().len(), 2);
    peer.close().exits(0);
    // A client that loads the session shows it again.
    let (mut next, _) = connect(&project, &server, "openai:gpt-4o");
    next.request("session/load", json!({ "sessionId": session, "cwd": project.dir(), "mcpServers": [] }));
    let said =
        updates(&mut next).into_iter().filter(|update| update["sessionUpdate"] == "user_message_chunk");
    let said: Vec<Value> = said.map(|mut update| update["content"].take()).collect();
    let plain = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(said, [plain("What is this?"), image, plain("And now?")]);
}

#[test]
fn an_embedded_image_reaches_the_model_and_another_embedded_file_is_refused() {
    let project = Project::new();
    let server = answers(1);
    let (mut peer, _) = connect(&project, &server, "openai:gpt-4o");
    let session = open(&mut peer, &project);
    let embedded = |media_type: &str| {
        let resource = json!({ "uri": "file:///shots/dot", "blob": DOT, "mimeType": media_type });
        json!([{ "type": "text", "text": "What is this? " }, { "type": "resource", "resource": resource }])
    };
    let refused = send(&mut peer, &session, &embedded("application/pdf"));
    assert_eq!(refused["error"]["message"], "embedded resources must be text or images");
    assert_eq!(send(&mut peer, &session, &embedded("image/gif"))["stopReason"], "end_turn");
    let sent = server.requests()[0].arrived.json()["messages"].to_string();
    assert!(sent.contains("/shots/dot") && sent.contains(&format!("data:image/gif;base64,{DOT}")), "{sent}");
}

#[test]
fn an_image_that_cannot_be_shown_is_refused() {
    let project = Project::new();
    let server = answers(1);
    let (mut peer, _) = connect(&project, &server, "openai:scripted");
    let session = open(&mut peer, &project);
    let words = json!({ "type": "text", "text": "What is this?" });
    for (mime_type, data, problem) in [
        ("image/gif", DOT, "this model does not accept images"),
        ("image/tiff", DOT, "an image must be a PNG, a JPEG, a GIF or a WebP"),
        ("image/png", "<svg>", "the data of an image is not base64"),
    ] {
        let image = json!({ "type": "image", "mimeType": mime_type, "data": data });
        let answer = send(&mut peer, &session, &json!([words, image]));
        assert_eq!(answer["error"]["message"], problem, "{answer:#}");
    }
    assert!(server.requests().is_empty());
    assert_eq!(prompt(&mut peer, &session, "Without it.")["stopReason"], "end_turn");
}

#[test]
fn the_thought_level_is_the_reasoning_effort_of_the_requests() {
    let project = Project::new();
    let server = answers(3);
    let (mut peer, _) = connect(&project, &server, "openai:scripted");
    let session = open(&mut peer, &project);
    prompt(&mut peer, &session, "One.");
    let mut set = |value: &str| {
        let option =
            json!({ "sessionId": session, "configId": "thought_level", "type": "id", "value": value });
        peer.request("session/set_config_option", option)
    };
    let shown = set("high");
    let options = shown["configOptions"].as_array().unwrap();
    let option = options.iter().find(|option| option["id"] == "thought_level").unwrap();
    assert_eq!((&option["category"], &option["currentValue"]), (&json!("thought_level"), &json!("high")));
    assert_eq!(set("deepest")["error"]["message"], "unknown thought level");
    prompt(&mut peer, &session, "Two.");
    let option =
        json!({ "sessionId": session, "configId": "thought_level", "type": "id", "value": "default" });
    peer.request("session/set_config_option", option);
    prompt(&mut peer, &session, "Three.");
    let efforts: Vec<Value> =
        server.requests().iter().map(|request| request.arrived.json()["reasoning_effort"].clone()).collect();
    assert_eq!(efforts, [Value::Null, json!("high"), Value::Null]);
}

#[test]
fn a_markdown_command_is_offered_and_sent_as_its_text() {
    let project = Project::new()
        .with(
            ".fusee/commands/fix.md",
            "---\ndescription: Fix an issue\n---\nFix issue $ARGUMENTS thoroughly.\n",
        )
        .with(".claude/commands/help.md", "Never reached: the agent has a command of this name.\n");
    let server = answers(1);
    let (mut peer, _) = connect(&project, &server, "openai:scripted");
    let session = open(&mut peer, &project);
    let offered = peer.wait_for("commands", |message| {
        message["params"]["update"]["sessionUpdate"] == "available_commands_update"
    });
    let commands = offered["params"]["update"]["availableCommands"].as_array().unwrap().clone();
    let fix: Vec<&Value> = commands.iter().filter(|command| command["name"] == "fix").collect();
    assert_eq!(fix.len(), 1);
    assert_eq!(fix[0]["description"], "Fix an issue");
    assert_eq!(commands.iter().filter(|command| command["name"] == "help").count(), 1);
    assert_eq!(prompt(&mut peer, &session, "/fix 42")["stopReason"], "end_turn");
    let sent = server.requests()[0].arrived.json()["messages"].to_string();
    assert!(sent.contains("Fix issue 42 thoroughly.") && !sent.contains("/fix 42"), "{sent}");
    updates(&mut peer);
    prompt(&mut peer, &session, "/help");
    assert!(text(&updates(&mut peer), "agent_message_chunk").contains("- `/fix`: Fix an issue"));
    assert_eq!(server.requests().len(), 1);
}
