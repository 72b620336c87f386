//! Splits a conversation into turns and pairs every result with its call. [`super::prune`] and
//! [`super::rule_summary`] work on these; [`super::call_effect`] classifies the calls.

use std::collections::HashMap;
use std::ops::Range;

use fusee_model::{Message, ToolCall};

use super::{CompactionRetention, rule_summary};

/// One reply with its results and the user messages before it.
pub(super) struct ReplyTurn {
    /// Range of its messages. Turns are contiguous.
    pub messages: Range<usize>,
    /// Index of the reply; `None` if it is still to come.
    pub reply: Option<usize>,
}

/// A call and its result.
pub(super) struct CallExchange<'a> {
    pub turn: usize,
    /// Index of the result.
    pub at: usize,
    pub call: &'a ToolCall,
    /// Tool name from the result: the engine's name, where the model may have used an alias.
    pub name: &'a str,
    pub content: &'a str,
    pub ok: bool,
    /// Number of images in the result.
    pub images: usize,
}

/// Structure of a conversation.
pub(super) struct ConversationOutline<'a> {
    pub turns: Vec<ReplyTurn>,
    pub exchanges: Vec<CallExchange<'a>>,
    /// For each message, whether it states the goal.
    pub goal: Vec<bool>,
    /// Number of goal messages at the start of the conversation.
    pub opening: usize,
}

impl<'a> ConversationOutline<'a> {
    pub(super) fn new(messages: &'a [Message], keep: &CompactionRetention<'_>) -> Self {
        let goal = goal(messages, keep);
        let opening = goal.iter().take_while(|stated| **stated).count();
        let turns = turns(messages);
        let mut exchanges = Vec::new();
        for (index, turn) in turns.iter().enumerate() {
            pair(messages, index, turn, &mut exchanges);
        }
        ConversationOutline { turns, exchanges, goal, opening }
    }

    /// Index of the first of the newest turns that together cost at most `budget`. The last finished turn and
    /// everything after it are included regardless of cost.
    pub(super) fn window(&self, costs: &[u64], budget: u64) -> usize {
        let newest = self.turns.iter().rposition(|turn| turn.reply.is_some()).unwrap_or(0);
        let cost = |turn: &ReplyTurn| -> u64 {
            turn.messages.clone().filter(|at| !self.goal[*at]).map(|at| costs[at]).sum()
        };
        let mut spent: u64 = self.turns[newest..].iter().map(cost).sum();
        let mut first = newest;
        for turn in self.turns[..newest].iter().rev() {
            spent += cost(turn);
            if spent > budget {
                break;
            }
            first -= 1;
        }
        first
    }
}

/// Marks the goal messages. An earlier summary is a user message but never part of the goal.
fn goal(messages: &[Message], keep: &CompactionRetention<'_>) -> Vec<bool> {
    let mut left = keep.first_user_messages;
    let states_goal = |message: &Message| match message {
        Message::User { text, .. } if keep.request == Some(text) => true,
        Message::User { text, .. } if left > 0 && !rule_summary::is_summary(text) => {
            left -= 1;
            true
        }
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => false,
    };
    messages.iter().map(states_goal).collect()
}

fn turns(messages: &[Message]) -> Vec<ReplyTurn> {
    let mut turns: Vec<ReplyTurn> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let reply = match message {
            Message::Assistant { .. } => Some(at),
            Message::User { .. } | Message::Tool { .. } => None,
        };
        match turns.last_mut() {
            Some(turn) if turn.reply.is_none() || matches!(message, Message::Tool { .. }) => {
                turn.messages.end = at + 1;
                turn.reply = turn.reply.or(reply);
            }
            _ => turns.push(ReplyTurn { messages: at..at + 1, reply }),
        }
    }
    turns
}

/// Pairs each result with its call. Only calls of the same turn are considered, because some servers restart
/// their ids from zero in every reply.
fn pair<'a>(
    messages: &'a [Message],
    turn_index: usize,
    turn: &ReplyTurn,
    exchanges: &mut Vec<CallExchange<'a>>,
) {
    let Some(reply) = turn.reply else { return };
    let Message::Assistant { tool_calls, .. } = &messages[reply] else { return };
    // Results mostly come in the order of their calls; the index is built only if they do not.
    let mut expected = 0;
    let mut by_id = None;
    let results = reply + 1..turn.messages.end;
    for (at, result) in results.clone().zip(&messages[results]) {
        let Message::Tool { call_id, name, content, ok, images } = result else { continue };
        let call = match tool_calls.get(expected).filter(|call| call.id == *call_id) {
            Some(call) => call,
            None => {
                let by_id = by_id.get_or_insert_with(|| index(tool_calls));
                let Some(position) = by_id.get(call_id.as_str()) else { continue };
                expected = *position;
                &tool_calls[expected]
            }
        };
        expected += 1;
        exchanges.push(CallExchange {
            turn: turn_index,
            at,
            call,
            name,
            content,
            ok: *ok,
            images: images.len(),
        });
    }
}

fn index(calls: &[ToolCall]) -> HashMap<&str, usize> {
    calls.iter().enumerate().map(|(position, call)| (call.id.as_str(), position)).collect()
}
