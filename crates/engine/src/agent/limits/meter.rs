//! Usage of a task so far: working time, model time, tokens, cost, and the counters of the current turn.

use fusee_journal::StepResult;
use fusee_journal::event::Event;
use fusee_model::{Price, Reply, Usage};

use super::Limits;
use super::budget::{Remaining, Spent};
use super::cost::Cost;
use crate::agent::machine::LimitUsage;

/// Resources used by one task.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    started_ms: i64,
    /// End of the last step.
    pub(crate) last_ms: i64,
    /// Used by earlier stages of the same work; counts towards its limits.
    before: Spent,
    /// Used by this task and its subtasks; `turns` counts those of the subtasks.
    pub(crate) spent: Spent,
    /// Output tokens of the longest reply so far.
    longest_reply: u64,
    turn: CurrentTurn,
}

/// Counters of the current turn.
#[derive(Debug, Default)]
struct CurrentTurn {
    began_ms: u64,
    output_tokens: u64,
    cached_tokens: u64,
    calls: u32,
    wait_ms: Option<u64>,
    open: bool,
}

impl Meter {
    /// A meter of a task whose earlier stages have used `before`.
    pub(crate) fn new(started_ms: i64, before: Spent) -> Self {
        Self { started_ms, last_ms: started_ms, before, ..Self::default() }
    }

    /// Time from the start to the last step.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.last_ms - self.started_ms).unwrap_or_default()
    }

    /// Working time that counts towards the limit.
    fn limited_ms(&self) -> u64 {
        self.before.active_ms + self.spent.active_ms
    }

    /// Remaining working time, if limited.
    pub(crate) fn left_ms(&self, limits: &Limits) -> Option<u64> {
        limits.task_timeout_s.map(|limit| (limit * 1000).saturating_sub(self.limited_ms()))
    }

    /// What remains of the limits after this many turns of the task itself.
    pub(crate) fn remaining(
        &self,
        limits: &Limits,
        own_turns: u32,
        context_tokens: Option<u64>,
    ) -> Remaining {
        let mut charges = self.before.charges.clone();
        charges.extend(&self.spent.charges);
        let cost = charges.cost_usd(limits.price).map(|_| charges.known_usd());
        Remaining {
            turns: limits.max_turns.saturating_sub(self.all_turns(own_turns)),
            ms: self.left_ms(limits),
            usd: limits.budget_usd.zip(cost).map(|(budget, cost)| (budget - cost).max(0.0)),
            context_tokens,
        }
    }

    /// Usage to compare with the limits, for a context of `tokens`.
    pub(crate) fn usage(&self, tokens: u64) -> LimitUsage {
        let known_usd = |spent: &Spent| spent.charges.known_usd();
        LimitUsage {
            tokens,
            active_ms: self.limited_ms(),
            subtask_turns: self.spent.turns,
            cost: Cost {
                usd: known_usd(&self.before) + known_usd(&self.spent),
                longest_reply: self.longest_reply,
            },
        }
    }

    /// Model replies, given those of the task itself.
    pub(crate) fn all_turns(&self, own: u32) -> u32 {
        own.saturating_add(self.spent.turns)
    }

    /// Everything that a task of this many turns used, including its subtasks.
    pub(crate) fn total(&self, own_turns: u32) -> Spent {
        Spent { turns: self.all_turns(own_turns), ..self.spent.clone() }
    }

    /// Records the duration and end of a step.
    pub(crate) fn record<T>(&mut self, recorded: &StepResult<T>) {
        self.spent.active_ms += recorded.duration_ms;
        self.last_ms = self.last_ms.max(recorded.at_ms);
    }

    /// Records the context size of a request.
    pub(crate) fn observe_context(&mut self, tokens: u64) {
        self.spent.peak_context_tokens = self.spent.peak_context_tokens.max(tokens);
    }

    /// Charges a reply; `estimated` is used if the server reports no usage.
    pub(crate) fn charge(&mut self, price: Option<Price>, reply: &Reply, estimated: Usage) {
        let output_tokens = reply.usage.unwrap_or(estimated).output_tokens;
        self.longest_reply = self.longest_reply.max(output_tokens);
        match &reply.usage {
            Some(usage) => self.spent.charges.add(price, usage),
            None => self.spent.charges.add_estimated(price, &estimated),
        }
    }

    /// Starts a turn, unless one is open. Returns whether it started.
    pub(crate) fn start_turn(&mut self) -> bool {
        let starts = !self.turn.open;
        if starts {
            self.turn = CurrentTurn { began_ms: self.spent.active_ms, open: true, ..CurrentTurn::default() };
        }
        starts
    }

    /// Counts the reply of the turn; `estimated` output tokens are used if the server reports none.
    pub(crate) fn count_reply(&mut self, reply: &Reply, estimated: u64, wait_ms: Option<u64>) {
        self.turn.wait_ms = wait_ms;
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
            duration_ms: self.spent.active_ms - self.turn.began_ms,
            wait_ms: self.turn.wait_ms,
        }
    }
}

#[cfg(test)]
mod tests;
