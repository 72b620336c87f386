//! Snapshots of the complete plain output.

use insta::assert_snapshot;

use super::*;
use crate::ui::{AnswerStyle, fixtures};

fn shown(events: impl IntoIterator<Item = EventRecord>) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut ui = PlainUi::new(
        &mut out,
        &mut err,
        RunHeader {
            workspace: None,
            max_turns: 50,
            max_tokens: 100_000,
            brief: false,
            answer: AnswerStyle::Verbatim,
            price: None,
        },
    );
    for event in events {
        ui.show(&event).unwrap();
    }
    ui.close().unwrap();
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn the_answer_alone_goes_to_stdout_and_a_line_for_everything_to_stderr() {
    let (out, err) = shown(fixtures::scene().into_iter().map(|(_, event)| event));
    assert_snapshot!(out);
    assert_snapshot!(err);
}

#[test]
fn a_failure_has_no_answer_and_names_the_next_step() {
    let (out, err) = shown([fixtures::failed_end()]);
    assert_eq!(out, "");
    assert_snapshot!(err);
}
