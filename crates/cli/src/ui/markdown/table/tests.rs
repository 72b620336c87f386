//! Tables at several widths.

use crate::ui::markdown::rows;

fn shown(text: &str, columns: usize) -> String {
    rows(text, columns).iter().map(|row| row.paint(false).trim_end().to_owned() + "\n").collect()
}

const TABLE: &str = "Before.\n\n| file | what it does | lines |\n|---|:--|--:|\n| `day.py` | keeps the **later** of two ends, and says so | 12 |\n\
| 日本.py | nothing | |\n\nAfter.";

#[test]
fn columns_stand_side_by_side_where_they_fit() {
    assert_eq!(
        shown(TABLE, 80),
        "Before.\n\n\
         file    │ what it does                             │ lines\n\
         ────────┼──────────────────────────────────────────┼──────\n\
         day.py  │ keeps the later of two ends, and says so │ 12\n\
         日本.py │ nothing                                  │\n\nAfter.\n"
    );
}

#[test]
fn cells_are_broken_where_they_do_not_fit() {
    assert_eq!(
        shown(TABLE, 40),
        "Before.\n\n\
         file    │ what it does           │ lines\n\
         ────────┼────────────────────────┼──────\n\
         day.py  │ keeps the later of two │ 12\n\
        \u{20}       │ ends, and says so      │\n\
         日本.py │ nothing                │\n\nAfter.\n"
    );
}

#[test]
fn without_room_for_columns_there_is_a_line_a_cell() {
    let wide = "| a | b | c | d | e | f | g |\n|-|-|-|-|-|-|-|\n| 1 one one | 2 two two | 3 | 4 four four | 5 five five | 6 | 7 seven |\n";
    assert_eq!(
        shown(wide, 40),
        "a: 1 one one\nb: 2 two two\nc: 3\nd: 4 four four\ne: 5 five five\nf: 6\ng: 7 seven\n"
    );
}
