//! Markdown in rows.

use super::*;

proptest::proptest! {
    #[test]
    fn no_row_is_wider_than_the_terminal(text in "[a-z*`#>\\-\\n \u{65e5}\u{1b}0-9.\\[\\]()|]{0,200}", columns in 40usize..80) {
        for row in rows(&text, columns) {
            proptest::prop_assert!(row.width() <= columns, "{:?}", row);
        }
    }
}
