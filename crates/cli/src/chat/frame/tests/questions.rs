//! Frames with questions, completions and queued messages.

use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::chat::complete::TaskCandidate;
use crate::chat::question_queue::FreeTextPurpose;

fn enter(state: &mut ChatState, at: u64) {
    state.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), Duration::from_millis(at));
}

fn escape(state: &mut ChatState, at: u64) {
    state.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), Duration::from_millis(at));
}

#[test]
fn the_model_asks_and_the_answer_is_being_typed() {
    let mut state = until(2_302);
    let question = "Which of these shall it be?\n1. the short one \u{1b}[2J\n2. הארוך, which goes on for longer than \
                    a narrow terminal is wide";
    state.ask_free_text(FreeTextPurpose::Answer(question.to_owned()));
    let before = shown(&state, 3_000);
    press(&mut state, "the first", 3_000);
    assert_snapshot!(before + &shown(&state, 3_000));
}

#[test]
fn a_turn_is_being_stopped_has_stopped_and_the_task_is_being_ended() {
    let mut state = until(2_000);
    escape(&mut state, 2_100);
    let stopping = shown(&state, 2_200);
    state.ask_free_text(FreeTextPurpose::AfterStop);
    let stopped = shown(&state, 2_300);
    press(&mut state, "leave the tests alone", 2_400);
    let typed = shown(&state, 2_400);
    escape(&mut state, 6_000);
    assert_snapshot!(stopping + &stopped + &typed + &shown(&state, 6_100));
}

#[test]
fn more_messages_wait_than_are_named() {
    let mut state = until(2_000);
    for message in ["one", "two\nin two lines", "/review src --focus security", "four", "five"] {
        state.paste(message);
        enter(&mut state, 2_000);
    }
    assert_snapshot!(shown(&state, 2_250));
}

#[test]
fn a_long_text_is_typed_and_shown_around_the_cursor() {
    let mut state = fresh();
    state.paste(&(1..=12).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n"));
    state.key(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE), Duration::ZERO);
    assert_snapshot!(shown(&state, 0));
}

#[test]
fn completing_a_path_and_the_inputs_of_a_task() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["src/main.rs", "src/日本語.rs", "src/\u{1b}[31m.rs", "sample.txt", ".hidden"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let mut state = ChatState::new(&UNICODE, folder.path().to_owned(), InputHistory::default());
    press(&mut state, "look at @s", 0);
    let top = shown(&state, 0);
    press(&mut state, "rc/", 0);
    let inside = shown(&state, 0);
    let mut state = fresh();
    press(&mut state, "/task ", 0);
    let offer =
        |name: &str| TaskCandidate { name: name.to_owned(), inputs: vec!["file".into(), "style".into()] };
    state.set_tasks(vec![offer("explain"), offer("translate")]);
    let names = shown(&state, 0);
    press(&mut state, "explain file=a ", 0);
    assert_snapshot!(top + &inside + &names + &shown(&state, 0));
}

#[test]
fn questions_about_a_patch_a_new_file_and_a_tool_of_a_server() {
    let patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\u{7}\n*** End Patch";
    let calls = [
        ("apply_patch", json!({"patch": patch})),
        ("write_file", json!({"path": "new.txt", "content": "first\nsecond\n"})),
        ("mcp__files__move", json!({"from": "a", "to": "b"})),
    ];
    let mut text = String::new();
    for (name, arguments) in calls {
        let mut state = until(2_302);
        let reason = "this run asks before anything is changed".to_owned();
        let question = ApprovalQuestion { call_id: "c9".into(), name: name.into(), arguments, reason };
        state.ask(question, Duration::from_millis(2_302));
        text.push_str(&shown(&state, 3_000));
    }
    assert_snapshot!(text);
}
