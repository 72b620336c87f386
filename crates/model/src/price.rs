//! What tokens cost. The table is data (`price/prices.toml`), and a user's own file goes before it; who enforces a
//! budget with it is the engine.

use serde::{Deserialize, Serialize};

use crate::profile::{Names, entries_for, read_entries};
use crate::{ChoiceError, Usage};

const SHIPPED: &str = include_str!("price/prices.toml");

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of the prompt.
    pub input: f64,
    /// Of the reply, reasoning included.
    pub output: f64,
    /// Of the part of the prompt that came from the server's cache; the same as `input` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Of the part of the prompt that was put into the cache; the same as `input` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// What these tokens cost, in US dollars.
    pub fn cost_usd(&self, usage: &Usage) -> f64 {
        let apart = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
        let plain = usage.input_tokens.saturating_sub(apart);
        let parts = [
            (plain, self.input),
            (usage.cached_tokens, self.cached.unwrap_or(self.input)),
            (usage.cache_write_tokens, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        parts.into_iter().map(|(tokens, price)| tokens as f64 * price / 1e6).sum()
    }

    /// Whether nobody pays for it.
    pub fn is_free(&self) -> bool {
        self.input == 0.0 && self.output == 0.0
    }
}

/// A table of prices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// The last one that fits counts.
    entries: Vec<(Names, Price)>,
}

const KEYS: &[&str] = &["input", "output", "cached", "cache_write"];

impl Prices {
    /// The table of this product. Prices change: a user's file is added with [`Prices::add`].
    pub fn shipped() -> Result<Prices, ChoiceError> {
        let mut prices = Prices::default();
        prices.add("prices.toml", SHIPPED)?;
        Ok(prices)
    }

    /// The part of it that a model of this provider can be in.
    pub fn shipped_for(provider: Option<&str>) -> Result<Prices, ChoiceError> {
        let mut prices = Prices::default();
        prices.add("prices.toml", &entries_for(SHIPPED, provider))?;
        Ok(prices)
    }

    /// Adds the entries of a file of the same format; they go before what is there. `file` is named in faults.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), ChoiceError> {
        self.entries.extend(read_entries(file, text, "price", KEYS)?);
        Ok(())
    }

    /// The price of a model, if it is known.
    pub fn of(&self, provider: Option<&str>, model: &str) -> Option<Price> {
        self.entries.iter().rfind(|(names, _)| names.fit(provider, model)).map(|(_, price)| *price)
    }
}

#[cfg(test)]
mod tests;
