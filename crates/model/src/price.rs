//! Token prices. The table is data (`price/prices.toml`), and a user's own file takes precedence; the engine
//! enforces budgets with it.

use serde::{Deserialize, Serialize};

use crate::profile::{ModelNames, entries_for, read_entries};
use crate::{OpenError, Usage};

const SHIPPED: &str = include_str!("price/prices.toml");

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of prompt tokens.
    pub input: f64,
    /// Price of reply tokens, including reasoning.
    pub output: f64,
    /// Price of prompt tokens read from the server's cache; defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Price of prompt tokens written to the cache; defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// Cost of these tokens in US dollars.
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

    /// Whether the model is free of charge.
    pub fn is_free(&self) -> bool {
        self.input == 0.0 && self.output == 0.0
    }
}

/// A table of prices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// The last matching entry wins.
    entries: Vec<(ModelNames, Price)>,
}

const KEYS: &[&str] = &["input", "output", "cached", "cache_write"];

impl Prices {
    /// The built-in table. Prices change: add a user's file with [`Prices::add`].
    pub fn builtin() -> Result<Prices, OpenError> {
        let mut prices = Prices::default();
        prices.add("prices.toml", SHIPPED)?;
        Ok(prices)
    }

    /// The part of the built-in table that may apply to a model of this provider.
    pub fn builtin_for(provider: Option<&str>) -> Result<Prices, OpenError> {
        let mut prices = Prices::default();
        prices.add("prices.toml", &entries_for(SHIPPED, provider))?;
        Ok(prices)
    }

    /// Adds the entries of a file in the same format; they override existing ones. `file` is used in error
    /// messages.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), OpenError> {
        self.entries.extend(read_entries(file, text, "price", KEYS)?);
        Ok(())
    }

    /// Price of a model, if known.
    pub fn find(&self, provider: Option<&str>, model: &str) -> Option<Price> {
        self.entries.iter().rfind(|(names, _)| names.applies_to(provider, model)).map(|(_, price)| *price)
    }
}

#[cfg(test)]
mod tests;
