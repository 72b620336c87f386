//! Snapshots of rendered Markdown.

use super::*;

fn shown(text: &str, columns: usize) -> String {
    rows(text, columns).iter().map(|row| row.paint(false).trim_end().to_owned() + "\n").collect()
}

const TEXT: &str = "# Done\n\nThe **later** of two ends is kept, see `day.py` and [the manual](http://x.y).\n\n\
- one thing that is long enough to be broken\n- another\n  1. first\n  2. second\n\n\
```python\ndef a():\n    return 1\n```\n\n> said\n> before\n\nLast\u{1b}[2J words 日本語.";

#[test]
fn it_reads_well_in_40_columns() {
    insta::assert_snapshot!(shown(TEXT, 40));
}

#[test]
fn it_reads_well_in_200_columns() {
    insta::assert_snapshot!(shown(TEXT, 200));
}

proptest::proptest! {
    #[test]
    fn no_row_is_wider_than_the_terminal(text in "[a-z*`#>\\-\\n \u{65e5}\u{1b}0-9.\\[\\]()|]{0,200}", columns in 40usize..80) {
        for row in rows(&text, columns) {
            proptest::prop_assert!(row.width() <= columns, "{:?}", row);
        }
    }
}
