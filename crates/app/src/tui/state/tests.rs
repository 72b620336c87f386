//! What keys and events make of the conversation.

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
fn the_first_interruption_ends_the_task_and_a_second_leaves() {
    let mut state = fresh();
    state.began(PLAN, at(0));
    assert_eq!(press(&mut state, KeyCode::Esc, 100), [Effect::Cancel]);
    assert_eq!(control(&mut state, 'c', 5_000), [Effect::Cancel]);
    assert_eq!(control(&mut state, 'c', 6_000), [Effect::Leave]);
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
