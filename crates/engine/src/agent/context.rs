//! How much the conversation may hold, and making it smaller: the driver's half of `compaction.rs`, which knows how.

use fusee_journal::event::Event;
use fusee_journal::{Call, Kind, Stop};
use fusee_model::Message;
use serde_json::{Value, json};

use super::compaction::{self, Keep};
use super::driver::Driver;
use super::limits::{Limits, SummaryBy};
use super::occupancy::size;
use super::turns::{Gauge, Input};

/// Below this fill a server's context size cannot matter, so it is not asked for: short tasks start faster.
const ASK_CONTEXT_FROM: u64 = 3_000;

/// The share of the limit that a compaction aims at.
pub(crate) const COMPACT_TO: f64 = 0.4;

/// The share of the limit that the newest turns may keep word for word.
const KEEP_RECENT: f64 = 0.2;

impl Driver<'_> {
    /// The limits, none beyond what the model's server can take.
    pub(crate) fn limits(&self) -> Limits {
        Limits { max_tokens: self.max_tokens(), ..self.task.rules.bound(self.terms.limits) }
    }

    pub(crate) fn max_tokens(&self) -> u64 {
        self.terms.limits.max_tokens.min(self.context_tokens.unwrap_or(u64::MAX))
    }

    /// About how many bytes more the context can hold.
    pub(crate) fn room_bytes(&self) -> usize {
        let left = self.max_tokens().saturating_sub(self.gauge().tokens);
        let per_token = 1000.0 / self.occupancy.estimate(1000).max(1) as f64;
        (left as f64 * per_token) as usize
    }

    /// A window on the conversation that moved is a compaction to whoever reads along.
    pub(crate) fn tell_moves(&mut self, gauge: Gauge) {
        let moves = self.conversation.moved();
        if moves > 0 {
            self.occupancy.rewritten();
            self.emit(Event::Compaction {
                timestamp: self.last_ms,
                turn_index: self.turns.turn_index(),
                tokens_before: gauge.tokens,
                tokens_after: self.gauge().tokens,
                items_removed: moves,
            });
        }
    }

    /// Makes the conversation smaller, if that is worth it.
    pub(crate) async fn compact(&mut self, gauge: Gauge) -> Result<Input, Stop> {
        let limit = self.max_tokens() as f64;
        let keep = Keep {
            first_user_messages: 1,
            request: self.task.input.last().map(Message::text),
            recent_tokens: (limit * KEEP_RECENT) as u64,
        };
        // System prompt and tools stay as they are: what is left of the target is for the messages.
        let messages: usize = self.conversation.messages().iter().map(size).sum();
        let overhead = self.occupancy.estimate(self.conversation.encoded_len().saturating_sub(messages));
        let target = ((limit * COMPACT_TO) as u64).saturating_sub(overhead);
        let occupancy = &self.occupancy;
        let count = |message: &Message| occupancy.estimate(size(message));
        let compacted = compaction::compact(self.conversation.messages(), &keep, target, &count);
        let Some(mut compacted) = compacted else { return Ok(Input::Compacted { smaller: false }) };
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
            tokens_after: self.gauge().tokens,
            items_removed: compacted.items_removed,
        });
        Ok(Input::Compacted { smaller: true })
    }

    /// Asks the server for the size of its context, once, when that can begin to matter.
    pub(crate) async fn learn_context(&mut self) -> Result<(), Stop> {
        if self.context_asked || self.gauge().tokens < ASK_CONTEXT_FROM {
            return Ok(());
        }
        self.context_asked = true;
        let model = &self.session().model;
        let call = Call {
            branch: self.task.branch.clone(),
            kind: Kind::Environment,
            callee: "context_tokens".to_owned(),
            args: Value::Null,
        };
        let body = Box::new(move || {
            Box::pin(async move { json!(model.context_tokens().await) })
                as fusee_journal::BoxFuture<'_, Value>
        });
        let recorded = self.engine().step(call, body).await?;
        if let Some(tokens) = recorded.value.as_u64().filter(|tokens| *tokens > 0) {
            self.context_tokens = Some(tokens);
            self.turns.set_limits(self.limits());
        }
        Ok(())
    }
}
