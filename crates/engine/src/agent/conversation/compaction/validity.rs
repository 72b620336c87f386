//! Checks whether a conversation can be sent to a model. Used by the tests of everything that rewrites one.

use std::collections::HashSet;

use fusee_model::Message;

/// Validates a conversation: it begins with the user, every call has exactly one result right after its
/// reply, no result lacks its call, and no reply is empty or directly follows another.
pub(crate) fn legal(messages: &[Message]) -> Result<(), String> {
    if !matches!(messages.first(), Some(Message::User { .. })) {
        return Err("does not begin with a user message".to_owned());
    }
    let mut open: HashSet<&str> = HashSet::new();
    let mut replied_without_calls = false;
    for (at, message) in messages.iter().enumerate() {
        if let Message::Tool { call_id, .. } = message {
            if !open.remove(call_id.as_str()) {
                return Err(format!("message {at}: a result of `{call_id}`, which is not an open call"));
            }
            continue;
        }
        if let Some(id) = open.iter().next() {
            return Err(format!("message {at}: the call `{id}` before it has no result"));
        }
        let Message::Assistant { text, tool_calls, .. } = message else {
            replied_without_calls = false;
            continue;
        };
        if replied_without_calls {
            return Err(format!("message {at}: a second reply in a row"));
        }
        if text.is_empty() && tool_calls.is_empty() {
            return Err(format!("message {at}: a reply that says nothing"));
        }
        for call in tool_calls {
            if !open.insert(&call.id) {
                return Err(format!("message {at}: two calls with the id `{}`", call.id));
            }
        }
        replied_without_calls = tool_calls.is_empty();
    }
    match open.iter().next() {
        Some(id) => Err(format!("the call `{id}` at the end has no result")),
        None => Ok(()),
    }
}
