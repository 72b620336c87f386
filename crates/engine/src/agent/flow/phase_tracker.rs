//! Tracks the phase of a task: emits its changes, asks a model where one decides, and puts the phase text
//! into the prompt. `flow/phases.rs` defines phases and what follows from the facts.

use std::time::Duration;

use fusee_journal::event::{Event, PhaseSource};
use fusee_journal::{RunAborted, StepKind, StepMeta, StepRequest};
use fusee_model::{Conversation, ErrorKind, Message, Reply, RequestOptions, ToolChoice};
use serde_json::json;

use crate::agent::flow::{PhaseMove, Phases};
use crate::agent::model_request::attempt::{Attempt, AttemptResult};
use crate::agent::runner::TaskRunner;

/// Timeout of the phase probe; without an answer the phase stays.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// Maximum characters of the model's text and of each call's arguments in the probe.
const SHOWN: usize = 300;

/// Maximum number of calls named; the rest are counted.
const MOST_CALLS: usize = 20;

impl TaskRunner<'_> {
    /// Emits the initial phase.
    pub(crate) fn start_phase(&mut self) {
        let Some(phases) = &self.phases else { return };
        let (phase, source) = (phases.name().to_owned(), PhaseSource::PhaseControl);
        self.emit(Event::PhaseState { phase, source, turn_index: 0 });
        self.follow_phase();
    }

    /// Moves to the phase that the facts call for.
    pub(crate) fn follow_phase(&mut self) {
        let moved = self.phases.as_mut().and_then(|phases| phases.follow(&self.facts));
        self.record_phase(moved);
    }

    /// Updates the phase after a turn of a task that continues; if no rule applies, a model may be asked.
    pub(crate) async fn phase_after_turn(&mut self) -> Result<(), RunAborted> {
        self.follow_phase();
        if self.phases.as_ref().is_some_and(Phases::asks) {
            self.probe().await?;
        }
        if let Some(phases) = &mut self.phases {
            phases.turn();
        }
        Ok(())
    }

    fn record_phase(&mut self, moved: Option<PhaseMove>) {
        let Some(PhaseMove { from, to, reason }) = moved else { return };
        let turn_index = self.turns.turn_index();
        let source = PhaseSource::PhaseControl;
        self.emit(Event::PhaseTransition { from, to, source, turn_index, reason });
        self.phase_shows();
    }

    /// Updates the phase text at the end of the system prompt, if it belongs there and has changed.
    fn phase_shows(&mut self) {
        let now = self.phases.as_ref().and_then(Phases::system).map(str::to_owned);
        if now != self.phase_shown {
            self.phase_shown = now;
            self.set_frame();
        }
    }

    /// Asks a model for the phase: one request, no tools, no history. The task continues whatever the result.
    async fn probe(&mut self) -> Result<(), RunAborted> {
        let Some(phases) = &self.phases else { return Ok(()) };
        let (system, question) = phases.question(&self.last_turn());
        let probe = &phases.control().probe;
        let session = self.session();
        let options = RequestOptions {
            temperature: Some(probe.temperature),
            max_output_tokens: Some(probe.max_tokens),
            tool_choice: ToolChoice::default(),
            output_schema: None,
            open: None,
            ..session.options.clone()
        };
        // Uses its own branch because the probe is not part of the conversation.
        let call = StepRequest {
            branch: self.task.branch.child("phase"),
            kind: StepKind::Model,
            callee: session.model.name().to_owned(),
            args: json!({ "system": &system, "messages": [&question] }),
        };
        let left = self.left_ms().map_or(PROBE_TIME, |left| PROBE_TIME.min(Duration::from_millis(left)));
        let (model, cancel) = (&session.model, self.cancel().clone());
        let body = async move {
            let mut conversation = Conversation::new(model.dialect(), system, Vec::new());
            conversation.push(Message::User { text: question });
            let mut unseen = |_: fusee_model::ReplyDelta<'_>| {};
            let reply = model.send(&conversation, &options, &mut unseen, &cancel);
            let result = match tokio::time::timeout(left, reply).await {
                Ok(Ok(reply)) => AttemptResult::Reply(reply),
                Ok(Err(error)) => AttemptResult::Error { error, after_ms: None },
                Err(_) => AttemptResult::OutOfTime(true),
            };
            Attempt::of(result)
        };
        let recorded = self.engine().step(call, body).await?;
        self.passed(&recorded);
        let (attempt, StepMeta { replayed, .. }) = recorded.split();
        let said = match &attempt.result {
            AttemptResult::Reply(reply) => Ok(reply),
            AttemptResult::Error { error, .. } => Err(error),
            AttemptResult::OutOfTime(_) => {
                self.probe_failed(format!("no answer within {} s", left.as_secs()));
                return Ok(());
            }
        };
        if replayed {
            session.model.replayed(said);
        }
        match said {
            Ok(reply) => self.probed(reply),
            // The next request reports the cancellation.
            Err(error) if error.kind == ErrorKind::Cancelled => {}
            Err(error) => self.probe_failed(error.message.clone()),
        }
        Ok(())
    }

    fn probed(&mut self, reply: &Reply) {
        let tokens = self.occupancy.estimate(reply.text.len());
        self.turns.charge_reply(reply, tokens);
        let (turns, usage) = (self.turns.turn_index(), self.turns.charges.usage());
        self.task.progress.turned(turns, usage, self.metrics(turns, usage));
        match self.phases.as_mut().map(|phases| phases.answered(&reply.text)) {
            Some(Ok(moved)) => self.record_phase(moved),
            Some(Err(why)) => self.probe_failed(why),
            None => {}
        }
    }

    fn probe_failed(&mut self, message: String) {
        self.emit(Event::PhaseProbeError { turn_index: self.turns.turn_index(), message });
    }

    /// Short description of the last turn: text, calls, and the facts so far.
    fn last_turn(&self) -> String {
        let messages = self.conversation.messages();
        let reply = messages.iter().rposition(|message| matches!(message, Message::Assistant { .. }));
        let turn = reply.map_or(&[][..], |reply| &messages[reply..]);
        let mut lines = Vec::new();
        if let Some(Message::Assistant { text, tool_calls, .. }) = turn.first() {
            if !text.trim().is_empty() {
                lines.push(format!("It said: {}", cut(text.trim())));
            }
            for call in tool_calls.iter().take(MOST_CALLS) {
                let answered = |message: &&Message| matches!(message, Message::Tool { call_id, .. } if *call_id == call.id);
                let ok = turn
                    .iter()
                    .find(answered)
                    .is_none_or(|answer| !matches!(answer, Message::Tool { ok: false, .. }));
                let how = if ok { "" } else { " (failed)" };
                lines.push(format!("It called {} {}{how}", call.name, cut(&call.arguments)));
            }
            if let Some(more) = tool_calls.len().checked_sub(MOST_CALLS).filter(|more| *more > 0) {
                lines.push(format!("and {more} more calls"));
            }
        }
        lines.push(format!(
            "So far: {} files read, {} files changed, {} tasks planned.",
            self.facts.files_read().count(),
            self.facts.changed().count(),
            self.plan.tasks().len()
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
