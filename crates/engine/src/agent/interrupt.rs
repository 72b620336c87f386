//! Interrupting a turn without ending its task: the running work is cancelled, and the user is asked how to
//! continue. The user interface decides which key interrupts, and when a second key ends the entire run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fusee_journal::event::Event;
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{CancellationToken, Message};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::execution::Execution;
use crate::approval::{AFTER_STOP, ASK_USER, UserWait};

/// Reason shown with the question.
const REASON: &str = "the turn was stopped";

/// The question shown to the user.
const QUESTION: &str = "What now? Enter a message for the model, or nothing to continue; ctrl-c ends the run";

/// Stands in for the interrupted reply: user and assistant messages must alternate.
const INTERRUPTED_REPLY: &str = "[stopped by the user before a reply came]";

/// Stops the running turns of a run. All clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct TurnInterrupt(Arc<Mutex<InterruptState>>);

#[derive(Debug, Default)]
struct InterruptState {
    next: u64,
    under_way: BTreeMap<u64, CancellationToken>,
}

impl TurnInterrupt {
    /// Stops all running turns. Returns false if none is running.
    pub fn stop(&self) -> bool {
        let turning = self.0.lock();
        let running = turning.under_way.values().filter(|token| !token.is_cancelled());
        running.inspect(|token| token.cancel()).count() > 0
    }

    /// Registers a task whose turns can be stopped.
    pub(crate) fn begin(&self, task: &CancellationToken) -> InterruptibleTurn {
        let token = task.child_token();
        let mut turning = self.0.lock();
        let number = turning.next;
        turning.next += 1;
        turning.under_way.insert(number, token.clone());
        InterruptibleTurn { stop: self.clone(), number, token }
    }
}

/// Registration of a running task; its turns can be stopped until this is dropped.
#[derive(Debug)]
pub(crate) struct InterruptibleTurn {
    stop: TurnInterrupt,
    number: u64,
    pub(crate) token: CancellationToken,
}

impl Drop for InterruptibleTurn {
    fn drop(&mut self) {
        self.stop.0.lock().under_way.remove(&self.number);
    }
}

/// Handles a stop by the user. Whether it affected only the turn is a step, and so is the user's answer;
/// returns whether the task continues.
pub(crate) async fn resume_after_stop(
    run: &mut Execution<'_>,
    conversation: &mut Conversation<'_>,
) -> Result<bool, RunAborted> {
    // Nothing runs while the user decides, so another signal is meant for the run.
    run.turn = None;
    let task = run.task;
    let call = StepRequest::new(&task.branch, StepKind::Wait, "stopped");
    let turn_only = async move { !task.cancel.is_cancelled() };
    let (turn_only, recorded) = run.engine().step(call, turn_only).await?.split();
    if !turn_only {
        return Ok(false);
    }
    let words = ask_how_to_continue(run, !recorded.replayed).await?;
    run.turn = Some(task.session.turn_stop.begin(&task.cancel));
    let Some(words) = words else { return Ok(false) };
    if !words.trim().is_empty() {
        if let Some(Message::User { .. }) = conversation.history.messages().last() {
            let (text, reasoning, tool_calls) = (INTERRUPTED_REPLY.to_owned(), None, Vec::new());
            conversation.history.push(Message::Assistant { text, reasoning, tool_calls });
        }
        conversation.say(run, words.trim());
    }
    Ok(true)
}

/// Asks the user; `stopped_now` is a stop during this process.
async fn ask_how_to_continue(
    run: &mut Execution<'_>,
    stopped_now: bool,
) -> Result<Option<String>, RunAborted> {
    run.stops += 1;
    let call_id = format!("stopped-{}", run.stops);
    run.emit(Event::ApprovalRequested {
        call_id: call_id.clone(),
        name: ASK_USER.to_owned(),
        arguments: json!({ "question": QUESTION }),
        reason: REASON.to_owned(),
    });
    let wait = UserWait {
        engine: run.engine(),
        branch: &run.task.branch,
        call_id: &call_id,
        limit: Duration::from_secs(run.session().limits.approval_timeout_s),
        cancel: &run.task.cancel,
    };
    let approver = &run.session().approval.approver;
    let ask = async {
        if stopped_now && !approver.has_user() {
            // Whoever stopped the turn from outside answers from there.
            return std::future::pending().await;
        }
        approver.after_stop(QUESTION).await
    };
    let words = wait.text(AFTER_STOP, Value::Null, ask).await?.ok().flatten();
    let reason = match words.as_deref().map(str::trim) {
        None => Some("the run ends".to_owned()),
        Some("") => None,
        Some(words) => Some(words.to_owned()),
    };
    run.emit(Event::ApprovalResolved { call_id, approved: words.is_some(), reason });
    Ok(words)
}

#[cfg(test)]
mod tests;
