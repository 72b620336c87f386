//! Cost of a task so far, and whether the budget covers the next request. `machine.rs` checks before each
//! request.

use fusee_model::{Price, Reply, Usage};

use crate::agent::limits::Limits;

/// Bytes per token, for servers that report no usage.
const BYTES_A_TOKEN: usize = 4;

/// Reported token usage, grouped by the price of the model that answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Charges(Vec<(Option<Price>, Usage)>);

impl Charges {
    /// Adds the usage of a request to a model with this price.
    pub(crate) fn add(&mut self, price: Option<Price>, usage: &Usage) {
        match self.0.iter_mut().find(|(known, _)| *known == price) {
            Some((_, sum)) => *sum += usage,
            None => self.0.push((price, *usage)),
        }
    }

    /// Adds the charges of another task.
    pub(crate) fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(price, usage)| self.add(*price, usage));
    }

    /// Token usage of all requests.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.0.iter().for_each(|(_, usage)| sum += usage);
        sum
    }

    /// Cost in US dollars of the requests whose price is known.
    pub(crate) fn known_usd(&self) -> f64 {
        self.0.iter().filter_map(|(price, usage)| Some(price.as_ref()?.cost_usd(usage))).sum()
    }

    /// Cost in US dollars; `None` if a price is unknown. Without requests, `own` is the price that counts.
    pub(crate) fn cost_usd(&self, own: Option<Price>) -> Option<f64> {
        let known =
            if self.0.is_empty() { own.is_some() } else { self.0.iter().all(|(price, _)| price.is_some()) };
        // Adding 0 turns the empty sum -0.0 into 0.0.
        known.then(|| self.known_usd() + 0.0)
    }
}

/// Money spent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    usd: f64,
    /// Output tokens of the longest reply so far, used as the estimate for the next reply.
    longest: u64,
}

impl Cost {
    /// Nothing spent.
    #[cfg(test)]
    pub(crate) const ZERO: Self = Self { usd: 0.0, longest: 0 };

    /// Records a reply to a request that left the context at `tokens`.
    pub(crate) fn spent(&mut self, price: Option<Price>, reply: &Reply, tokens: u64) {
        let usage = reply.usage.unwrap_or_else(|| {
            let output_tokens = (reply.text.len() / BYTES_A_TOKEN) as u64;
            Usage { input_tokens: tokens, output_tokens, ..Usage::default() }
        });
        self.longest = self.longest.max(usage.output_tokens);
        self.usd += price.map_or(0.0, |price| price.cost_usd(&usage));
    }

    /// Adds the cost of another task.
    pub(crate) fn charge(&mut self, usd: f64) {
        self.usd += usd;
    }

    /// The error if a request of `tokens` would exceed the budget.
    pub(crate) fn budget_error(&self, limits: &Limits, tokens: u64) -> Option<String> {
        let (budget, price) = (limits.budget_usd?, limits.price?);
        let next = Usage { input_tokens: tokens, output_tokens: self.longest, ..Usage::default() };
        let next = price.cost_usd(&next);
        (self.usd + next > budget).then(|| {
            format!(
                "the budget of ${budget} is exhausted: the task has cost about ${:.4} and the next request \
                 would cost about ${next:.4}",
                self.usd
            )
        })
    }

    /// The code and text of a warning that the budget is nearly used up or that the price is unknown.
    pub(crate) fn warning(&self, limits: &Limits) -> Option<(&'static str, String)> {
        let budget = limits.budget_usd?;
        match limits.price {
            None => Some((
                "unknown_price",
                "the price of this model is unknown, so the budget cannot be enforced; set price.input and \
                 price.output (US dollars per million tokens) in the configuration"
                    .to_owned(),
            )),
            Some(_) if self.usd * 5.0 >= budget * 4.0 => {
                Some(("limit_cost", format!("used ${:.4} of ${budget}", self.usd)))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
