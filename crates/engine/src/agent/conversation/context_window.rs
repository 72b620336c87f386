//! Context size: the limit, and when to compact. `compaction.rs` implements the compaction itself.

use fusee_journal::event::Event;
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::Message;

use crate::agent::conversation::compaction::{self, Keep};
use crate::agent::conversation::context_usage::size;
use crate::agent::limits::{Limits, SummaryBy};
use crate::agent::machine::{LimitUsage, TurnEvent};
use crate::agent::runner::TaskRunner;

/// Below this size the server's context size cannot matter, so it is not queried: short tasks start faster.
const ASK_CONTEXT_FROM: u64 = 3_000;

/// Fraction of the limit that a compaction aims for.
pub(crate) const COMPACT_TO: f64 = 0.4;

/// Fraction of the limit within which the newest turns are kept verbatim.
const KEEP_RECENT: f64 = 0.2;

impl TaskRunner<'_> {
    /// The limits in force, with `max_tokens` capped at the context size of the model's server.
    pub(crate) fn limits(&self) -> Limits {
        Limits { max_tokens: self.max_tokens(), ..self.task.rules.bound(self.terms.limits) }
    }

    pub(crate) fn max_tokens(&self) -> u64 {
        self.terms.limits.max_tokens.min(self.context_tokens.unwrap_or(u64::MAX))
    }

    /// Approximate number of bytes that still fit into the context.
    pub(crate) fn room_bytes(&self) -> usize {
        let left = self.max_tokens().saturating_sub(self.limit_usage().tokens);
        let per_token = 1000.0 / self.occupancy.estimate(1000).max(1) as f64;
        (left as f64 * per_token) as usize
    }

    /// Reports a moved history window as a compaction event.
    pub(crate) fn report_transitions(&mut self, gauge: LimitUsage) {
        let moves = self.conversation.moved();
        if moves > 0 {
            self.occupancy.rewritten();
            self.emit(Event::Compaction {
                timestamp: self.last_ms,
                turn_index: self.turns.turn_index(),
                tokens_before: gauge.tokens,
                tokens_after: self.limit_usage().tokens,
                items_removed: moves,
            });
        }
    }

    /// Compacts the conversation, if that saves enough.
    pub(crate) async fn compact(&mut self, gauge: LimitUsage) -> Result<TurnEvent, RunAborted> {
        let limit = self.max_tokens() as f64;
        let keep = Keep {
            first_user_messages: 1,
            request: self.task.input.last().map(Message::text),
            recent_tokens: (limit * KEEP_RECENT) as u64,
        };
        // System prompt and tools stay unchanged: the rest of the target is for the messages.
        let messages: usize = self.conversation.messages().iter().map(size).sum();
        let overhead = self.occupancy.estimate(self.conversation.encoded_len().saturating_sub(messages));
        let target = ((limit * COMPACT_TO) as u64).saturating_sub(overhead);
        let occupancy = &self.occupancy;
        let count = |message: &Message| occupancy.estimate(size(message));
        let compacted = compaction::compact(self.conversation.messages(), &keep, target, &count);
        let Some(mut compacted) = compacted else { return Ok(TurnEvent::Compacted { smaller: false }) };
        if self.session().limits.compaction_summary == SummaryBy::Model {
            self.summarise(&mut compacted).await?;
        }
        self.conversation.rewrite(compacted.messages);
        self.occupancy.rewritten();
        self.sent = 0;
        self.emit(Event::Compaction {
            timestamp: self.last_ms,
            turn_index: self.turns.turn_index(),
            tokens_before: gauge.tokens,
            tokens_after: self.limit_usage().tokens,
            items_removed: compacted.items_removed,
        });
        Ok(TurnEvent::Compacted { smaller: true })
    }

    /// Queries the server's context size once, as soon as it can matter.
    pub(crate) async fn probe_context_size(&mut self) -> Result<(), RunAborted> {
        if self.context_asked || self.limit_usage().tokens < ASK_CONTEXT_FROM {
            return Ok(());
        }
        self.context_asked = true;
        let model = &self.session().model;
        let call = StepRequest::new(&self.task.branch, StepKind::Environment, "context_tokens");
        let recorded = self.engine().step(call, async move { model.context_tokens().await }).await?;
        if let Some(tokens) = recorded.value.filter(|tokens| *tokens > 0) {
            self.context_tokens = Some(tokens);
            self.turns.set_limits(self.limits());
        }
        Ok(())
    }
}
