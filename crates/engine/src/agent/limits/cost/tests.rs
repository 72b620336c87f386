//! Charges by price.

use fusee_model::{Price, Usage};

use super::Charges;

const CHEAP: Option<Price> = Some(Price { input: 1.0, output: 0.0, cached: None, cache_write: None });
const DEAR: Option<Price> = Some(Price { input: 3.0, output: 0.0, cached: None, cache_write: None });

fn charges(parts: &[(Option<Price>, u64)]) -> Charges {
    let mut charges = Charges::default();
    for (price, input_tokens) in parts {
        charges.add(*price, &Usage { input_tokens: *input_tokens, ..Usage::default() });
    }
    charges
}

#[test]
fn each_request_costs_what_its_model_costs() {
    let mut all = charges(&[(CHEAP, 1_000_000), (DEAR, 1_000_000)]);
    all.extend(&charges(&[(CHEAP, 2_000_000)]));
    assert_eq!((all.cost_usd(None), all.usage().input_tokens), (Some(6.0), 4_000_000));
}

#[test]
fn one_unknown_price_makes_the_cost_unknown_but_not_the_known_part() {
    let all = charges(&[(CHEAP, 1_000_000), (None, 5)]);
    assert_eq!((all.cost_usd(CHEAP), all.known_usd()), (None, 1.0));
}

#[test]
fn our_own_count_is_the_total_only_if_nothing_was_reported() {
    let mut all = Charges::default();
    all.add_estimated(CHEAP, &Usage { input_tokens: 1_000_000, ..Usage::default() });
    assert_eq!((all.usage().input_tokens, all.cost_usd(None), all.known_usd()), (1_000_000, Some(1.0), 1.0));
    all.extend(&charges(&[(DEAR, 1_000_000)]));
    assert_eq!((all.usage().input_tokens, all.cost_usd(None), all.known_usd()), (1_000_000, Some(3.0), 4.0));
}

#[test]
fn without_requests_the_cost_is_zero_if_the_price_is_known() {
    let none = Charges::default();
    assert_eq!((none.cost_usd(CHEAP).map(f64::to_bits), none.cost_usd(None)), (Some(0), None));
}
