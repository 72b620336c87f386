//! Excerpt of a conversation for a task whose request asks for it (`history_config`).
//!
//! The conversation is that of the requesting task or, for a run's main task, the one that the run continues.
//! If there is none, nothing is shown, and the notes say so.

use fusee_model::Message;

use super::request::{ContextPart, HistoryConfig};

/// Maximum length of the excerpt in characters; older turns are left out.
const MAX_LENGTH: usize = 40_000;

/// Maximum length of one message in characters: the beginning of a long output shows what it was.
const MESSAGE: usize = 4_000;

/// Returns the excerpt and its number of turns; `None` if the request does not ask for history.
pub(crate) fn part(
    messages: &[Message],
    config: Option<&HistoryConfig>,
) -> Option<(Option<ContextPart>, usize)> {
    let config = config.filter(|config| config.use_session_history)?;
    let most = config.history_turns_to_include.map_or(usize::MAX, |most| most as usize);
    let turns = turns(messages);
    let (mut shown, mut left) = (Vec::new(), MAX_LENGTH);
    for turn in turns.iter().rev().take(most) {
        let text = turn.iter().map(one).collect::<Vec<_>>().join("\n\n");
        let Some(rest) = left.checked_sub(text.chars().count()) else { break };
        left = rest;
        shown.push(text);
    }
    let count = shown.len();
    if count < turns.len() && count > 0 {
        shown.push("[what was said before is left out]".to_owned());
    }
    shown.reverse();
    let source = "the conversation so far".to_owned();
    Some(((count > 0).then(|| ContextPart { source, text: shown.join("\n\n") }), count))
}

/// Splits a conversation into turns: a reply with the messages before it and the results of its calls.
fn turns(messages: &[Message]) -> Vec<&[Message]> {
    let (mut turns, mut start, mut replied) = (Vec::new(), 0, false);
    for (at, message) in messages.iter().enumerate() {
        let begins = match message {
            Message::User { .. } | Message::Assistant { .. } => replied,
            Message::Tool { .. } => false,
        };
        if begins {
            turns.push(&messages[start..at]);
            (start, replied) = (at, false);
        }
        replied |= matches!(message, Message::Assistant { .. });
    }
    turns.extend((start < messages.len()).then(|| &messages[start..]));
    turns
}

fn one(message: &Message) -> String {
    match message {
        Message::User { text, .. } => format!("user: {}", cut(text)),
        Message::Assistant { text, tool_calls, .. } => {
            let calls =
                tool_calls.iter().map(|call| format!("\ncall {}: {}", call.name, cut(&call.arguments)));
            format!("assistant: {}{}", cut(text), calls.collect::<String>())
        }
        Message::Tool { name, content, .. } => format!("result of {name}: {}", cut(content)),
    }
}

fn cut(text: &str) -> String {
    match text.trim().char_indices().nth(MESSAGE) {
        Some((at, _)) => format!("{}[…]", &text.trim()[..at]),
        None => text.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests;
