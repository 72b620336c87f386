//! Tests of the chat's transitions on keys and events.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::*;
use crate::ui::AnswerStyle;
use crate::ui::terminal::ASCII;

const PLAN: RunHeader = RunHeader {
    workspace: None,
    max_turns: 50,
    max_tokens: 100_000,
    brief: false,
    answer: AnswerStyle::Verbatim,
    price: None,
};

fn fresh() -> ChatState {
    ChatState::new(&ASCII, "/nowhere".into(), InputHistory::default())
}

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn press(state: &mut ChatState, code: KeyCode, ms: u64) -> Vec<ChatAction> {
    state.key(KeyEvent::new(code, KeyModifiers::NONE), at(ms))
}

fn control(state: &mut ChatState, c: char, ms: u64) -> Vec<ChatAction> {
    state.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL), at(ms))
}

fn say(state: &mut ChatState, text: &str) -> Vec<ChatAction> {
    state.paste(text);
    press(state, KeyCode::Enter, 0)
}

fn begin(words: &str) -> ChatAction {
    ChatAction::Begin(RunRequest::Words(words.to_owned()))
}

fn question(command: &str) -> ApprovalQuestion {
    ApprovalQuestion {
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
    state.on_started(PLAN, at(0));
    assert_eq!(say(&mut state, "two"), []);
    assert_eq!(say(&mut state, "three\\"), []);
    assert_eq!(state.typed(), "three\n");
    assert_eq!(say(&mut state, "lines"), []);
    assert_eq!(state.ended(80), [begin("two")]);
    state.on_started(PLAN, at(0));
    assert_eq!(state.ended(80), [begin("three\nlines")]);
    assert_eq!(press(&mut state, KeyCode::Up, 0), []);
    assert_eq!(state.typed(), "three\nlines");
}

#[test]
fn what_is_typed_and_what_waits_is_there_again_after_leaving() {
    let folder = tempfile::tempdir().unwrap();
    let open = || ChatState::new(&ASCII, "/nowhere".into(), InputHistory::open(Some(folder.path())));
    let mut state = open();
    state.on_started(PLAN, at(0));
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
    state.on_started(PLAN, at(0));
    for n in 0..MAX_QUEUED {
        say(&mut state, &n.to_string());
    }
    assert_eq!(say(&mut state, "one more"), []);
    assert_eq!(state.typed(), "one more");
}

#[test]
fn the_first_interruption_stops_the_turn_the_second_the_task_and_a_third_leaves() {
    let mut state = fresh();
    state.on_started(PLAN, at(0));
    assert_eq!(press(&mut state, KeyCode::Esc, 100), [ChatAction::StopTurn]);
    // After the timeout an interrupt counts as the first one again.
    assert_eq!(control(&mut state, 'c', 5_000), [ChatAction::StopTurn]);
    assert_eq!(control(&mut state, 'c', 6_000), [ChatAction::Cancel]);
    assert_eq!(control(&mut state, 'c', 7_000), [ChatAction::Leave]);
    state.ended(80);
    state.paste("typed");
    assert_eq!(control(&mut state, 'c', 7_000), []);
    assert_eq!(state.typed(), "");
    press(&mut state, KeyCode::Up, 7_000);
    assert_eq!(state.typed(), "typed");
    control(&mut state, 'u', 7_000);
    assert_eq!(control(&mut state, 'c', 8_000), []);
    assert_eq!(control(&mut state, 'c', 11_000), []);
    assert_eq!(control(&mut state, 'c', 12_000), [ChatAction::Leave]);
    assert_eq!(control(&mut state, 'd', 12_000), [ChatAction::Leave]);
}

#[test]
fn after_a_stop_words_go_to_the_task_and_another_interruption_ends_it() {
    let mut state = fresh();
    state.on_started(PLAN, at(0));
    press(&mut state, KeyCode::Esc, 100);
    assert_eq!(state.ask_free_text(FreeTextPurpose::AfterStop), []);
    assert_eq!(say(&mut state, "be brief"), [ChatAction::SendText("be brief".into())]);
    // The next interrupt is a first one again, and an empty input lets the task continue.
    assert_eq!(press(&mut state, KeyCode::Esc, 300), [ChatAction::StopTurn]);
    assert_eq!(state.ask_free_text(FreeTextPurpose::AfterStop), []);
    assert_eq!(press(&mut state, KeyCode::Enter, 400), [ChatAction::SendText(String::new())]);
    // A message that is already queued is sent.
    assert_eq!(say(&mut state, "the next message"), []);
    assert_eq!(press(&mut state, KeyCode::Esc, 500), [ChatAction::StopTurn]);
    assert_eq!(
        state.ask_free_text(FreeTextPurpose::AfterStop),
        [ChatAction::SendText("the next message".into())]
    );
    // After the stop nothing runs, so an interrupt at any later time cancels the task.
    assert_eq!(press(&mut state, KeyCode::Esc, 600), [ChatAction::StopTurn]);
    assert_eq!(state.ask_free_text(FreeTextPurpose::AfterStop), []);
    assert_eq!(press(&mut state, KeyCode::Esc, 9_000), [ChatAction::Cancel]);
}

#[test]
fn a_question_of_the_model_is_answered_in_words_and_an_interruption_stops_the_turn() {
    let mut state = fresh();
    state.on_started(PLAN, at(0));
    assert_eq!(state.ask_free_text(FreeTextPurpose::Answer("Which?".into())), []);
    assert_eq!(press(&mut state, KeyCode::Enter, 100), []);
    assert_eq!(say(&mut state, "the first"), [ChatAction::SendText("the first".into())]);
    state.ask_free_text(FreeTextPurpose::Answer("Why?".into()));
    assert_eq!(press(&mut state, KeyCode::Esc, 200), [ChatAction::StopTurn]);
    assert_eq!(state.free_text, None);
}

#[test]
fn what_is_typed_as_a_question_appears_is_no_answer_to_it() {
    let mut state = fresh();
    state.on_started(PLAN, at(0));
    assert_eq!(state.ask(question("rm x"), at(1_000)), []);
    assert_eq!(press(&mut state, KeyCode::Char('y'), 1_100), []);
    assert_eq!(state.typed(), "y");
    let yes = ChatAction::Answer(ApprovalAnswer::yes());
    assert_eq!(press(&mut state, KeyCode::Char('y'), 1_500), [yes]);
    assert_eq!(state.typed(), "y");
}

#[test]
fn an_answer_lasts_once_or_for_the_conversation_and_no_has_a_reason() {
    let mut state = fresh();
    state.on_started(PLAN, at(0));
    let yes = ChatAction::Answer(ApprovalAnswer::yes());
    state.ask(question("make"), at(0));
    assert_eq!(press(&mut state, KeyCode::Char('s'), 1_000), std::slice::from_ref(&yes));
    assert_eq!(state.ask(question("make"), at(2_000)), [yes]);
    assert_eq!(state.ask(question("make clean"), at(2_000)), []);
    press(&mut state, KeyCode::Char('n'), 3_000);
    press(&mut state, KeyCode::Char('n'), 3_000);
    press(&mut state, KeyCode::Char('o'), 3_000);
    let no = ApprovalAnswer::no("the user said no: no");
    assert_eq!(press(&mut state, KeyCode::Enter, 3_000), [ChatAction::Answer(no)]);
    assert!(state.question.is_none());
}

#[test]
fn commands_are_done_and_wrong_ones_stay_to_be_mended() {
    let mut state = fresh();
    assert_eq!(say(&mut state, "/runs"), [ChatAction::Command(SlashCommand::Runs)]);
    assert_eq!(say(&mut state, "/rnus"), []);
    assert_eq!(state.typed(), "/rnus");
    control(&mut state, 'u', 0);
    assert_eq!(say(&mut state, "/quit"), [ChatAction::Leave]);
    state.paste("/he");
    press(&mut state, KeyCode::Tab, 0);
    assert_eq!(state.typed(), "/help ");
    assert_eq!(control(&mut state, 'g', 0), [ChatAction::Edit]);
}
