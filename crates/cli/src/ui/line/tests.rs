//! Tests of truncation, alignment, wrapping and colours.

use proptest::prelude::*;

use super::*;

#[test]
fn a_row_is_cut_with_a_mark_and_wide_characters_count_twice() {
    assert_eq!(StyledLine::styled(Style::Plain, "日本語").cut(5).paint(false), "日本…");
    assert_eq!(StyledLine::styled(Style::Plain, "日本語").cut(4).paint(false), "日…");
    assert_eq!(StyledLine::styled(Style::Plain, "abc").cut(3).paint(false), "abc");
    assert_eq!(StyledLine::styled(Style::Plain, "ab").and(Style::Bold, "cd").cut(3).paint(false), "ab…");
}

#[test]
fn a_right_part_stands_at_the_edge_and_goes_when_there_is_no_room() {
    let row = |columns| {
        StyledLine::styled(Style::Plain, "edit_file src/main.rs")
            .with_right(StyledLine::styled(Style::Dim, "1.2 s"), columns)
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
    let row = StyledLine::styled(Style::Plain, "a\u{1b}[2Jb\nc\rd").paint(false);
    assert!(!row.contains(['\u{1b}', '\n', '\r']), "{row:?}");
}

proptest! {
    #[test]
    fn a_letter_with_its_marks_and_an_emoji_stay_whole(
        parts in prop::collection::vec(prop::sample::select(vec![
            "a", " ", "日", "e\u{301}", "👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}", "🇩🇪", "👍🏽", "म\u{200c}",
        ]), 0..30),
        columns in 2_usize..20,
    ) {
        let text = parts.concat();
        let is_part = |cluster: &str| cluster == "…" || parts.contains(&cluster);
        let rows = wrap(&text, columns);
        for row in rows.iter().chain([&StyledLine::styled(Style::Plain, &text).cut(columns).paint(false)]) {
            prop_assert!(row.width() <= columns, "{row:?}");
            prop_assert!(row.graphemes(true).all(is_part), "{row:?} of {text:?}");
        }
        prop_assert_eq!(rows.concat().replace(' ', ""), text.replace(' ', ""));
    }
}

/// Relative luminance (WCAG) of a colour in the 256-colour cube.
fn luminance(index: u32) -> f64 {
    let level = |n: u32| f64::from(if n == 0 { 0 } else { 55 + 40 * n }) / 255.0;
    let linear = |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
    let at = index - 16;
    let [red, green, blue] = [at / 36, at / 6 % 6, at % 6].map(|n| linear(level(n)));
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[test]
fn every_colour_stands_out_from_black_and_from_white() {
    for style in [Style::Good, Style::Bad, Style::Warning, Style::Accent] {
        let painted = StyledLine::styled(style, "x").paint(true);
        let index = painted.strip_prefix("\u{1b}[38;5;").and_then(|rest| rest.split_once('m')).unwrap().0;
        let luminance = luminance(index.parse().unwrap());
        let (on_black, on_white) = ((luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05));
        assert!(
            on_black > 3.8 && on_white > 3.8,
            "{style:?}: {on_black:.1} on black, {on_white:.1} on white"
        );
    }
}

#[test]
fn colour_is_left_out_when_not_wanted() {
    let row = StyledLine::styled(Style::Bad, "x");
    assert_eq!(row.paint(true), "\u{1b}[38;5;160mx\u{1b}[0m");
    assert_eq!(row.paint(false), "x");
}

proptest! {
    #[test]
    fn nothing_is_wider_than_asked(text in "[ a-z日é\\t]{0,80}", columns in 2_usize..60) {
        for row in wrap(&text, columns) {
            prop_assert!(row.width() <= columns, "{row:?}");
        }
        let line = StyledLine::styled(Style::Plain, &text).with_right(StyledLine::styled(Style::Dim, "12 ms"), columns);
        prop_assert!(line.width() <= columns, "{line:?}");
    }

    #[test]
    fn wrapping_loses_nothing_but_spaces(text in "[ a-z]{0,80}", columns in 1_usize..20) {
        let kept: String = wrap(&text, columns).concat().replace(' ', "");
        prop_assert_eq!(kept, text.replace(' ', ""));
    }
}
