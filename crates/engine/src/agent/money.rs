//! What a task has cost so far, and whether the next request can still be paid. `turns.rs` asks before each.

use fusee_journal::event::Event;
use fusee_model::{Reply, Usage};

use super::limits::Limits;

/// Bytes of text to a token, where a server does not count.
const BYTES_A_TOKEN: usize = 4;

/// Money spent.
#[derive(Debug, Default)]
pub(crate) struct Money {
    usd: f64,
    /// The longest reply so far: what the next one is expected to be at least.
    longest: u64,
    warned: bool,
}

impl Money {
    /// A reply came for a request that left the context at `tokens`.
    pub(crate) fn spent(&mut self, limits: &Limits, reply: &Reply, tokens: u64) {
        let usage = reply.usage.unwrap_or_else(|| {
            let output_tokens = (reply.text.len() / BYTES_A_TOKEN) as u64;
            Usage { input_tokens: tokens, output_tokens, ..Usage::default() }
        });
        self.longest = self.longest.max(usage.output_tokens);
        self.usd += limits.price.map_or(0.0, |price| price.cost_usd(&usage));
    }

    /// Another task cost this.
    pub(crate) fn charge(&mut self, limits: &Limits, usage: &Usage) {
        self.usd += limits.price.map_or(0.0, |price| price.cost_usd(usage));
    }

    /// Why a request of so many tokens is not sent, if it is not: it would go over the budget.
    pub(crate) fn too_much(&self, limits: &Limits, tokens: u64) -> Option<String> {
        let (budget, price) = (limits.budget_usd?, limits.price?);
        let next = Usage { input_tokens: tokens, output_tokens: self.longest, ..Usage::default() };
        let next = price.cost_usd(&next);
        (self.usd + next > budget).then(|| {
            format!(
                "the budget of ${budget} is used up: the task has cost about ${:.4}, and the next request would \
                 cost about ${next:.4}; `--budget-usd` allows more",
                self.usd
            )
        })
    }

    /// What a person should know, once: that the budget nears its end, or that nobody knows the price.
    pub(crate) fn warning(&mut self, limits: &Limits) -> Option<Event> {
        let budget = limits.budget_usd?;
        let (code, message) = match limits.price {
            None => (
                "unknown_price",
                "the price of this model is not known, so the budget cannot be kept; set price.input and \
                 price.output (US dollars for a million tokens) in your configuration"
                    .to_owned(),
            ),
            Some(_) if self.usd * 5.0 >= budget * 4.0 => {
                ("limit_cost", format!("${:.4} of ${budget} are used", self.usd))
            }
            Some(_) => return None,
        };
        let first = !std::mem::replace(&mut self.warned, true);
        first.then(|| Event::Warning { code: code.to_owned(), message })
    }
}
