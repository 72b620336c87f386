//! The search of earlier messages.

use super::*;

fn press(
    search: &mut HistorySearch,
    past: &InputHistory,
    code: KeyCode,
    modifiers: KeyModifiers,
) -> SearchOutcome {
    search.key(KeyEvent::new(code, modifiers), past)
}

fn type_in(search: &mut HistorySearch, past: &InputHistory, text: &str) {
    for c in text.chars() {
        assert_eq!(press(search, past, KeyCode::Char(c), KeyModifiers::NONE), SearchOutcome::Open);
    }
}

#[test]
fn the_newest_match_comes_first_and_ctrl_r_goes_to_older_ones() {
    let mut past = InputHistory::default();
    ["fix the parser", "run the tests", "Fix the lexer"].iter().for_each(|text| past.add(text));
    let mut search = HistorySearch::default();
    type_in(&mut search, &past, "fix");
    assert_eq!(search.found.as_deref(), Some("Fix the lexer"));
    press(&mut search, &past, KeyCode::Char('r'), KeyModifiers::CONTROL);
    assert_eq!(search.found.as_deref(), Some("fix the parser"));
    // There is no older one.
    press(&mut search, &past, KeyCode::Char('r'), KeyModifiers::CONTROL);
    assert_eq!(search.found.as_deref(), Some("fix the parser"));
    let taken = press(&mut search, &past, KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(taken, SearchOutcome::Accept("fix the parser".to_owned()));
}

#[test]
fn a_search_without_a_match_leaves_the_input_alone() {
    let mut past = InputHistory::default();
    past.add("one");
    let mut search = HistorySearch::default();
    type_in(&mut search, &past, "onex");
    assert_eq!(search.found, None);
    press(&mut search, &past, KeyCode::Backspace, KeyModifiers::NONE);
    assert_eq!(search.found.as_deref(), Some("one"));
    assert_eq!(press(&mut search, &past, KeyCode::Esc, KeyModifiers::NONE), SearchOutcome::Cancel);
    type_in(&mut search, &past, "x");
    assert_eq!(press(&mut search, &past, KeyCode::Enter, KeyModifiers::NONE), SearchOutcome::Cancel);
}
