//! Checks whether a conversation can be sent to a model: one that a program brings, and in the tests those that
//! were rewritten.

use std::collections::HashSet;

use fusee_model::Message;

/// Validates a conversation: it begins with the user, every call has exactly one result right after its
/// reply, no result lacks its call, and no reply is empty or directly follows another.
pub(crate) fn check_conversation(messages: &[Message]) -> Result<(), String> {
    if !matches!(messages.first(), Some(Message::User { .. })) {
        return Err("the first message is not the user's".to_owned());
    }
    let mut open: HashSet<&str> = HashSet::new();
    let mut replied_without_calls = false;
    for (at, message) in messages.iter().enumerate() {
        if let Message::Tool { call_id, .. } = message {
            if !open.remove(call_id.as_str()) {
                return Err(format!("message {at} is a result of `{call_id}`, which is not an open call"));
            }
            continue;
        }
        if let Some(id) = open.iter().next() {
            return Err(format!("the call `{id}` before message {at} has no result"));
        }
        let Message::Assistant { text, tool_calls, .. } = message else {
            replied_without_calls = false;
            continue;
        };
        if replied_without_calls {
            return Err(format!("message {at} is a second reply in a row"));
        }
        if text.is_empty() && tool_calls.is_empty() {
            return Err(format!("message {at} is an empty reply"));
        }
        for call in tool_calls {
            if !open.insert(&call.id) {
                return Err(format!("message {at} has two calls with the id `{}`", call.id));
            }
        }
        replied_without_calls = tool_calls.is_empty();
    }
    match open.iter().next() {
        Some(id) => Err(format!("the call `{id}` at the end has no result")),
        None => Ok(()),
    }
}
