//! Tests of editing and layout.

use super::*;

#[test]
fn words_and_lines_are_moved_over_and_deleted() {
    let mut editor = Editor::of("one two\nthree");
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
    let mut editor = Editor::of("日本語x\ty");
    assert_eq!(
        editor.layout(4),
        TextLayout { rows: vec!["日本".into(), "語x·".into(), "y".into()], cursor: (2, 1) }
    );
    editor.step(CursorMove::LineStart);
    editor.step(CursorMove::Right);
    assert_eq!(editor.layout(80).cursor, (0, 2));
    assert_eq!(
        Editor::of("abcd").layout(4),
        TextLayout { rows: vec!["abcd".into(), String::new()], cursor: (1, 0) }
    );
    assert_eq!(Editor::default().layout(4), TextLayout { rows: vec![String::new()], cursor: (0, 0) });
}

proptest::proptest! {
    #[test]
    fn any_keys_leave_a_cursor_within_the_text(keys in proptest::collection::vec(0u8..12, 0..60)) {
        let mut editor = Editor::default();
        for key in keys {
            match key {
                0 => editor.insert("aé日 "),
                1 => editor.insert("\n"),
                2 => editor.step(CursorMove::Left),
                3 => editor.step(CursorMove::WordLeft),
                4 => editor.step(CursorMove::WordRight),
                5 => editor.delete(CursorMove::Left),
                6 => editor.delete(CursorMove::Right),
                7 => editor.delete(CursorMove::WordLeft),
                8 => { editor.line(true); }
                9 => { editor.line(false); }
                10 => editor.delete(CursorMove::LineEnd),
                _ => editor.step(CursorMove::LineEnd),
            }
            let laid = editor.layout(7);
            proptest::prop_assert!(laid.cursor.0 < laid.rows.len());
            proptest::prop_assert!(laid.cursor.1 <= 7);
            proptest::prop_assert!(editor.before().len() <= editor.text().len());
        }
    }
}
