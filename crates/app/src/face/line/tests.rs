//! Rows that fit.

use proptest::prelude::*;

use super::*;

#[test]
fn a_row_is_cut_with_a_mark_and_wide_characters_count_twice() {
    assert_eq!(Line::of(Style::Plain, "日本語").cut(5).paint(false), "日本…");
    assert_eq!(Line::of(Style::Plain, "日本語").cut(4).paint(false), "日…");
    assert_eq!(Line::of(Style::Plain, "abc").cut(3).paint(false), "abc");
    assert_eq!(Line::of(Style::Plain, "ab").and(Style::Bold, "cd").cut(3).paint(false), "ab…");
}

#[test]
fn a_right_part_stands_at_the_edge_and_goes_when_there_is_no_room() {
    let row = |columns| {
        Line::of(Style::Plain, "edit_file src/main.rs")
            .with_right(Line::of(Style::Dim, "1.2 s"), columns)
            .paint(false)
    };
    assert_eq!(row(30), "edit_file src/main.rs    1.2 s");
    assert_eq!(row(24), "edit_file src/ma…  1.2 s");
    assert_eq!(row(8), "edit_fi…");
}

#[test]
fn words_stay_whole_where_they_can() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap("a verylongword", 6), ["a", "verylo", "ngword"]);
    assert_eq!(wrap("a\n\nb", 10), ["a", "", "b"]);
    assert_eq!(wrap("", 10), [""]);
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let row = Line::of(Style::Plain, "a\u{1b}[2Jb\nc\rd").paint(false);
    assert!(!row.contains(['\u{1b}', '\n', '\r']), "{row:?}");
}

#[test]
fn colour_is_left_out_when_not_wanted() {
    let row = Line::of(Style::Bad, "x");
    assert_eq!(row.paint(true), "\u{1b}[31mx\u{1b}[0m");
    assert_eq!(row.paint(false), "x");
}

proptest! {
    #[test]
    fn nothing_is_wider_than_asked(text in "[ a-z日é\\t]{0,80}", columns in 2_usize..60) {
        for row in wrap(&text, columns) {
            prop_assert!(row.width() <= columns, "{row:?}");
        }
        let line = Line::of(Style::Plain, &text).with_right(Line::of(Style::Dim, "12 ms"), columns);
        prop_assert!(line.width() <= columns, "{line:?}");
    }

    #[test]
    fn wrapping_loses_nothing_but_spaces(text in "[ a-z]{0,80}", columns in 1_usize..20) {
        let kept: String = wrap(&text, columns).concat().replace(' ', "");
        prop_assert_eq!(kept, text.replace(' ', ""));
    }
}
