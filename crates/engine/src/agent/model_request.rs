//! Model requests: sends one as a step, records the result, and waits before a retry. `machine.rs` decides when
//! to send and whether to retry.

pub(crate) mod attempt;
pub(crate) mod grammar_constraints;
pub(crate) mod model_summary;
mod reply_watch;

use std::time::Duration;

use fusee_journal::event::{Event, Role};
use fusee_journal::{RunAborted, StepKind, StepMeta, StepRequest};
use fusee_model::{ErrorKind, Message, ModelError, Reply, RequestOptions, Usage};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::conversation::Conversation;
use super::conversation::external_changes::preface;
use super::conversation::known_files::KnownFiles;
use super::execution::Execution;
use super::limits::Limits;
use super::machine::TurnEvent;
use attempt::{Attempt, AttemptResult, AttemptState, Outage, ServerLoading, send};
use reply_watch::ReplyWatch;

/// What the model is asked with in one turn; all attempts of the turn share it.
pub(crate) struct TurnRequest {
    /// Counts from 1.
    pub(crate) attempt: u32,
    /// Number of replies before this one.
    pub(crate) turn_index: u32,
    pub(crate) options: RequestOptions,
    /// Temporary text after the last message.
    pub(crate) tail: Option<String>,
}

/// Sends the conversation and processes the result. `outage` is how long the server has not answered.
pub(crate) async fn ask(
    run: &mut Execution<'_>,
    conversation: &mut Conversation<'_>,
    files: &mut KnownFiles,
    outage: &mut Outage,
    turn: TurnRequest,
) -> Result<TurnEvent, RunAborted> {
    let TurnRequest { attempt, turn_index, .. } = turn;
    let tokens = conversation.tokens();
    if run.meter.start_turn() {
        conversation.report_moves(run, turn_index, tokens);
        let turn_id = run.task.turn_id(turn_index);
        let limits = run.limits();
        run.emit(Event::TurnStart {
            turn_index,
            turn_id,
            input_tokens: tokens,
            max_turns: Some(limits.max_turns),
            max_input_tokens: Some(conversation.max_tokens(limits.max_tokens)),
        });
    }
    run.meter.observe_context(tokens);
    let began_ms = run.meter.spent.active_ms;
    let (sent, recorded) = send_step(run, conversation, files, *outage, turn).await?;
    run.record_attempt(&sent.result, &recorded);
    files.reported.extend(sent.reported);
    if let Some(preface) = sent.preface {
        run.emit(Event::Message { role: Role::User, text: preface.clone() });
        // Sending has already added it to the conversation.
        if recorded.replayed {
            conversation.history.push(Message::user(preface));
        }
    }
    conversation.mark_sent();
    Ok(match sent.result {
        AttemptResult::Reply(mut reply) => {
            run.call_ids.rename_repeated(&mut reply);
            if std::mem::take(outage).loading.is_some() {
                conversation.forget_context_probe();
            }
            take_reply(run, conversation, turn_index, &reply, sent.wait_ms);
            TurnEvent::Replied(reply)
        }
        AttemptResult::Error { error, after_ms } => {
            outage.since_ms.get_or_insert(began_ms);
            let attempt = count_loading(run, &mut outage.loading, &error, began_ms).unwrap_or(attempt);
            if let Some(after_ms) = after_ms {
                run.emit(Event::Retry { attempt, after_ms, reason: error.message.clone() });
            }
            TurnEvent::Failed { error, after_ms }
        }
        AttemptResult::OutOfTime(_) => TurnEvent::OutOfTime,
    })
}

/// Records that the server is loading its model, with one warning. Returns how many times it has been loading
/// so far.
fn count_loading(
    run: &Execution<'_>,
    loading: &mut Option<ServerLoading>,
    error: &ModelError,
    began_ms: u64,
) -> Option<u32> {
    if error.kind != ErrorKind::Loading {
        return None;
    }
    if loading.is_none() {
        let (limit, setting) = match run.limits() {
            Limits { patience_s: Some(limit), .. } => (limit, "patience_s"),
            limits => (limits.loading_timeout_s, "loading_timeout_s"),
        };
        let message =
            format!("the server is still loading its model; retrying for up to {limit} s (`{setting}`)");
        run.emit(Event::Warning { code: "model_loading".to_owned(), message });
    }
    let loading = loading.get_or_insert(ServerLoading { since_ms: began_ms, tries: 0 });
    loading.tries += 1;
    Some(loading.tries)
}

async fn send_step(
    run: &Execution<'_>,
    conversation: &mut Conversation<'_>,
    files: &KnownFiles,
    outage: Outage,
    turn: TurnRequest,
) -> Result<(Attempt, StepMeta), RunAborted> {
    let (task, session) = (run.task, run.session());
    let TurnRequest { attempt, options, tail, .. } = turn;
    let call = StepRequest::new(&task.branch, StepKind::Model, session.model.name())
        .with_args(conversation.request_args(tail.as_deref()));
    let (began_ms, left_ms) = (run.meter.spent.active_ms, run.left_ms());
    let state = AttemptState { attempt, began_ms, left_ms, outage, limits: run.limits() };
    let watch = ReplyWatch::new(run, conversation, files);
    let history = &mut conversation.history;
    let body = async move {
        let preface = preface(session, &files.seen, &files.reported, history);
        let lent = tail.map(|words| history.with_temporary_tail(&words));
        let (result, wait_ms) = send(task, history.request(), &options, state, watch).await;
        if let Some(lent) = lent {
            history.take_back(lent);
        }
        let (preface, reported) = preface.map(|preface| (preface.text, preface.reported)).unzip();
        Attempt { preface, reported: reported.unwrap_or_default(), wait_ms, result }
    };
    Ok(run.engine().step(call, body).await?.split())
}

fn take_reply(
    run: &mut Execution<'_>,
    conversation: &mut Conversation<'_>,
    turn_index: u32,
    reply: &Reply,
    wait_ms: Option<u64>,
) {
    if let Some(reasoning) = reply.reasoning.as_ref().filter(|reasoning| !reasoning.text.is_empty()) {
        run.emit(Event::Reasoning { text: reasoning.text.clone() });
    }
    if !reply.text.is_empty() {
        run.emit(Event::Message { role: Role::Assistant, text: reply.text.clone() });
    }
    let estimated = conversation.add_reply(reply);
    let tokens = conversation.tokens();
    run.meter.count_reply(reply, estimated, wait_ms);
    run.meter.observe_context(tokens);
    let input_tokens = tokens.saturating_sub(estimated);
    run.charge(reply, Usage { input_tokens, output_tokens: estimated, ..Usage::default() });
    run.report_progress(turn_index + 1);
}

/// Waits before a retry, as a step: after a crash the retry is not sent earlier than the delay allows.
pub(crate) async fn wait(run: &mut Execution<'_>, after_ms: u64) -> Result<TurnEvent, RunAborted> {
    let call = StepRequest::new(&run.task.branch, StepKind::Wait, "retry")
        .with_args(json!({ "after_ms": after_ms }));
    let cancel = run.cancel();
    // Waiting past the task's deadline is pointless.
    let pause = Duration::from_millis(after_ms.min(run.left_ms().unwrap_or(u64::MAX)));
    let body = async move {
        let slept = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
        RetryWait { cancelled: slept.is_none() }
    };
    let recorded = run.engine().step(call, body).await?;
    run.meter.record(&recorded);
    Ok(if recorded.value.cancelled { TurnEvent::Stopped } else { TurnEvent::Waited })
}

/// Result of waiting before a retry, as stored in the journal.
#[derive(Deserialize, Serialize)]
pub(crate) struct RetryWait {
    pub(crate) cancelled: bool,
}

/// Converts a reply to a conversation message. Servers reject empty assistant messages, and some reject two
/// consecutive user messages.
pub(crate) fn to_message(reply: &Reply) -> Message {
    let mut reply = reply.clone();
    if reply.text.trim().is_empty() && reply.tool_calls.is_empty() {
        reply.text = "[nothing]".to_owned();
    }
    reply.into_message()
}
