//! Snapshots of every state of the chat at three widths.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fusee::engine::approval::ApprovalQuestion;
use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::chat::input_history::InputHistory;
use crate::ui::terminal::UNICODE;
use crate::ui::{AnswerStyle, RunHeader, fixtures};

mod progress;
mod questions;

const PLAN: RunHeader = RunHeader {
    workspace: None,
    max_turns: 50,
    max_tokens: 100_000,
    brief: false,
    answer: AnswerStyle::Verbatim,
    price: None,
};
const WIDTHS: [usize; 3] = [40, 80, 200];

fn fresh() -> ChatState {
    let mut state = ChatState::new(&UNICODE, "/nowhere".into(), InputHistory::default());
    state.set_status("  ollama:qwen2.5-coder · /help · approve auto · sandbox namespaces".to_owned());
    state
}

fn press(state: &mut ChatState, keys: &str, at: u64) {
    for c in keys.chars() {
        state.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE), Duration::from_millis(at));
    }
}

/// The rows at each width, with the cursor drawn as a bar.
fn shown(state: &ChatState, at: u64) -> String {
    let mut text = String::new();
    for columns in WIDTHS {
        let frame = draw(state, columns, 24, Duration::from_millis(at));
        text.push_str(&format!("-- {columns}\n"));
        for (index, row) in frame.rows.iter().enumerate() {
            assert!(row.width() <= columns, "{row:?}");
            let mut painted = row.paint(false).trim_end().to_owned();
            if index == frame.cursor.0 {
                while unicode_width::UnicodeWidthStr::width(painted.as_str()) < frame.cursor.1 {
                    painted.push(' ');
                }
                painted.push('▏');
            }
            text.push_str(&painted);
            text.push('\n');
        }
    }
    text
}

/// The state after the first `ms` milliseconds of the fixture.
fn until(ms: u64) -> ChatState {
    let mut state = fresh();
    state.on_started(PLAN, Duration::ZERO);
    for (at, event) in fixtures::scene().iter().filter(|(at, _)| at.as_millis() <= u128::from(ms)) {
        state.take(event, *at);
    }
    state.take_finished_rows(80);
    state
}

#[test]
fn nothing_yet() {
    assert_snapshot!(shown(&fresh(), 0));
}

#[test]
fn several_lines_typed_with_wide_right_to_left_and_control_characters() {
    let mut state = fresh();
    state.paste(
        "日本語 and עברית\r\n\u{1b}[2J is harmless, and this goes on beyond the edge of a narrow terminal",
    );
    assert_snapshot!(shown(&state, 0));
}

#[test]
fn completing_a_command() {
    let mut state = fresh();
    press(&mut state, "/", 0);
    assert_snapshot!(shown(&state, 0));
}

#[test]
fn the_model_writes_while_messages_wait() {
    let mut state = until(9_300);
    press(&mut state, "next", 9_300);
    state.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), Duration::from_millis(9_300));
    press(&mut state, "half", 9_300);
    assert_snapshot!(shown(&state, 9_350));
}

#[test]
fn a_command_runs() {
    assert_snapshot!(shown(&until(2_000), 2_250));
}

#[test]
fn a_command_with_a_hundred_thousand_lines_keeps_its_tail() {
    use fusee::engine::journal::{Branch, Event, EventRecord};
    let mut state = until(1_010);
    for n in 0..100_000 {
        let event = Event::ToolOutput { call_id: "c2".into(), text: format!("line {n}\u{7}\u{1b}[31m\n") };
        let run = "a-run".parse().unwrap();
        let stamped = EventRecord { seq: 50, ts_ms: 0, run, task: Branch::main(), event };
        state.take(&stamped, Duration::from_millis(1_500));
    }
    assert_snapshot!(shown(&state, 1_600));
}

#[test]
fn a_retry_and_a_cancellation() {
    let mut state = until(2_400);
    let before = shown(&state, 2_500);
    state.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), Duration::from_millis(2_600));
    assert_snapshot!(before + &shown(&state, 2_700));
}

#[test]
fn a_question_about_an_edit_and_a_reason_for_no() {
    let mut state = until(4_500);
    let arguments = json!({"path": "freetime/day.py", "old": "end = b\n", "new": "end = max(a, b)\n"});
    let reason = "this run asks before anything is changed".to_owned();
    let question = ApprovalQuestion { call_id: "c3".into(), name: "edit_file".into(), arguments, reason };
    state.ask(question, Duration::from_millis(4_500));
    let before = shown(&state, 5_000);
    press(&mut state, "nnot like this", 5_000);
    assert_snapshot!(before + &shown(&state, 5_000));
}

#[test]
fn a_question_about_a_command_tells_what_holds_it() {
    let mut state = until(4_503);
    state.set_sandbox("sandboxed: can change only the project, no network");
    let arguments = json!({"command": "git push\u{1b}[2J origin main\nmake 日本語"});
    let reason = "a rule of this project asks about it".to_owned();
    let question = ApprovalQuestion { call_id: "c4".into(), name: "shell".into(), arguments, reason };
    state.ask(question, Duration::from_millis(4_504));
    assert_snapshot!(shown(&state, 5_000));
}

#[test]
fn coming_back_and_leaving() {
    let mut state = fresh();
    state.ask_return("a-run".to_owned(), "Make the failing test pass (5 m)", Duration::ZERO);
    let before = shown(&state, 1_000);
    press(&mut state, "n", 1_000);
    state.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), Duration::from_millis(1_500));
    assert_snapshot!(before + &shown(&state, 1_600));
}

#[test]
fn a_low_terminal_keeps_the_input() {
    let state = until(2_000);
    let frame = draw(&state, 40, 3, Duration::from_millis(2_250));
    assert_eq!(frame.rows.len(), 2);
    assert_eq!(frame.rows[1].paint(false), "> ");
    assert_eq!(frame.cursor, (1, 2));
}

#[test]
fn the_model_thinks_and_then_writes_findings_that_are_shown_when_they_are_checked() {
    let thinking = shown(&until(9_100), 9_150);
    let mut state = fresh();
    state.on_started(RunHeader { answer: AnswerStyle::Rendered, ..PLAN }, Duration::ZERO);
    let of_scene =
        |ms: u64| fixtures::scene().into_iter().filter(move |(at, _)| at.as_millis() <= u128::from(ms));
    for (at, event) in of_scene(10) {
        state.take(&event, at);
    }
    let text = "{\"summary\": \"All is well.\"".to_owned();
    let event = fusee::engine::journal::Event::MessageDelta { text };
    let (run, task) = ("a-run".parse().unwrap(), fusee::engine::journal::Branch::main());
    let stamped = fusee::engine::journal::EventRecord { seq: 9, ts_ms: 0, run, task, event };
    state.take(&stamped, Duration::from_millis(1_500));
    state.take_finished_rows(80);
    assert_snapshot!(thinking + &shown(&state, 1_600));
}

#[test]
fn a_question_about_taking_back() {
    let mut state = fresh();
    let rows = [
        "undo  Make the failing test pass",
        "not undone     what 1 command of the run changed, if anything:",
    ];
    let many =
        (0..20).map(|n| format!("to be put back a/rather/long/path/to/a/file/of/the/project/number_{n}.txt"));
    let rows = rows.into_iter().map(str::to_owned).chain(many);
    let rows = rows.map(|row| StyledLine::styled(Style::Plain, &row)).collect();
    state.ask_undo("a-run".to_owned(), rows, Duration::ZERO);
    assert_snapshot!(shown(&state, 1_000));
}

#[test]
fn what_is_done_scrolls_by_as_rows_of_its_own() {
    let mut text = String::new();
    for columns in WIDTHS {
        let mut state = fresh();
        state.on_started(PLAN, Duration::ZERO);
        for (at, event) in fixtures::scene() {
            state.take(&event, at);
        }
        state.ended(columns);
        text.push_str(&format!("-- {columns}\n"));
        for row in state.take_finished_rows(columns) {
            assert!(row.width() <= columns, "{row:?}");
            text.push_str(row.paint(false).trim_end());
            text.push('\n');
        }
    }
    assert_snapshot!(text);
}
