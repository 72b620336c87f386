//! Terminal and JSON output of diagnostics.

use insta::assert_snapshot;

use super::*;
use crate::Span;

fn show(source: &Source, span: Span, message: &str) -> String {
    let diagnostic = Diagnostic::error("a-code", source, span, message).help("do this instead");
    terminal(&[diagnostic], |name| (name == &**source.name()).then_some(source), Colour::Never)
}

fn find(source: &Source, needle: &str) -> Span {
    let start = source.text().find(needle).unwrap();
    Span::new(start, start + needle.len())
}

#[test]
fn a_caret_stands_under_the_name() {
    let source = Source::new("w.fusee", "(defun f (x)\n  (g x))\n");
    assert_snapshot!(show(&source, find(&source, "g"), "`g` is not bound"), @r"
    error[a-code]: `g` is not bound
     --> w.fusee:2:4
      |
    2 |   (g x))
      |    ^
      |
      = help: do this instead

    1 error
    ");
}

#[test]
fn wide_characters_keep_the_caret_in_place() {
    let source = Source::new("w.fusee", "(f \"日本\" köter)");
    assert_snapshot!(show(&source, find(&source, "köter"), "`köter` is not bound"), @r#"
    error[a-code]: `köter` is not bound
     --> w.fusee:1:9
      |
    1 | (f "日本" köter)
      |           ^^^^^
      |
      = help: do this instead

    1 error
    "#);
}

#[test]
fn a_span_over_lines_is_bracketed_and_a_long_one_marked_on_its_first_line() {
    let source = Source::new("w.fusee", "(a\n b\n c)\n(d\n\n\n\n\n e)");
    assert_snapshot!(show(&source, Span::new(0, 9), "short"), @r"
    error[a-code]: short
     --> w.fusee:1:1
      |
    1 | / (a
    2 | |  b
    3 | |  c)
      | |___^
      |
      = help: do this instead

    1 error
    ");
    assert_snapshot!(show(&source, Span::new(10, source.text().len()), "long"), @r"
    error[a-code]: long
     --> w.fusee:4:1
      |
    4 | (d
      | ^^
      |
      = help: do this instead

    1 error
    ");
}

#[test]
fn control_characters_of_source_and_message_are_pictures() {
    let source = Source::new("w\u{1b}[2J.fusee", "(a \u{1b}[31mred\u{202e} b)\r\n");
    let text = show(&source, find(&source, "b"), "`\u{1b}]0;title\u{7}` is not bound");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{text:?}");
    assert_snapshot!(text, @r"
    error[a-code]: `␛]0;title␇` is not bound
     --> w␛[2J.fusee:1:14
      |
    1 | (a ␛[31mred� b)
      |              ^
      |
      = help: do this instead

    1 error
    ");
}

#[test]
fn a_very_long_line_is_cut_around_the_caret_and_keeps_its_column() {
    let source =
        Source::new("w.fusee", format!("({} here {})", "x ".repeat(5_000_000), "y ".repeat(5_000_000)));
    assert_snapshot!(show(&source, find(&source, "here"), "`here` is not bound"), @r"
    error[a-code]: `here` is not bound
     --> w.fusee:1:10000003
      |
    1 | … x x x x x x x x x x x x x x x x x x x  here y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y…
      |                                          ^^^^
      |
      = help: do this instead

    1 error
    ");
}

#[test]
fn the_end_of_the_text_can_be_marked() {
    let source = Source::new("w.fusee", "(a");
    assert_snapshot!(show(&source, Span::at(2), "not closed"), @r"
    error[a-code]: not closed
     --> w.fusee:1:3
      |
    1 | (a
      |   ^
      |
      = help: do this instead

    1 error
    ");
}

#[test]
fn without_a_source_the_place_is_still_named() {
    let diagnostic = Diagnostic::file_error("unreadable", "gone.xml", "no such file");
    assert_snapshot!(terminal(&[diagnostic], |_| None, Colour::Never), @r"
    error[unreadable]: no such file
    --> gone.xml:1:1

    1 error
    ");
}

#[test]
fn colour_is_the_callers_choice() {
    let source = Source::new("w.fusee", "(a)");
    let diagnostic = Diagnostic::warning("c", &source, Span::new(1, 2), "m");
    let styled = terminal(std::slice::from_ref(&diagnostic), |_| Some(&source), Colour::Always);
    let plain = terminal(&[diagnostic], |_| Some(&source), Colour::Never);
    assert!(styled.contains("\u{1b}["));
    assert!(!plain.contains('\u{1b}'));
}

#[test]
fn json_is_an_array() {
    assert_eq!(json(&[]), "[]");
    let source = Source::new("w.fusee", "(a)");
    assert_eq!(
        json(&[Diagnostic::warning("c", &source, Span::new(1, 2), "m")]),
        r#"[{"code":"c","severity":"warning","message":"m","file":"w.fusee","line":1,"column":2,"end_line":1,"end_column":3}]"#
    );
}

#[test]
fn joiners_stay_in_emoji_and_words_and_are_shown_elsewhere() {
    for kept in [
        "👩\u{200d}👩\u{200d}👧",
        "❤\u{fe0f}\u{200d}🔥",
        "می\u{200c}خواهم",
        "\u{200d}👧",
        "क्\u{200d}ष",
        "日\t語",
    ] {
        assert_eq!(sanitize(kept), kept);
    }
    assert_eq!(sanitize("rm\u{200d} -r\u{200c}f"), "rm\u{fffd} -r\u{fffd}f");
    assert_eq!(sanitize("日\u{200d}\u{200d}\u{200b}\u{200d}"), "日\u{200d}\u{fffd}\u{fffd}\u{fffd}");
    assert_eq!(sanitize("👩\u{1b}\u{200d}👧\u{202e}"), "👩␛\u{fffd}👧\u{fffd}");
}

proptest::proptest! {
    #[test]
    fn sanitized_text_has_no_control_characters_and_stays_as_it_is(text in "[\\PC\\p{C}\u{200c}\u{200d}a]{0,12}") {
        let shown = sanitize(&text).into_owned();
        proptest::prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\t'), "{shown:?}");
        proptest::prop_assert!(!shown.contains(['\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}']), "{shown:?}");
        proptest::prop_assert_eq!(shown.chars().count(), text.chars().count());
        proptest::prop_assert_eq!(sanitize(&shown).into_owned(), shown);
    }
}
