//! Files that are open in the editor of an ACP client: what is read, what is changed, and what a killed agent remembers.

use fusee_testkit::peer::Peer;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::acp::{begin, open, prompt, text, updates};
use crate::support::fusee;

/// A client that offers the text of files as its editor has it.
fn connect(project: &Project, model: &str) -> Peer {
    let mut peer = Peer::connect(fusee(project).args(["acp", "--model", model, "--sandbox", "off"]));
    let files = json!({ "fs": { "readTextFile": true, "writeTextFile": false } });
    peer.request("initialize", json!({ "protocolVersion": 1, "clientCapabilities": files }));
    peer
}

/// Answers the next request for a file and returns the path that was asked for.
fn show(peer: &mut Peer, text: &str) -> String {
    let request = peer.method("fs/read_text_file");
    peer.answer(&request, json!({ "content": text }));
    request["params"]["path"].as_str().unwrap().to_owned()
}

/// The results of tool calls, as text.
fn results(peer: &mut Peer) -> Vec<String> {
    let ended =
        |update: &Value| update["sessionUpdate"] == "tool_call_update" && update["status"].is_string();
    let updates = updates(peer).into_iter().filter(ended);
    updates
        .map(|update| update["content"][0]["content"]["text"].as_str().unwrap_or("a diff").to_owned())
        .collect()
}

fn absolute(project: &Project, name: &str) -> String {
    project.dir().join(name).display().to_string()
}

#[test]
fn unsaved_text_is_read_and_its_file_is_not_changed_until_it_is_saved() {
    let project = Project::new().with("a.txt", "one\n");
    let edit = || Line::call("edit_file", json!({ "path": "a.txt", "old": "two", "new": "three" }));
    let model = project.script(&[
        Line::call("read_file", json!({ "path": "a.txt" })),
        edit(),
        Line::text("Please save it."),
        Line::call("read_file", json!({ "path": "a.txt" })),
        edit(),
        Line::text("Done."),
    ]);
    let mut peer = connect(&project, &model);
    let session = open(&mut peer, &project);
    let turn = begin(&mut peer, &session, "Change two to three.");
    assert_eq!(show(&mut peer, "two\n"), absolute(&project, "a.txt"));
    assert_eq!(show(&mut peer, "two\n"), absolute(&project, "a.txt"));
    assert_eq!(peer.response(turn)["stopReason"], "end_turn");
    assert_eq!(
        results(&mut peer),
        [
            "`a.txt` has unsaved changes in the user's editor. This is the text there:\n1\ttwo\n",
            "`a.txt` has unsaved changes in the user's editor and was not changed. Ask the user to save or discard them.",
        ]
    );
    assert_eq!(project.read("a.txt"), "one\n");
    // The user saves it.
    std::fs::write(project.dir().join("a.txt"), "two\n").unwrap();
    let turn = begin(&mut peer, &session, "I have saved it.");
    show(&mut peer, "two");
    show(&mut peer, "two");
    assert_eq!(peer.response(turn)["stopReason"], "end_turn");
    assert_eq!(results(&mut peer), ["1\ttwo\n", "a diff"]);
    assert_eq!(project.read("a.txt"), "three\n");
    peer.close().exits(0);
}

#[test]
fn a_patch_and_a_whole_file_do_not_overwrite_unsaved_text_either() {
    let project = Project::new().with("a.txt", "one\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch";
    let model = project.script(&[
        Line::call("read_file", json!({ "path": "a.txt" })),
        Line::call("apply_patch", json!({ "patch": patch })),
        Line::call("write_file", json!({ "path": "a.txt", "content": "two\n" })),
        Line::text("Please save it."),
    ]);
    let mut peer = connect(&project, &model);
    let session = open(&mut peer, &project);
    let turn = begin(&mut peer, &session, "Change it.");
    for text in ["one\n", "mine\n", "mine\n"] {
        show(&mut peer, text);
    }
    assert_eq!(peer.response(turn)["stopReason"], "end_turn");
    let results = results(&mut peer);
    assert!(results[1..].iter().all(|text| text.contains("was not changed")), "{results:?}");
    assert_eq!(project.read("a.txt"), "one\n");
    peer.close().exits(0);
}

#[test]
fn a_client_that_refuses_or_offers_no_files_is_not_needed() {
    let project = Project::new().with("a.txt", "one\n");
    let model = project.script(&[
        Line::call("read_file", json!({ "path": "a.txt" })),
        Line::text("Done."),
        Line::text("Done."),
    ]);
    let mut peer = connect(&project, &model);
    let session = open(&mut peer, &project);
    let turn = begin(&mut peer, &session, "Read it.");
    let request = peer.method("fs/read_text_file");
    let error = json!({ "code": -32002, "message": "Resource not found" });
    peer.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
    assert_eq!(peer.response(turn)["stopReason"], "end_turn");
    assert_eq!(results(&mut peer), ["1\tone\n"]);
    peer.close().exits(0);

    let model = project.script(&[Line::call("read_file", json!({ "path": "a.txt" })), Line::text("Done.")]);
    let mut without = crate::acp::connect(&project, &model, &[]);
    let session = open(&mut without, &project);
    assert_eq!(prompt(&mut without, &session, "Read it.")["stopReason"], "end_turn");
    assert!(without.take_all(|message| message["method"] == "fs/read_text_file").is_empty());
    without.close().exits(0);
}

#[test]
fn a_client_that_does_not_answer_delays_one_read_and_is_not_asked_again() {
    let project = Project::new().with("a.txt", "one\n").with("b.txt", "two\n");
    let model = project.script(&[
        Line::call("read_file", json!({ "path": "a.txt" })),
        Line::call("read_file", json!({ "path": "b.txt" })),
        Line::text("Done."),
    ]);
    let mut peer = connect(&project, &model);
    let session = open(&mut peer, &project);
    assert_eq!(prompt(&mut peer, &session, "Read them.")["stopReason"], "end_turn");
    assert_eq!(results(&mut peer), ["1\tone\n", "1\ttwo\n"]);
    assert_eq!(peer.take_all(|message| message["method"] == "fs/read_text_file").len(), 1);
    peer.close().exits(0);
}

#[test]
fn what_the_editor_showed_is_journaled() {
    let project = Project::new().with("a.txt", "one\n");
    let model = project.script(&[
        Line::call("read_file", json!({ "path": "a.txt" })),
        Line::call("shell", json!({ "command": "touch started; while [ ! -e go ]; do sleep 0.05; done" })),
        Line::text("Done."),
        Line::text("Yes."),
    ]);
    let mut peer = connect(&project, &model);
    let session = open(&mut peer, &project);
    begin(&mut peer, &session, "Read it.");
    show(&mut peer, "unsaved\n");
    while !project.dir().join("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    peer.kill();
    project.write("go", "");

    let mut next = connect(&project, &model);
    let load = json!({ "sessionId": session, "cwd": project.dir(), "mcpServers": [] });
    next.request("session/load", load);
    assert_eq!(prompt(&mut next, &session, "Are you done?")["stopReason"], "end_turn");
    let seen = updates(&mut next);
    assert_eq!(text(&seen, "agent_message_chunk"), "Done.Yes.");
    assert!(seen.iter().any(|update| update.to_string().contains("This is the text there:\\n1\\tunsaved")));
    assert!(next.take_all(|message| message["method"] == "fs/read_text_file").is_empty());
    next.close().exits(0);
}
