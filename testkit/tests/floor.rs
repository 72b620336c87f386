//! The baseline program of the benches sends growing requests and runs the same commands.

use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Server};
use serde_json::{Value, json};

#[test]
fn the_floor_sends_growing_requests_and_runs_the_commands() {
    let project = Project::new();
    let server = Server::start([
        Message::text("First.").and_call_as("c1", "shell", r#"{"command":"echo one | tee -a effects.txt"}"#),
        Message::call("shell", json!({"command": "echo two >> effects.txt"})),
        Message::text("Done."),
    ]);
    let port = server.port().to_string();
    let outcome = project.command(env!("CARGO_BIN_EXE_floor")).args([&port, "3"]).run().exits(0);
    assert_eq!((outcome.stdout.as_str(), project.read("effects.txt").as_str()), ("Done.\n", "one\ntwo\n"));
    let requests = server.requests();
    let messages: Vec<Vec<String>> = requests.iter().map(|request| request.arrived.messages()).collect();
    assert_eq!(messages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4, 6]);
    assert_eq!(messages[2][..4], messages[1]);
    let last: Vec<Value> = messages[1].iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(
        json!(last),
        json!([
            {"role": "system", "content": "xxx"},
            {"role": "user", "content": "Do the work."},
            {"role": "assistant", "content": "First.", "tool_calls": [
                {"index": 0, "id": "c1", "type": "function",
                 "function": {"name": "shell", "arguments": "{\"command\":\"echo one | tee -a effects.txt\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "one\n"},
        ])
    );
    assert_eq!(server.connections(), 1);
}
