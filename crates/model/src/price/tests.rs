//! Price lookup and cost.

use super::*;

fn shipped() -> Prices {
    Prices::builtin().unwrap()
}

#[test]
fn what_came_from_the_cache_costs_less_and_what_went_into_it_more() {
    let price = Price { input: 3.0, output: 15.0, cached: Some(0.3), cache_write: Some(3.75) };
    let usage = Usage {
        input_tokens: 1_000_000,
        output_tokens: 100_000,
        cached_tokens: 600_000,
        cache_write_tokens: 200_000,
        ..Usage::default()
    };
    let cost = price.cost_usd(&usage);
    assert!((cost - (0.6 + 0.18 + 0.75 + 1.5)).abs() < 1e-9, "{cost}");
    let plain = Price { cached: None, cache_write: None, ..price };
    assert!((plain.cost_usd(&usage) - 4.5).abs() < 1e-9);
}

#[test]
fn every_entry_of_the_table_has_a_provider_and_a_sensible_price() {
    let prices = shipped();
    assert!(prices.entries.len() > 10);
    for (names, price) in &prices.entries {
        assert!(!names.provider.is_empty(), "{names:?}");
        for name in &names.provider {
            // An in-process model has no provider.
            assert!(
                name == "local" || crate::connection::provider::Provider::named(name).is_some(),
                "{name}"
            );
        }
        assert!((0.0..=100.0).contains(&price.input) && price.input <= price.output, "{names:?}");
        assert!(price.cached.is_none_or(|cached| cached < price.input), "{names:?}");
    }
}

#[test]
fn a_version_has_the_price_of_its_own_family() {
    let prices = shipped();
    let input = |provider: &str, model: &str| prices.find(Some(provider), model).map(|price| price.input);
    assert_eq!(input("openai", "gpt-5"), Some(1.25));
    assert_eq!(input("openai", "gpt-5-mini-2025-08-07"), Some(0.25));
    assert_eq!(input("anthropic", "claude-sonnet-4-5-20250929"), Some(3.0));
    assert_eq!(input("openai", "gpt-4o-2024-05-13"), Some(5.0));
    assert_eq!(input("openai", "o4-mini-deep-research"), Some(2.0));
    assert_eq!(input("anthropic", "claude-opus-5"), Some(5.0));
    assert_eq!(input("anthropic", "claude-opus-5-5"), Some(4.0));
    assert_eq!(input("mistral", "mistral-medium-latest"), Some(1.5));
    assert_eq!(input("ollama", "whatever:7b"), Some(0.0));
    assert_eq!(input("openai", "gpt-unheard-of"), None);
    assert_eq!(prices.find(None, "gpt-5"), None, "who serves it decides what it costs");
}

#[test]
fn a_users_entry_goes_before_ours() {
    let mut prices = shipped();
    prices
        .add("mine", "[[price]]\nprovider = [\"openai\"]\nmodel = [\"GPT-5\"]\ninput = 9\noutput = 10\n")
        .unwrap();
    assert_eq!(prices.find(Some("openai"), "gpt-5").unwrap().input, 9.0);
}

#[test]
fn a_wrong_file_is_named_with_its_line() {
    let fault = Prices::default().add("mine.toml", "[[price]]\nmodel = [\"x\"]\ninput = 1\n").unwrap_err();
    let fault = fault.to_string();
    assert!(fault.starts_with("mine.toml:1:"), "{fault}");
    assert!(fault.contains("output"), "{fault}");
    let misspelt = "\n[[price]]\nmodel = [\"x\"]\ninptu = 1\noutput = 1\n";
    let fault = Prices::default().add("mine.toml", misspelt).unwrap_err().to_string();
    assert_eq!(fault, "mine.toml:2:1: unknown key `inptu` in a price; expected input");
}

#[test]
fn the_part_for_a_provider_says_of_its_models_what_the_whole_says() {
    let whole = shipped();
    let providers: std::collections::BTreeSet<&str> =
        whole.entries.iter().flat_map(|(names, _)| names.provider.iter().map(String::as_str)).collect();
    let models: Vec<String> = whole
        .entries
        .iter()
        .flat_map(|(names, _)| &names.model)
        .map(|model| model.replace('*', "x"))
        .collect();
    assert!(providers.len() > 2 && models.len() > 10);
    for provider in providers.into_iter().map(Some).chain([Some("unheard-of"), None]) {
        let part = Prices::builtin_for(provider).unwrap();
        for model in &models {
            assert_eq!(part.find(provider, model), whole.find(provider, model), "{provider:?} {model}");
        }
    }
}
