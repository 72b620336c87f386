//! Replies of servers that use an id more than once.

use super::*;

fn reply(ids: &[&str]) -> Reply {
    let call =
        |id: &&str| ToolCall { id: (*id).to_owned(), name: "shell".to_owned(), arguments: "{}".to_owned() };
    Reply { tool_calls: ids.iter().map(call).collect(), ..Reply::default() }
}

fn renamed(ids: &mut CallIds, given: &[&str]) -> Vec<String> {
    let mut reply = reply(given);
    ids.rename_repeated(&mut reply);
    reply.tool_calls.into_iter().map(|call| call.id).collect()
}

#[test]
fn an_id_of_an_earlier_call_is_replaced_and_others_are_kept() {
    let mut ids = CallIds::default();
    assert_eq!(renamed(&mut ids, &["call0", "call1"]), ["call0", "call1"]);
    assert_eq!(renamed(&mut ids, &["call0", "x"]), ["call_2", "x"]);
    // The new ids are taken as well.
    assert_eq!(renamed(&mut ids, &["call_2", "call0"]), ["call_4", "call_5"]);
}

#[test]
fn ids_of_an_earlier_conversation_are_taken() {
    let earlier =
        Message::Assistant { text: String::new(), reasoning: None, tool_calls: reply(&["a"]).tool_calls };
    assert_eq!(
        renamed(&mut CallIds::from_messages(&[Message::user("x"), earlier]), &["a", "b"]),
        ["call_1", "b"]
    );
}
