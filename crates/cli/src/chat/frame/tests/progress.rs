//! Frames of a running task: progress, cost and output.

use fusee::engine::journal::event::{Event, PhaseSource};
use fusee::engine::journal::{Branch, EventRecord};
use fusee::engine::model::price::Price;
use insta::assert_snapshot;

use super::*;

fn take(state: &mut ChatState, at: u64, event: Event) {
    let run = "a-run".parse().unwrap();
    let stamped = EventRecord { seq: 90, ts_ms: 0, run, task: Branch::main(), event };
    state.take(&stamped, Duration::from_millis(at));
}

/// A task with a price, after the first `ms` milliseconds of the fixture.
fn priced(ms: u64) -> ChatState {
    let price = Price { input: 3.0, output: 15.0, cached: None, cache_write: None };
    let mut state = fresh();
    state.on_started(RunHeader { price: Some(price), ..PLAN }, Duration::ZERO);
    for (at, event) in fixtures::scene().iter().filter(|(at, _)| at.as_millis() <= u128::from(ms)) {
        state.take(event, *at);
    }
    state
}

#[test]
fn before_the_first_turn_there_is_no_figure() {
    assert_snapshot!(shown(&priced(0), 5));
}

#[test]
fn the_stage_and_the_cost_stand_in_the_status_line() {
    let mut state = priced(2_301);
    take(&mut state, 2_301, Event::StageStarted { stage: "plan".into(), label: "Plan".into(), attempt: 1 });
    take(
        &mut state,
        2_302,
        Event::TurnStart {
            turn_index: 1,
            turn_id: "t".into(),
            input_tokens: 81_000,
            max_turns: None,
            max_input_tokens: None,
        },
    );
    state.take_finished_rows(80);
    let stage = shown(&state, 62_000);
    let label = "Implement what was planned, and nothing else".to_owned();
    take(&mut state, 2_303, Event::StageStarted { stage: "implement".into(), label, attempt: 2 });
    state.take_finished_rows(80);
    assert_snapshot!(stage + &shown(&state, 3_700_000));
}

#[test]
fn the_phase_stands_there_too() {
    let mut state = priced(10);
    let phase =
        Event::PhaseState { phase: "evaluation".into(), source: PhaseSource::default(), turn_index: 0 };
    take(&mut state, 20, phase);
    state.take_finished_rows(80);
    assert_snapshot!(shown(&state, 1_000));
}

#[test]
fn words_and_output_in_any_script_stay_in_their_rows_and_control_characters_are_harmless() {
    let mut state = until(1_010);
    let text = "שלום עולם, \u{202e}reversed\u{202c} and 漢字かな交じり文は二桁の幅を持つので切る所に気を付ける\nover\r\u{1b}]0;title\u{7}\t|\u{8}\u{8}\n";
    take(&mut state, 1_100, Event::ToolOutput { call_id: "c2".into(), text: text.to_owned() });
    let output = shown(&state, 1_200);
    let mut state = until(10);
    take(&mut state, 900, Event::MessageDelta { text: text.to_owned() });
    assert_snapshot!(output + &shown(&state, 950));
}

#[test]
fn a_run_that_was_cut_off_goes_on() {
    let mut state = fresh();
    state.on_started(PLAN, Duration::ZERO);
    take(&mut state, 0, Event::TaskResumed { from_seq: 9, amended: None });
    take(
        &mut state,
        0,
        Event::TurnStart {
            turn_index: 4,
            turn_id: "t".into(),
            input_tokens: 9_000,
            max_turns: Some(5),
            max_input_tokens: Some(16_384),
        },
    );
    let mut text = String::new();
    for row in state.take_finished_rows(80) {
        text.push_str(row.paint(false).trim_end());
        text.push('\n');
    }
    assert_snapshot!(text + &shown(&state, 100));
}
