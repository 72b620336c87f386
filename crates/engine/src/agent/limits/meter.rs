//! Usage of a task so far: working time, model time, tokens, cost, and the counters of the current turn.

use fusee_journal::StepResult;
use fusee_journal::event::Event;
use fusee_model::{Price, Reply};

use super::Limits;
use super::cost::{Charges, Cost};
use crate::agent::limits::resource_metrics::ResourceMetrics;
use crate::agent::machine::LimitUsage;
use crate::agent::tool_calls::subtask_tool::Spent;

/// Resources used by one task.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    started_ms: i64,
    /// End of the last step.
    pub(crate) last_ms: i64,
    /// Working time: the sum of the step durations, so that a resumed run counts the same.
    pub(crate) active_ms: u64,
    /// The part of the working time spent on model requests.
    pub(crate) model_ms: u64,
    /// Largest context size so far.
    pub(crate) peak_context_tokens: u64,
    /// Reported usage of all requests, at their prices.
    pub(crate) charges: Charges,
    cost: Cost,
    subtask_turns: u32,
    turn: CurrentTurn,
}

/// Counters of the current turn.
#[derive(Debug, Default)]
struct CurrentTurn {
    began_ms: u64,
    output_tokens: u64,
    cached_tokens: u64,
    calls: u32,
    open: bool,
}

impl Meter {
    /// A meter of a task whose earlier parts used `active_ms` of working time.
    pub(crate) fn new(started_ms: i64, active_ms: u64) -> Self {
        Self { started_ms, last_ms: started_ms, active_ms, ..Self::default() }
    }

    /// Time from the start to the last step.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.last_ms - self.started_ms).unwrap_or_default()
    }

    /// Remaining working time, if limited.
    pub(crate) fn left_ms(&self, limits: &Limits) -> Option<u64> {
        limits.task_timeout_s.map(|limit| (limit * 1000).saturating_sub(self.active_ms))
    }

    /// Usage to compare with the limits, for a context of `tokens`.
    pub(crate) fn usage(&self, tokens: u64) -> LimitUsage {
        let Self { active_ms, subtask_turns, cost, .. } = *self;
        LimitUsage { tokens, active_ms, subtask_turns, cost }
    }

    /// Model replies, given those of the task itself.
    pub(crate) fn all_turns(&self, own: u32) -> u32 {
        own.saturating_add(self.subtask_turns)
    }

    /// Records the duration and end of a step.
    pub(crate) fn record<T>(&mut self, recorded: &StepResult<T>) {
        self.active_ms += recorded.duration_ms;
        self.last_ms = self.last_ms.max(recorded.at_ms);
    }

    /// Records the context size of a request.
    pub(crate) fn observe_context(&mut self, tokens: u64) {
        self.peak_context_tokens = self.peak_context_tokens.max(tokens);
    }

    /// Charges a reply that left the context at `tokens`.
    pub(crate) fn charge(&mut self, price: Option<Price>, reply: &Reply, tokens: u64) {
        self.cost.spent(price, reply, tokens);
        if let Some(usage) = &reply.usage {
            self.charges.add(price, usage);
        }
    }

    /// Charges the resources used by subtasks.
    pub(crate) fn spend(&mut self, spent: &Spent) {
        self.active_ms += spent.active_ms;
        self.subtask_turns = self.subtask_turns.saturating_add(spent.turns);
        self.cost.charge(spent.charges.known_usd());
        self.charges.extend(&spent.charges);
    }

    /// Starts a turn, unless one is open. Returns whether it started.
    pub(crate) fn start_turn(&mut self) -> bool {
        let starts = !self.turn.open;
        if starts {
            self.turn = CurrentTurn { began_ms: self.active_ms, open: true, ..CurrentTurn::default() };
        }
        starts
    }

    /// Counts the reply of the turn; `estimated` output tokens are used if the server reports none.
    pub(crate) fn count_reply(&mut self, reply: &Reply, estimated: u64) {
        self.turn.output_tokens = reply.usage.map_or(estimated, |usage| usage.output_tokens);
        self.turn.cached_tokens = reply.usage.map_or(0, |usage| usage.cached_tokens);
        self.turn.calls = u32::try_from(reply.tool_calls.len()).unwrap_or(u32::MAX);
    }

    /// Ends the turn and returns its event.
    pub(crate) fn complete_turn(&mut self, turn_index: u32, turn_id: String) -> Event {
        self.turn.open = false;
        Event::TurnComplete {
            turn_index,
            turn_id,
            output_tokens: self.turn.output_tokens,
            cached_tokens: self.turn.cached_tokens,
            tool_calls: self.turn.calls,
            duration_ms: self.active_ms - self.turn.began_ms,
        }
    }

    /// The resources used so far by a task of this many turns.
    pub(crate) fn metrics(&self, turns: u32) -> ResourceMetrics {
        let usage = self.charges.usage();
        ResourceMetrics {
            turns,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            peak_context_tokens: self.peak_context_tokens,
            active_ms: self.active_ms,
            model_ms: self.model_ms,
        }
    }
}

#[cfg(test)]
mod tests;
