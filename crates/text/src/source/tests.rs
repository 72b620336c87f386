//! Lines and columns of texts with all kinds of line endings and characters.

use super::*;

fn at(line: usize, column: usize) -> Position {
    Position { line, column }
}

#[test]
fn columns_count_characters_not_bytes() {
    let source = Source::new("a.fusee", "äöü (x)\nλ y");
    let x = source.text().find('x').unwrap();
    assert_eq!(source.position(x), at(1, 6));
    let y = source.text().find('y').unwrap();
    assert_eq!(source.position(y), at(2, 3));
}

#[test]
fn an_empty_text_has_one_line() {
    let source = Source::new("empty", "");
    assert_eq!(source.position(0), at(1, 1));
    assert_eq!(source.line_span(1), Span::new(0, 0));
}

#[test]
fn offsets_past_the_end_are_the_end() {
    let source = Source::new("short", "ab\ncd");
    assert_eq!(source.position(99), at(2, 3));
    assert_eq!(source.line_span(9), Span::at(5));
    assert_eq!(source.slice(Span::new(3, 99)), "");
}

#[test]
fn line_spans_leave_out_both_kinds_of_line_ending() {
    let source = Source::new("crlf", "one\r\ntwo\nthree");
    let lines = [1, 2, 3].map(|line| source.slice(source.line_span(line)));
    assert_eq!(lines, ["one", "two", "three"]);
}

#[test]
fn a_span_ends_at_the_position_after_its_last_character() {
    let source = Source::new("a", "(a\n b)");
    assert_eq!(source.positions(Span::new(0, 6)), (at(1, 1), at(2, 4)));
}
