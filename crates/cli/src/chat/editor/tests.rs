//! Tests of editing and layout.

use super::*;

#[test]
fn words_and_lines_are_moved_over_and_deleted() {
    let mut editor = Editor::with_text("one two\nthree");
    editor.delete(CursorMove::WordLeft);
    assert_eq!(editor.text(), "one two\n");
    assert!(editor.line(false));
    assert!(!editor.line(false));
    editor.step(CursorMove::LineEnd);
    editor.delete(CursorMove::WordLeft);
    editor.insert("2\r\nx");
    assert_eq!((editor.text(), editor.before()), ("one 2\nx\n", "one 2\nx"));
    editor.delete(CursorMove::Left);
    editor.step(CursorMove::LineStart);
    editor.step(CursorMove::Left);
    editor.delete(CursorMove::LineStart);
    assert_eq!(editor.text(), "\n\n");
}

#[test]
fn wide_characters_take_their_columns_and_the_cursor_stands_beside_them() {
    let mut editor = Editor::with_text("日本語x\ty");
    assert_eq!(
        editor.layout(4),
        TextLayout { rows: vec!["日本".into(), "語x·".into(), "y".into()], cursor: (2, 1) }
    );
    editor.step(CursorMove::LineStart);
    editor.step(CursorMove::Right);
    assert_eq!(editor.layout(80).cursor, (0, 2));
    assert_eq!(
        Editor::with_text("abcd").layout(4),
        TextLayout { rows: vec!["abcd".into(), String::new()], cursor: (1, 0) }
    );
    assert_eq!(Editor::default().layout(4), TextLayout { rows: vec![String::new()], cursor: (0, 0) });
}

#[test]
fn a_letter_with_its_marks_and_an_emoji_of_many_parts_are_one_step() {
    for cluster in ["e\u{301}", "👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}", "🇩🇪", "👍🏽", "क्षि"]
    {
        let mut editor = Editor::with_text(&format!("a{cluster}"));
        editor.step(CursorMove::Left);
        assert_eq!(editor.before(), "a", "{cluster}");
        editor.step(CursorMove::Right);
        assert_eq!(editor.layout(80).rows, [format!("a{cluster}")], "it is shown as it was typed");
        editor.delete(CursorMove::Left);
        assert_eq!(editor.text(), "a", "{cluster}");
        editor.insert(&format!("b{cluster}c d"));
        editor.step(CursorMove::WordLeft);
        editor.delete(CursorMove::WordLeft);
        editor.delete(CursorMove::WordLeft);
        assert_eq!(editor.text(), "d", "{cluster}");
    }
    let family = Editor::with_text("👩\u{200d}👩\u{200d}👧");
    assert_eq!(family.layout(80).cursor, (0, 2), "an emoji takes two columns");
    assert_eq!(Editor::with_text("a\u{200d}\u{202e}b").layout(80).rows, ["a\u{fffd}\u{fffd}b"]);
}

#[test]
fn the_cursor_leaves_a_cluster_that_a_change_forms_around_it() {
    let mut editor = Editor::with_text("\u{301}");
    editor.step(CursorMove::LineStart);
    editor.insert("e");
    assert_eq!(editor.before(), "e\u{301}");
    let mut flags = Editor::with_text("🇩x🇪");
    flags.step(CursorMove::Left);
    flags.delete(CursorMove::Left);
    assert_eq!(flags.before(), "🇩🇪");
}

const TYPED: &[&str] = &[
    "a",
    "e",
    "_",
    " ",
    "\n",
    "\u{301}",
    "\u{200d}",
    "\u{200c}",
    "\u{fe0f}",
    "👩",
    "❤",
    "🏽",
    "🇩",
    "🇪",
    "日",
    "क",
    "्",
    "\u{7}",
    "\u{202e}",
    "\u{e0067}",
    "\r\n",
];

proptest::proptest! {
    #[test]
    fn any_keys_leave_a_cursor_between_two_clusters(
        keys in proptest::collection::vec((0u8..14, 0..TYPED.len()), 0..60),
    ) {
        let mut editor = Editor::default();
        for (key, typed) in keys {
            match key {
                0..4 => editor.insert(TYPED[typed]),
                4 => editor.step(CursorMove::Left),
                5 => editor.step(CursorMove::WordLeft),
                6 => editor.step(CursorMove::WordRight),
                7 => editor.delete(CursorMove::Left),
                8 => editor.delete(CursorMove::Right),
                9 => editor.delete(CursorMove::WordLeft),
                10 => { editor.line(true); }
                11 => { editor.line(false); }
                12 => editor.delete(CursorMove::LineEnd),
                _ => editor.step(CursorMove::LineEnd),
            }
            let mut boundaries = editor.text().grapheme_indices(true).map(|(at, _)| at);
            let (at, end) = (editor.before().len(), editor.text().len());
            proptest::prop_assert!(at == end || boundaries.any(|boundary| boundary == at), "{editor:?}");
            let mut moved = editor.clone();
            moved.step(CursorMove::Left);
            let passed = editor.before()[moved.before().len()..].graphemes(true).count();
            proptest::prop_assert_eq!(passed, usize::from(at > 0));
            moved.step(CursorMove::Right);
            proptest::prop_assert!(at == 0 || moved == editor, "{moved:?} is not {editor:?}");
            let laid = editor.layout(7);
            proptest::prop_assert!(laid.cursor.0 < laid.rows.len());
            proptest::prop_assert!(laid.cursor.1 <= 7);
            for row in &laid.rows {
                proptest::prop_assert!(row.width() <= 7, "{row:?}");
                proptest::prop_assert!(sanitize(row) == *row, "not shown as it was laid out: {row:?}");
            }
        }
    }
}
