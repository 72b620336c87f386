//! Compaction summary written by the model, if configured: one request outside the conversation, recorded as
//! a step so that it is never sent twice. If it fails in any way, the rule-based summary is kept.

use fusee_journal::event::Event;
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{Message, Reply, StopReason};
use serde_json::json;

use crate::agent::conversation::Conversation;
use crate::agent::conversation::compaction::{Compacted, summary_in_words};
use crate::agent::execution::Execution;
use crate::agent::model_request::attempt::{Attempt, AttemptResult, within};

/// Argument name that marks the step; no other model request uses it.
pub(crate) const ARGUMENT: &str = "summarise";

const SYSTEM: &str = "You summarise the beginning of a task for the assistant that goes on with it and will no longer see \
                      it. Write short lines, one fact a line: what was found out, what was decided and why, what was \
                      changed, what was tried and failed, what is still to be done. Name files, functions and commands \
                      exactly. Invent nothing. Call no tool.";

/// Maximum bytes shown of one message, counted from the end, which is the most informative part of a long
/// output.
const MESSAGE_BYTES: usize = 4_000;

/// Divisor of the context size that the material may fill.
const MATERIAL_SHARE: usize = 2;

/// Replaces the rule-based summary of a compaction to `max_tokens` with one written by the model.
pub(crate) async fn summarise(
    run: &mut Execution<'_>,
    conversation: &Conversation<'_>,
    max_tokens: u64,
    compacted: &mut Compacted,
) -> Result<(), RunAborted> {
    let Some(summary) = compacted.summary.clone() else { return Ok(()) };
    let by_rule = compacted.messages.get(summary.at).map(Message::text).unwrap_or_default().to_owned();
    let left = &conversation.history.messages()[summary.turns];
    let room = conversation.usage.bytes(max_tokens) / MATERIAL_SHARE;
    let request = format!("{}\n\nAn index of it, made by rule:\n{by_rule}", material(left, room));
    match ask_for_summary(run, conversation, request).await? {
        Ok(text) => {
            let words = summary_in_words(&text, summary.bytes);
            if let (Some(text), Some(message)) = (words, compacted.messages.get_mut(summary.at)) {
                *message = Message::user(text);
            }
        }
        Err(why) => run.emit(Event::Warning {
            code: "compaction_summary".to_owned(),
            message: format!(
                "the model did not write the compaction summary ({why}); used the rule-based summary instead"
            ),
        }),
    }
    Ok(())
}

/// Requests the summary. The inner error says why there is none.
async fn ask_for_summary(
    run: &mut Execution<'_>,
    conversation: &Conversation<'_>,
    request: String,
) -> Result<Result<String, String>, RunAborted> {
    let (session, asked_bytes) = (run.session(), SYSTEM.len() + request.len());
    let call = StepRequest::new(&run.task.branch, StepKind::Model, session.model.name())
        .with_args(json!({ ARGUMENT: request }));
    let (cancel, left_ms) = (run.cancel().clone(), run.left_ms());
    let body = async move {
        let mut alone =
            fusee_model::Conversation::new(session.model.dialect(), SYSTEM.to_owned(), Vec::new());
        alone.push(Message::user(request));
        let mut unseen = |_: fusee_model::ReplyDelta<'_>| {};
        let reply = session.model.send(&alone, &session.options, &mut unseen, &cancel);
        Attempt::new(within(left_ms, reply).await)
    };
    let (attempt, recorded) = run.engine().step::<Attempt>(call, body).await?.split();
    run.record_attempt(&attempt.result, &recorded);
    Ok(match attempt.result {
        AttemptResult::Reply(reply) => {
            run.charge(&reply, conversation.usage.estimate_request(asked_bytes, reply.text.len()));
            usable(reply)
        }
        AttemptResult::Error { error, .. } => Err(error.message),
        AttemptResult::OutOfTime(_) => Err("out of time".to_owned()),
    })
}

fn usable(reply: Reply) -> Result<String, String> {
    match reply.stop {
        StopReason::Refusal => Err("it refused".to_owned()),
        StopReason::Length => Err("its reply was cut off".to_owned()),
        _ if !reply.tool_calls.is_empty() => Err("it called a tool instead".to_owned()),
        _ if reply.text.trim().is_empty() => Err("its reply was empty".to_owned()),
        _ => Ok(reply.text),
    }
}

/// The removed messages as text of at most `room` bytes: the newest that fit, and the number of the others.
fn material(messages: &[Message], room: usize) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut left = room;
    for message in messages.iter().rev() {
        let text = one(message);
        let Some(rest) = left.checked_sub(text.len()) else { break };
        left = rest;
        shown.push(text);
    }
    let skipped = messages.len() - shown.len();
    if skipped > 0 {
        shown.push(format!("[{skipped} earlier messages]"));
    }
    shown.reverse();
    shown.join("\n\n")
}

fn one(message: &Message) -> String {
    match message {
        Message::User { text, .. } => format!("user: {}", end(text)),
        Message::Assistant { text, tool_calls, .. } => {
            let calls =
                tool_calls.iter().map(|call| format!("\ncall {}: {}", call.name, end(&call.arguments)));
            format!("assistant: {}{}", end(text), calls.collect::<String>())
        }
        Message::Tool { name, content, .. } => format!("result of {name}: {}", end(content)),
    }
}

fn end(text: &str) -> String {
    let mut from = text.len().saturating_sub(MESSAGE_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    if from == 0 { text.to_owned() } else { format!("[…]{}", &text[from..]) }
}

#[cfg(test)]
mod tests;
