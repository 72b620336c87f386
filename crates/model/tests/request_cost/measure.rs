//! Counts the allocations of one turn's request: adding the reply and its result to a conversation and
//! building the body. The counts are the same on every machine. The test next to this checks a bound;
//! `examples/request_cost.rs` reports them to `cargo xtask bench`.

use std::ops::Range;

use fusee_model::{Conversation, Message, RequestOptions, ToolCall, ToolSpec, Wire};
use serde_json::json;

/// Allocations of one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Number of allocations.
    pub(crate) allocations: u64,
    /// Allocated bytes, including those freed immediately. Copies into new memory are included.
    pub(crate) bytes: u64,
    /// Bytes that the turn adds to the conversation.
    pub(crate) own: usize,
    /// Size of the entire body in bytes.
    pub(crate) body: usize,
}

/// Measures these turns of one conversation.
pub(crate) fn requests(wire: Wire, turns: Range<usize>) -> Vec<Cost> {
    let tool = ToolSpec {
        name: "shell".into(),
        description: "Runs a command.".into(),
        parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    };
    let mut conversation = Conversation::new(wire, "You are careful. ".repeat(200), vec![tool]);
    conversation.push(Message::user("Do the work."));
    for turn in 1..turns.start {
        turn_of(turn).into_iter().for_each(|message| conversation.push(message));
    }
    let options = RequestOptions { model: "m".into(), ..RequestOptions::default() };
    let cost = |turn: usize| {
        let [reply, result] = turn_of(turn);
        let before = conversation.encoded_len();
        let mut body = 0;
        let counted = allocation_counter::measure(|| {
            conversation.push(reply);
            conversation.push(result);
            body = conversation.body(&options).len();
        });
        let own = conversation.encoded_len() - before;
        Cost { allocations: counted.count_total, bytes: counted.bytes_total, own, body }
    };
    turns.map(cost).collect()
}

/// A reply with a call, and 4 kB of output.
fn turn_of(turn: usize) -> [Message; 2] {
    let arguments = json!({ "command": format!("make step-{turn}") }).to_string();
    let call = ToolCall { id: format!("call_{turn:04}"), name: "shell".into(), arguments };
    let content = format!("step {turn}: all is well, and \"quoted\"\n").repeat(100);
    [
        Message::Assistant { text: "Next.".into(), reasoning: None, tool_calls: vec![call.clone()] },
        Message::Tool { call_id: call.id, name: call.name, content, ok: true, images: Vec::new() },
    ]
}
