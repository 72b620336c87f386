//! Counting of turns, tokens, time and cost.

use fusee_journal::StepResult;
use fusee_journal::event::Event;
use fusee_model::{Price, Reply, Usage};

use super::{Limits, Meter};
use crate::agent::limits::budget::{Remaining, Spent};
use crate::agent::limits::cost::Charges;

const PRICE: Option<Price> = Some(Price { input: 1.0, output: 0.0, cached: None, cache_write: None });

fn reply(input_tokens: u64) -> Reply {
    let usage = Some(Usage { input_tokens, output_tokens: 7, ..Usage::default() });
    Reply { text: "words".to_owned(), usage, ..Reply::default() }
}

fn charges(price: Option<Price>, input_tokens: u64) -> Charges {
    let mut charges = Charges::default();
    charges.add(price, &Usage { input_tokens, ..Usage::default() });
    charges
}

#[test]
fn steps_add_up_and_use_the_time_that_is_left() {
    let mut meter = Meter::new(1_000, Spent { active_ms: 500, ..Spent::default() });
    meter.record(&StepResult { value: (), at_ms: 3_000, duration_ms: 700, replayed: false });
    meter.record(&StepResult { value: (), at_ms: 2_000, duration_ms: 100, replayed: true });
    assert_eq!((meter.total(0).active_ms, meter.elapsed_ms()), (800, 2_000));
    let limits = Limits { task_timeout_s: Some(2), ..Limits::default() };
    assert_eq!((meter.left_ms(&limits), meter.left_ms(&Limits::default())), (Some(700), None));
}

#[test]
fn a_turn_reports_what_happened_since_it_began() {
    let mut meter = Meter::new(0, Spent { active_ms: 10, ..Spent::default() });
    assert!(meter.start_turn() && !meter.start_turn());
    meter.count_reply(&reply(3), 99, Some(2));
    meter.spent.active_ms += 5;
    let Event::TurnComplete { output_tokens, duration_ms, wait_ms, .. } =
        meter.complete_turn(0, "main:0".to_owned())
    else {
        panic!("not a turn")
    };
    assert_eq!((output_tokens, duration_ms, wait_ms, meter.start_turn()), (7, 5, Some(2), true));
}

#[test]
fn subtasks_count_with_their_turns_and_at_their_prices() {
    let mut meter = Meter::default();
    meter.charge(PRICE, &reply(1_000_000), Usage::default());
    let dear = PRICE.map(|price| Price { input: 2.0, ..price });
    let charges = charges(dear, 1_000_000);
    meter.spent.add(&Spent { turns: 4, charges, active_ms: 30, ..Spent::default() });
    let total = meter.total(1);
    assert_eq!((total.turns, meter.usage(0).subtask_turns, total.active_ms), (5, 4, 30));
    assert_eq!((total.charges.cost_usd(None), total.metrics().input_tokens), (Some(3.0), 2_000_000));
}

#[test]
fn a_reply_without_a_reported_usage_is_charged_by_our_own_count() {
    let mut meter = Meter::default();
    let estimated = Usage { input_tokens: 1_000_000, output_tokens: 20, ..Usage::default() };
    meter.charge(PRICE, &Reply { text: "words".to_owned(), ..Reply::default() }, estimated);
    assert_eq!((meter.total(1).tokens(), meter.usage(0).cost.usd), (1_000_020, 1.0));
}

#[test]
fn earlier_parts_count_towards_the_limits_of_the_work_but_not_as_this_task() {
    let before = Spent { turns: 7, charges: charges(PRICE, 2_000_000), active_ms: 40, ..Spent::default() };
    let mut meter = Meter::new(0, before);
    meter.charge(PRICE, &reply(1_000_000), Usage::default());
    let limits = Limits { budget_usd: Some(4.0), max_turns: 10, ..Limits::default() };
    let left = Remaining { turns: 9, ms: None, usd: Some(1.0), context_tokens: Some(4_096) };
    assert_eq!(meter.remaining(&limits, 1, Some(4_096)), left);
    let usage = meter.usage(0);
    assert_eq!((usage.cost.usd, usage.active_ms, usage.subtask_turns), (3.0, 40, 0));
    assert_eq!(meter.total(1).charges.cost_usd(None), Some(1.0));
}
