//! Parsing of typed answers.

use super::*;

#[test]
fn yes_and_no_are_understood_and_nothing_else_is_taken_for_them() {
    let decided = |line| match parse_line(line) {
        Some(TypedAnswer::Decision(answer)) => Some(answer),
        _ => None,
    };
    let approved = |line| decided(line).map(|answer| answer.approved);
    assert_eq!(["y", " Y ", "yes"].map(approved), [Some(true); 3]);
    let lasts = |line| decided(line).map(|answer| answer.lasts);
    assert_eq!(
        ["y", "s", "Always"].map(lasts),
        [ApprovalScope::Once, ApprovalScope::Session, ApprovalScope::Always].map(Some)
    );
    assert_eq!(["n", "No", "n, not there"].map(approved), [Some(false); 3]);
    assert_eq!(["", "yup", "y but only once", "maybe", "w"].map(approved), [None; 5]);
    assert_eq!(parse_line("w"), Some(TypedAnswer::OtherExtent));
}

#[test]
fn the_reason_reaches_the_model() {
    let no = |reason: &str| Some(TypedAnswer::Decision(ApprovalAnswer::no(reason)));
    assert_eq!(parse_line("n use make instead"), no("the user said no: use make instead"));
    assert_eq!(parse_line("n"), no("the user said no"));
}
