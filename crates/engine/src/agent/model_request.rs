//! Model requests: sends one as a step, records the result, and waits before a retry. `turns.rs` decides when
//! to send and whether to retry.

pub(crate) mod attempt;
pub(crate) mod grammar_constraints;
pub(crate) mod model_summary;

use std::time::Duration;

use fusee_journal::event::{Event, Role};
use fusee_journal::{RunAborted, StepKind, StepMeta, StepRequest};
use fusee_model::{ErrorKind, Message, ModelError, Reply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::machine::{LimitUsage, TurnEvent};
use super::runner::{CurrentTurn, TaskRunner};
use crate::agent::conversation::external_changes::preface;
use crate::agent::flow::Phases;
use crate::agent::model_request::attempt::{Attempt, AttemptResult, AttemptState, ServerLoading, send};

impl TaskRunner<'_> {
    /// Records a request, whether sent or replayed. A scripted model must know which of its lines were used.
    pub(crate) fn record_attempt(&mut self, result: &AttemptResult, recorded: &StepMeta) {
        self.passed(recorded);
        self.model_ms += recorded.duration_ms;
        if recorded.replayed {
            result.notify(&*self.session().model);
        }
    }

    /// Sends the conversation and processes the result.
    pub(crate) async fn ask(&mut self, attempt: u32, gauge: LimitUsage) -> Result<TurnEvent, RunAborted> {
        let turn_index = self.turns.turn_index();
        if !self.turn.open {
            self.turn = CurrentTurn { began_ms: self.active_ms, open: true, ..CurrentTurn::default() };
            self.report_transitions(gauge);
            let turn_id = self.turn_id(turn_index);
            self.emit(Event::TurnStart { turn_index, turn_id, input_tokens: gauge.tokens });
        }
        let call = StepRequest::new(&self.task.branch, StepKind::Model, self.session().model.name())
            .with_args(self.request_args());
        self.peak_context_tokens = self.peak_context_tokens.max(gauge.tokens);
        let began_ms = self.active_ms;
        let (attempt_now, recorded) = self.attempt(call, attempt).await?;
        self.record_attempt(&attempt_now.result, &recorded);
        self.told.extend(attempt_now.told);
        if let Some(preface) = attempt_now.preface {
            self.emit(Event::Message { role: Role::User, text: preface.clone() });
            // Sending has already added it to the conversation.
            if recorded.replayed {
                self.conversation.push(Message::User { text: preface });
            }
        }
        self.sent = self.conversation.messages().len();
        Ok(match attempt_now.result {
            AttemptResult::Reply(reply) => {
                if self.loading.take().is_some() {
                    // A loading server could not report its context size; query it again.
                    self.context_asked = self.context_tokens.is_some();
                }
                self.reply(reply)
            }
            AttemptResult::Error { error, after_ms } => {
                let attempt = self.loads(&error, began_ms).unwrap_or(attempt);
                if let Some(after_ms) = after_ms {
                    self.emit(Event::Retry { attempt, after_ms, reason: error.message.clone() });
                }
                TurnEvent::Failed { error, after_ms }
            }
            AttemptResult::OutOfTime(_) => TurnEvent::OutOfTime,
        })
    }

    /// Records that the server is loading its model, with one warning. Returns how many times it has been
    /// loading so far.
    fn loads(&mut self, error: &ModelError, began_ms: u64) -> Option<u32> {
        if error.kind != ErrorKind::Loading {
            return None;
        }
        if self.loading.is_none() {
            let limit = self.session().limits.loading_timeout_s;
            let message = format!(
                "the server is still loading its model; retrying for up to {limit} s (`loading_timeout_s`)"
            );
            self.emit(Event::Warning { code: "model_loading".to_owned(), message });
        }
        let loading = self.loading.get_or_insert(ServerLoading { since_ms: began_ms, tries: 0 });
        loading.tries += 1;
        Some(loading.tries)
    }

    /// Arguments of the step: what the request adds to the previous one. That is enough to tell requests
    /// apart and to show how they differ, at a cost proportional to what the turn added.
    fn request_args(&self) -> Value {
        let added = &self.conversation.messages()[self.sent.min(self.conversation.messages().len())..];
        let mut args = json!({ "messages": added });
        if self.sent == 0 {
            let tools: Vec<_> = self.conversation.tools().iter().map(|tool| tool.name.as_str()).collect();
            args["system"] = self.conversation.system().into();
            args["tools"] = tools.into();
        }
        if let Some(tail) = self.phases.as_ref().and_then(Phases::tail) {
            args["tail"] = tail.into();
        }
        args
    }

    async fn attempt(&mut self, call: StepRequest, attempt: u32) -> Result<(Attempt, StepMeta), RunAborted> {
        let (task, session, engine) = (self.task, self.session(), self.engine());
        let (now_ms, left_ms, loading) = (self.active_ms, self.left_ms(), self.loading);
        let this = AttemptState { attempt, now_ms, left_ms, loading };
        let options = self.options_now();
        let cancel = self.cancel().clone();
        let tail = self.phases.as_ref().and_then(Phases::tail).map(str::to_owned);
        let (conversation, known, told) = (&mut self.conversation, &self.known, &self.told);
        let body = async move {
            let preface = preface(session, known, told, conversation);
            let lent = tail.map(|words| conversation.with_temporary_tail(&words));
            let result = send(task, conversation.request(), &options, this, &cancel).await;
            if let Some(lent) = lent {
                conversation.take_back(lent);
            }
            let (preface, told) = preface.map(|preface| (preface.text, preface.told)).unzip();
            Attempt { preface, told: told.unwrap_or_default(), result }
        };
        Ok(engine.step(call, body).await?.split())
    }

    fn reply(&mut self, reply: Reply) -> TurnEvent {
        if let Some(reasoning) = reply.reasoning.as_ref().filter(|reasoning| !reasoning.text.is_empty()) {
            self.emit(Event::Reasoning { text: reasoning.text.clone() });
        }
        if !reply.text.is_empty() {
            self.emit(Event::Message { role: Role::Assistant, text: reply.text.clone() });
        }
        let before = self.conversation.encoded_len();
        self.conversation.push(said(&reply));
        self.sent = self.conversation.messages().len();
        let added = self.conversation.encoded_len().saturating_sub(before);
        self.occupancy.replied(before, added, reply.usage.as_ref());
        self.turn.output_tokens =
            reply.usage.map_or_else(|| self.occupancy.estimate(added), |usage| usage.output_tokens);
        self.turn.cached_tokens = reply.usage.map_or(0, |usage| usage.cached_tokens);
        self.turn.calls = u32::try_from(reply.tool_calls.len()).unwrap_or(u32::MAX);
        self.peak_context_tokens = self.peak_context_tokens.max(self.limit_usage().tokens);
        let mut usage = self.turns.charges.usage();
        if let Some(reported) = &reply.usage {
            usage.input_tokens += reported.input_tokens;
            usage.output_tokens += reported.output_tokens;
        }
        let turns = self.turns.turn_index() + 1;
        self.task.progress.turned(turns, usage, self.metrics(turns, usage));
        TurnEvent::Replied(reply)
    }

    /// Waits before a retry, as a step: after a crash the retry is not sent earlier than the delay allows.
    pub(crate) async fn rest(&mut self, after_ms: u64) -> Result<TurnEvent, RunAborted> {
        let call = StepRequest::new(&self.task.branch, StepKind::Wait, "retry")
            .with_args(json!({ "after_ms": after_ms }));
        let cancel = self.cancel();
        // Waiting past the task's deadline is pointless.
        let pause = Duration::from_millis(after_ms.min(self.left_ms().unwrap_or(u64::MAX)));
        let body = async move {
            let slept = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
            Slept { cancelled: slept.is_none() }
        };
        let recorded = self.engine().step(call, body).await?;
        self.passed(&recorded);
        Ok(if recorded.value.cancelled { TurnEvent::Cancelled } else { TurnEvent::Rested })
    }
}

/// Result of waiting before a retry, as stored in the journal.
#[derive(Deserialize, Serialize)]
pub(crate) struct Slept {
    pub(crate) cancelled: bool,
}

/// Converts a reply to a conversation message. Servers reject empty assistant messages, and some reject two
/// consecutive user messages.
pub(crate) fn said(reply: &Reply) -> Message {
    let mut reply = reply.clone();
    if reply.text.trim().is_empty() && reply.tool_calls.is_empty() {
        reply.text = "[nothing]".to_owned();
    }
    reply.into_message()
}
