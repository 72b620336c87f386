//! The terminal UI at three widths, and that no part of the redrawn area is left on the screen.

use std::sync::Arc;

use insta::assert_snapshot;
use parking_lot::Mutex;

use super::*;
use crate::ui::line::StyledLine;
use crate::ui::{AnswerStyle, fixtures};

const PLAN: RunHeader = RunHeader {
    workspace: None,
    max_turns: 50,
    max_tokens: 100_000,
    brief: false,
    answer: AnswerStyle::Verbatim,
    price: None,
};

fn painted(lines: &[StyledLine]) -> String {
    lines.iter().map(|line| line.paint(false).trim_end().to_owned() + "\n").collect()
}

/// Rows as they scroll by, and after each event the area below them, marked with a bar.
fn film(columns: usize) -> String {
    let mut view = View::new(PLAN, &glyphs::UNICODE);
    let (mut film, mut last) = (String::new(), String::new());
    for (at, event) in fixtures::scene() {
        view.take(&event, at);
        film.push_str(&painted(&view.take_finished_rows(columns)));
        let area = painted(&view.render_progress(columns, 24, at, false));
        if area != last {
            film.extend(area.lines().map(|line| format!("        ┆{line}\n")));
            last = area;
        }
    }
    film
}

#[test]
fn a_run_in_80_columns() {
    assert_snapshot!(film(80));
}

#[test]
fn a_run_in_40_columns() {
    assert_snapshot!(film(40));
}

#[test]
fn a_run_in_200_columns() {
    assert_snapshot!(film(200));
}

#[test]
fn a_retry_counts_down_and_a_cancellation_is_said() {
    let mut view = View::new(PLAN, &glyphs::ASCII);
    let all = fixtures::scene();
    let retry = all.iter().position(|(_, event)| matches!(event.event, Event::Retry { .. })).unwrap();
    all[..=retry].iter().for_each(|(at, event)| view.take(event, *at));
    view.take_finished_rows(60);
    let at = |ms| painted(&view.render_progress(60, 24, Duration::from_millis(ms), false));
    assert_eq!(at(2400).lines().next(), Some("  | attempt 2 in 1.5 s · the server is overloaded"));
    assert_eq!(at(3450).lines().next(), Some("  - attempt 2 in 500 ms · the server is overloaded"));
    let cancelled = painted(&view.render_progress(60, 24, Duration::from_secs(3), true));
    assert_eq!(cancelled.lines().next(), Some("  cancelling; ctrl-c again exits at once"));
}

#[test]
fn a_low_terminal_keeps_the_newest_rows() {
    let mut view = View::new(PLAN, &glyphs::UNICODE);
    let all = fixtures::scene();
    let last = all.iter().rposition(|(_, event)| matches!(event.event, Event::ToolOutput { .. })).unwrap();
    all[..=last].iter().for_each(|(at, event)| view.take(event, *at));
    assert_eq!(view.render_progress(80, 24, Duration::from_secs(2), false).len(), 5);
    assert_eq!(view.render_progress(80, 3, Duration::from_secs(2), false).len(), 2);
}

#[test]
fn a_failure_tells_why_and_what_to_do() {
    let mut view = View::new(PLAN, &glyphs::UNICODE);
    view.take(&fixtures::failed_end(), Duration::ZERO);
    assert_snapshot!(painted(&view.take_finished_rows(60)));
}

#[test]
fn a_question_about_an_edit_shows_the_change() {
    let mut view = View::new(PLAN, &glyphs::UNICODE);
    let (_, mut asked) = fixtures::scene().into_iter().next().unwrap();
    let arguments = serde_json::json!({"path": "a.py", "old": "x = 1\n", "new": "x = \u{1b}2\n"});
    let reason = "this run asks before anything is changed".to_owned();
    asked.event =
        Event::ApprovalRequested { call_id: "c".into(), name: "edit_file".into(), arguments, reason };
    view.take(&asked, Duration::ZERO);
    let text = painted(&view.take_finished_rows(80));
    assert!(text.contains("    a.py\n    - x = 1\n    + x = ␛2\n"), "{text}");
}

#[test]
fn text_that_lost_pieces_on_the_way_is_shown_whole() {
    let mut view = View::new(PLAN, &glyphs::UNICODE);
    let all = fixtures::scene();
    let of = |kind: fn(&Event) -> bool| all.iter().find(|(_, event)| kind(&event.event)).unwrap().1.clone();
    let mut piece = of(|event| matches!(event, Event::MessageDelta { .. }));
    piece.event = Event::MessageDelta { text: "tests first".into() };
    view.take(&piece, Duration::ZERO);
    view.take(&of(|event| matches!(event, Event::Message { .. })), Duration::ZERO);
    let text = painted(&view.take_finished_rows(80));
    assert!(text.contains("I will look at the tests first, and then at what they test.\n"), "{text}");
}

/// A fake terminal whose contents can be inspected.
#[derive(Clone, Default)]
struct Glass(Arc<Mutex<Vec<u8>>>);

impl Write for Glass {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Emulates the escape sequences we use and returns the rows of the resulting screen.
fn rows_after(bytes: &str, columns: usize) -> Vec<String> {
    let (mut rows, mut row, mut column) = (vec![Vec::<char>::new()], 0_usize, 0_usize);
    let mut rest = bytes.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                (row, column) = (row + 1, 0);
                if rows.len() <= row {
                    rows.push(Vec::new());
                }
            }
            '\u{1b}' => {
                assert_eq!(rest.next(), Some('['));
                let mut parameters = String::new();
                let action = loop {
                    match rest.next().unwrap() {
                        letter if letter.is_ascii_alphabetic() => break letter,
                        other => parameters.push(other),
                    }
                };
                match action {
                    'A' => row = row.checked_sub(parameters.parse().unwrap()).expect("never above the top"),
                    'K' => rows[row].truncate(column),
                    'J' => {
                        rows[row].truncate(column);
                        rows.truncate(row + 1);
                    }
                    'm' | 'h' | 'l' => {}
                    other => panic!("what is {other}?"),
                }
            }
            other => {
                assert!(!other.is_control(), "{other:?} reached the terminal");
                let line = &mut rows[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = other;
                column += 1;
                assert!(column <= columns, "a row is wider than the terminal");
            }
        }
    }
    rows.into_iter().map(|row| row.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn nothing_is_left_of_the_area_when_the_run_is_over() {
    let glass = Glass::default();
    let appearance = Appearance { colour: true, glyphs: &glyphs::UNICODE, answer_shows: true };
    let mut ui = TerminalUi::new(glass.clone(), PLAN, appearance, CancellationToken::new(), || (60, 24));
    for (_, event) in fixtures::scene() {
        ui.show(&event).unwrap();
        // Drawn after every event, not only when a frame is due.
        ui.tick().unwrap();
    }
    ui.close().unwrap();
    let bytes = String::from_utf8(glass.0.lock().clone()).unwrap();
    assert_snapshot!(rows_after(&bytes, 60).join("\n"));
}

#[test]
fn frames_are_few_however_many_events_come() {
    let glass = Glass::default();
    let appearance = Appearance { colour: false, glyphs: &glyphs::UNICODE, answer_shows: true };
    let mut ui = TerminalUi::new(glass.clone(), PLAN, appearance, CancellationToken::new(), || (60, 24));
    let begun = Instant::now();
    let (_, piece) = fixtures::scene()
        .into_iter()
        .find(|(_, event)| matches!(event.event, Event::MessageDelta { .. }))
        .unwrap();
    for _ in 0..2_000 {
        ui.show(&piece).unwrap();
    }
    let frames = String::from_utf8(glass.0.lock().clone()).unwrap().matches("\u{1b}[?2026h").count();
    let most = begun.elapsed().as_millis() as usize / FRAME.as_millis() as usize + 1;
    assert!(frames <= most, "{frames} frames, at most {most} were due");
}
