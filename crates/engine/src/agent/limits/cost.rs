//! Cost of a task so far, and whether the budget covers the next request. `machine.rs` checks before each
//! request.

use fusee_model::{Price, Usage};

use crate::agent::limits::Limits;

/// Token usage, grouped by the price of the model that answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Charges {
    reported: PricedUsage,
    /// Our own count for replies without a reported usage.
    estimated: PricedUsage,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct PricedUsage(Vec<(Option<Price>, Usage)>);

impl PricedUsage {
    fn add(&mut self, price: Option<Price>, usage: &Usage) {
        match self.0.iter_mut().find(|(known, _)| *known == price) {
            Some((_, sum)) => *sum += usage,
            None => self.0.push((price, *usage)),
        }
    }

    fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(price, usage)| self.add(*price, usage));
    }

    fn known_usd(&self) -> f64 {
        self.0.iter().filter_map(|(price, usage)| Some(price.as_ref()?.cost_usd(usage))).sum()
    }
}

impl Charges {
    /// Adds the reported usage of a request to a model with this price.
    pub(crate) fn add(&mut self, price: Option<Price>, usage: &Usage) {
        self.reported.add(price, usage);
    }

    /// Adds a request whose usage was not reported.
    pub(crate) fn add_estimated(&mut self, price: Option<Price>, usage: &Usage) {
        self.estimated.add(price, usage);
    }

    /// Adds the charges of another task.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.reported.extend(&other.reported);
        self.estimated.extend(&other.estimated);
    }

    /// What the totals are made of: the reported usage, or our own count if nothing was reported.
    fn counted(&self) -> &PricedUsage {
        if self.reported.0.is_empty() { &self.estimated } else { &self.reported }
    }

    /// Token usage of all requests, as reported; by our own count if no usage was reported.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.counted().0.iter().for_each(|(_, usage)| sum += usage);
        sum
    }

    /// Cost in US dollars of the requests whose price is known, including those whose usage is an estimate.
    pub(crate) fn known_usd(&self) -> f64 {
        self.reported.known_usd() + self.estimated.known_usd()
    }

    /// Cost in US dollars; `None` if a price is unknown. Without requests, `own` is the price that counts.
    pub(crate) fn cost_usd(&self, own: Option<Price>) -> Option<f64> {
        let counted = self.counted();
        let known = if counted.0.is_empty() {
            own.is_some()
        } else {
            counted.0.iter().all(|(price, _)| price.is_some())
        };
        // Adding 0 turns the empty sum -0.0 into 0.0.
        known.then(|| counted.known_usd() + 0.0)
    }
}

/// Money spent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// US dollars so far, as far as prices are known.
    pub(crate) usd: f64,
    /// Output tokens of the longest reply so far, used as the estimate for the next reply.
    pub(crate) longest_reply: u64,
}

impl Cost {
    /// The error if a request of `tokens` would exceed the budget.
    pub(crate) fn budget_error(&self, limits: &Limits, tokens: u64) -> Option<String> {
        let (budget, price) = (limits.budget_usd?, limits.price?);
        let next = Usage { input_tokens: tokens, output_tokens: self.longest_reply, ..Usage::default() };
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
