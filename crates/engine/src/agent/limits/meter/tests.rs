//! Counting of turns, tokens, time and cost.

use fusee_journal::StepResult;
use fusee_journal::event::Event;
use fusee_model::{Price, Reply, Usage};

use super::{Limits, Meter};
use crate::agent::limits::cost::Charges;
use crate::agent::tool_calls::subtask_tool::Spent;

const PRICE: Option<Price> = Some(Price { input: 1.0, output: 0.0, cached: None, cache_write: None });

fn reply(input_tokens: u64) -> Reply {
    let usage = Some(Usage { input_tokens, output_tokens: 7, ..Usage::default() });
    Reply { text: "words".to_owned(), usage, ..Reply::default() }
}

#[test]
fn steps_add_up_and_use_the_time_that_is_left() {
    let mut meter = Meter::new(1_000, 500);
    meter.record(&StepResult { value: (), at_ms: 3_000, duration_ms: 700, replayed: false });
    meter.record(&StepResult { value: (), at_ms: 2_000, duration_ms: 100, replayed: true });
    assert_eq!((meter.active_ms, meter.elapsed_ms()), (1_300, 2_000));
    let limits = Limits { task_timeout_s: Some(2), ..Limits::default() };
    assert_eq!((meter.left_ms(&limits), meter.left_ms(&Limits::default())), (Some(700), None));
}

#[test]
fn a_turn_reports_what_happened_since_it_began() {
    let mut meter = Meter::new(0, 10);
    assert!(meter.start_turn() && !meter.start_turn());
    meter.count_reply(&reply(3), 99);
    meter.active_ms += 5;
    let Event::TurnComplete { output_tokens, duration_ms, .. } = meter.complete_turn(0, "main:0".to_owned())
    else {
        panic!("not a turn")
    };
    assert_eq!((output_tokens, duration_ms, meter.start_turn()), (7, 5, true));
}

#[test]
fn subtasks_count_with_their_turns_and_at_their_prices() {
    let mut meter = Meter::new(0, 0);
    meter.charge(PRICE, &reply(1_000_000), 0);
    let mut charges = Charges::default();
    let dear = PRICE.map(|price| Price { input: 2.0, ..price });
    charges.add(dear, &Usage { input_tokens: 1_000_000, ..Usage::default() });
    meter.spend(&Spent { turns: 4, charges, active_ms: 30 });
    assert_eq!((meter.all_turns(1), meter.usage(0).subtask_turns, meter.active_ms), (5, 4, 30));
    assert_eq!((meter.charges.cost_usd(None), meter.metrics(1).input_tokens), (Some(3.0), 2_000_000));
}
