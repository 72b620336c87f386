//! Tests of the chat's transitions on keys and events.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::*;
use crate::face::Wording;
use crate::face::terminal::ASCII;

const PLAN: Plan =
    Plan { max_turns: 50, max_tokens: 100_000, brief: false, answer: Wording::AsSaid, price: None };

fn fresh() -> State {
    State::new(&ASCII, "/nowhere".into(), Past::default())
}

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn press(state: &mut State, code: KeyCode, ms: u64) -> Vec<Effect> {
    state.key(KeyEvent::new(code, KeyModifiers::NONE), at(ms))
}

fn control(state: &mut State, c: char, ms: u64) -> Vec<Effect> {
    state.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL), at(ms))
}

fn say(state: &mut State, text: &str) -> Vec<Effect> {
    state.paste(text);
    press(state, KeyCode::Enter, 0)
}

fn begin(words: &str) -> Effect {
    Effect::Begin(Errand::Words(words.to_owned()))
}

fn question(command: &str) -> Question {
    Question {
        call_id: "c".into(),
        name: "shell".into(),
        arguments: json!({"command": command}),
        reason: "why".into(),
    }
}

#[test]
fn a_message_begins_a_task_and_those_typed_meanwhile_wait() {
    let mut state = fresh();
    assert_eq!(say(&mut state, "one"), [begin("one")]);
    state.began(PLAN, at(0));
    assert_eq!(say(&mut state, "two"), []);
    assert_eq!(say(&mut state, "three\\"), []);
    assert_eq!(state.typed(), "three\n");
    assert_eq!(say(&mut state, "lines"), []);
    assert_eq!(state.ended(80), [begin("two")]);
    state.began(PLAN, at(0));
    assert_eq!(state.ended(80), [begin("three\nlines")]);
    assert_eq!(press(&mut state, KeyCode::Up, 0), []);
    assert_eq!(state.typed(), "three\nlines");
}

#[test]
fn what_is_typed_and_what_waits_is_there_again_after_leaving() {
    let folder = tempfile::tempdir().unwrap();
    let open = || State::new(&ASCII, "/nowhere".into(), Past::open(Some(folder.path())));
    let mut state = open();
    state.began(PLAN, at(0));
    say(&mut state, "this waits");
    state.paste("half a mess");
    assert_eq!(state.leave(), 1);
    let mut state = open();
    press(&mut state, KeyCode::Up, 0);
    assert_eq!(state.typed(), "half a mess");
    press(&mut state, KeyCode::Up, 0);
    assert_eq!(state.typed(), "this waits");
}

#[test]
fn a_full_queue_leaves_the_message_where_it_is() {
    let mut state = fresh();
    state.began(PLAN, at(0));
    for n in 0..QUEUE {
        say(&mut state, &n.to_string());
    }
    assert_eq!(say(&mut state, "one more"), []);
    assert_eq!(state.typed(), "one more");
}

#[test]
fn the_first_interruption_stops_the_turn_the_second_the_task_and_a_third_leaves() {
    let mut state = fresh();
    state.began(PLAN, at(0));
    assert_eq!(press(&mut state, KeyCode::Esc, 100), [Effect::StopTurn]);
    // After the timeout an interrupt counts as the first one again.
    assert_eq!(control(&mut state, 'c', 5_000), [Effect::StopTurn]);
    assert_eq!(control(&mut state, 'c', 6_000), [Effect::Cancel]);
    assert_eq!(control(&mut state, 'c', 7_000), [Effect::Leave]);
    state.ended(80);
    state.paste("typed");
    assert_eq!(control(&mut state, 'c', 7_000), []);
    assert_eq!(state.typed(), "");
    press(&mut state, KeyCode::Up, 7_000);
    assert_eq!(state.typed(), "typed");
    control(&mut state, 'u', 7_000);
    assert_eq!(control(&mut state, 'c', 8_000), []);
    assert_eq!(control(&mut state, 'c', 11_000), []);
    assert_eq!(control(&mut state, 'c', 12_000), [Effect::Leave]);
    assert_eq!(control(&mut state, 'd', 12_000), [Effect::Leave]);
}

#[test]
fn after_a_stop_words_go_to_the_task_and_another_interruption_ends_it() {
    let mut state = fresh();
    state.began(PLAN, at(0));
    press(&mut state, KeyCode::Esc, 100);
    assert_eq!(state.want(Wanted::WhatNow), []);
    assert_eq!(say(&mut state, "be brief"), [Effect::Say("be brief".into())]);
    // The next interrupt is a first one again, and an empty input lets the task continue.
    assert_eq!(press(&mut state, KeyCode::Esc, 300), [Effect::StopTurn]);
    assert_eq!(state.want(Wanted::WhatNow), []);
    assert_eq!(press(&mut state, KeyCode::Enter, 400), [Effect::Say(String::new())]);
    // A message that is already queued is sent.
    assert_eq!(say(&mut state, "the next message"), []);
    assert_eq!(press(&mut state, KeyCode::Esc, 500), [Effect::StopTurn]);
    assert_eq!(state.want(Wanted::WhatNow), [Effect::Say("the next message".into())]);
    // After the stop nothing runs, so an interrupt at any later time cancels the task.
    assert_eq!(press(&mut state, KeyCode::Esc, 600), [Effect::StopTurn]);
    assert_eq!(state.want(Wanted::WhatNow), []);
    assert_eq!(press(&mut state, KeyCode::Esc, 9_000), [Effect::Cancel]);
}

#[test]
fn a_question_of_the_model_is_answered_in_words_and_an_interruption_stops_the_turn() {
    let mut state = fresh();
    state.began(PLAN, at(0));
    assert_eq!(state.want(Wanted::Answer("Which?".into())), []);
    assert_eq!(press(&mut state, KeyCode::Enter, 100), []);
    assert_eq!(say(&mut state, "the first"), [Effect::Say("the first".into())]);
    state.want(Wanted::Answer("Why?".into()));
    assert_eq!(press(&mut state, KeyCode::Esc, 200), [Effect::StopTurn]);
    assert_eq!(state.wanted, None);
}

#[test]
fn what_is_typed_as_a_question_appears_is_no_answer_to_it() {
    let mut state = fresh();
    state.began(PLAN, at(0));
    assert_eq!(state.ask(question("rm x"), at(1_000)), []);
    assert_eq!(press(&mut state, KeyCode::Char('y'), 1_100), []);
    assert_eq!(state.typed(), "y");
    let yes = Effect::Answer(Answer::yes());
    assert_eq!(press(&mut state, KeyCode::Char('y'), 1_500), [yes]);
    assert_eq!(state.typed(), "y");
}

#[test]
fn an_answer_lasts_once_or_for_the_conversation_and_no_has_a_reason() {
    let mut state = fresh();
    state.began(PLAN, at(0));
    let yes = Effect::Answer(Answer::yes());
    state.ask(question("make"), at(0));
    assert_eq!(press(&mut state, KeyCode::Char('s'), 1_000), std::slice::from_ref(&yes));
    assert_eq!(state.ask(question("make"), at(2_000)), [yes]);
    assert_eq!(state.ask(question("make clean"), at(2_000)), []);
    press(&mut state, KeyCode::Char('n'), 3_000);
    press(&mut state, KeyCode::Char('n'), 3_000);
    press(&mut state, KeyCode::Char('o'), 3_000);
    let no = Answer::no("the user said no: no");
    assert_eq!(press(&mut state, KeyCode::Enter, 3_000), [Effect::Answer(no)]);
    assert!(state.question.is_none());
}

#[test]
fn commands_are_done_and_wrong_ones_stay_to_be_mended() {
    let mut state = fresh();
    assert_eq!(say(&mut state, "/runs"), [Effect::Command(Slash::Runs)]);
    assert_eq!(say(&mut state, "/rnus"), []);
    assert_eq!(state.typed(), "/rnus");
    control(&mut state, 'u', 0);
    assert_eq!(say(&mut state, "/quit"), [Effect::Leave]);
    state.paste("/he");
    press(&mut state, KeyCode::Tab, 0);
    assert_eq!(state.typed(), "/help ");
    assert_eq!(control(&mut state, 'g', 0), [Effect::Edit]);
}
