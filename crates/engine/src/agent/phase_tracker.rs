//! Tracks the phase of a task: emits its changes, asks a model where one decides, and puts the phase text
//! into the prompt. `flow/phases.rs` defines phases and what follows from the facts.

use std::time::Duration;

use fusee_journal::event::{Event, PhaseSource};
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{ErrorKind, Message, Reply, RequestOptions, ToolChoice};
use serde_json::json;

use super::conversation::Conversation;
use super::execution::Execution;
use super::flow::{FlowState, PhaseTransition, Phases};
use super::model_request::attempt::{Attempt, AttemptResult, within};

/// Timeout of the phase probe; without an answer the phase stays.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// Maximum characters of the model's text and of each call's arguments in the probe.
const SHOWN: usize = 300;

/// Maximum number of calls named; the rest are counted.
const MAX_CALLS: usize = 20;

/// The parts of a task that the phase concerns.
pub(crate) struct PhaseTracker<'a, 't> {
    pub(crate) run: &'a mut Execution<'t>,
    pub(crate) flow: &'a mut FlowState,
    pub(crate) conversation: &'a mut Conversation<'t>,
    pub(crate) turn_index: u32,
}

impl PhaseTracker<'_, '_> {
    /// Emits the initial phase.
    pub(crate) fn start(&mut self) {
        let Some(phases) = &self.flow.phases else { return };
        let (phase, source) = (phases.name().to_owned(), PhaseSource::PhaseControl);
        self.run.emit(Event::PhaseState { phase, source, turn_index: 0 });
        self.follow();
    }

    /// Moves to the phase that the facts call for.
    pub(crate) fn follow(&mut self) {
        let moved = self.flow.follow_phase();
        self.record(moved);
    }

    /// Updates the phase after a turn of a task that continues; if no rule applies, a model may be asked.
    pub(crate) async fn after_turn(&mut self) -> Result<(), RunAborted> {
        self.follow();
        if self.flow.phases.as_ref().is_some_and(Phases::asks) {
            self.probe().await?;
        }
        if let Some(phases) = &mut self.flow.phases {
            phases.turn();
        }
        Ok(())
    }

    fn record(&mut self, moved: Option<PhaseTransition>) {
        let Some(PhaseTransition { from, to, reason }) = moved else { return };
        let (turn_index, source) = (self.turn_index, PhaseSource::PhaseControl);
        self.run.emit(Event::PhaseTransition { from, to, source, turn_index, reason });
        self.conversation.show_phase(self.run.task, self.flow);
    }

    /// Asks a model for the phase: one request, no tools, no history. The task continues whatever the result.
    async fn probe(&mut self) -> Result<(), RunAborted> {
        let Some(phases) = &self.flow.phases else { return Ok(()) };
        let (system, question) = phases.question(&self.last_turn());
        let (probe, asked_bytes) = (&phases.control().probe, system.len() + question.len());
        let session = self.run.session();
        let options = RequestOptions {
            temperature: Some(probe.temperature),
            max_output_tokens: Some(probe.max_tokens),
            tool_choice: ToolChoice::default(),
            output_schema: None,
            open: None,
            ..session.options.clone()
        };
        // Uses its own branch because the probe is not part of the conversation.
        let call =
            StepRequest::new(&self.run.task.branch.child("phase"), StepKind::Model, session.model.name())
                .with_args(json!({ "system": &system, "messages": [&question] }));
        let left = self.run.left_ms().map_or(PROBE_TIME, |left| PROBE_TIME.min(Duration::from_millis(left)));
        let (model, cancel) = (&session.model, self.run.cancel().clone());
        let body = async move {
            let mut alone = fusee_model::Conversation::new(model.dialect(), system, Vec::new());
            alone.push(Message::user(question));
            let mut unseen = |_: fusee_model::ReplyDelta<'_>| {};
            let reply = model.send(&alone, &options, &mut unseen, &cancel);
            Attempt::new(within(u64::try_from(left.as_millis()).ok(), reply).await)
        };
        let recorded = self.run.engine().step::<Attempt>(call, body).await?;
        self.run.meter.record(&recorded);
        if recorded.replayed {
            recorded.value.result.notify(&**model);
        }
        match recorded.value.result {
            AttemptResult::Reply(reply) => self.answered(&reply, asked_bytes),
            // The next request reports the cancellation.
            AttemptResult::Error { error, .. } if error.kind == ErrorKind::Cancelled => {}
            AttemptResult::Error { error, .. } => self.fail(error.message),
            AttemptResult::OutOfTime(_) => self.fail(format!("no answer within {} s", left.as_secs())),
        }
        Ok(())
    }

    fn answered(&mut self, reply: &Reply, asked_bytes: usize) {
        let estimated = self.conversation.usage.estimate_request(asked_bytes, reply.text.len());
        self.run.charge(reply, estimated);
        self.run.report_progress(self.turn_index);
        match self.flow.phases.as_mut().map(|phases| phases.answered(&reply.text)) {
            Some(Ok(moved)) => self.record(moved),
            Some(Err(why)) => self.fail(why),
            None => {}
        }
    }

    fn fail(&self, message: String) {
        self.run.emit(Event::PhaseProbeError { turn_index: self.turn_index, message });
    }

    /// Short description of the last turn: text, calls, and the facts so far.
    fn last_turn(&self) -> String {
        let messages = self.conversation.history.messages();
        let reply = messages.iter().rposition(|message| matches!(message, Message::Assistant { .. }));
        let turn = reply.map_or(&[][..], |reply| &messages[reply..]);
        let mut lines = Vec::new();
        if let Some(Message::Assistant { text, tool_calls, .. }) = turn.first() {
            if !text.trim().is_empty() {
                lines.push(format!("It said: {}", cut(text.trim())));
            }
            for call in tool_calls.iter().take(MAX_CALLS) {
                let answered = |message: &&Message| matches!(message, Message::Tool { call_id, .. } if *call_id == call.id);
                let ok = turn
                    .iter()
                    .find(answered)
                    .is_none_or(|answer| !matches!(answer, Message::Tool { ok: false, .. }));
                let how = if ok { "" } else { " (failed)" };
                lines.push(format!("It called {} {}{how}", call.name, cut(&call.arguments)));
            }
            if let Some(more) = tool_calls.len().checked_sub(MAX_CALLS).filter(|more| *more > 0) {
                lines.push(format!("and {more} more calls"));
            }
        }
        lines.push(format!(
            "So far: {} files read, {} files changed, {} tasks planned.",
            self.flow.facts.files_read().count(),
            self.flow.facts.changed().count(),
            self.flow.plan.tasks().len()
        ));
        lines.join("\n")
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
