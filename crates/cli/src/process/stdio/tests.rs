//! What is made safe at the output boundary, and what stays as it is.

use super::*;

#[test]
fn control_characters_are_shown_and_lines_and_tabs_stay() {
    assert_eq!(sanitized("a\tb\nc"), "a\tb\nc");
    assert_eq!(
        sanitized("\u{1b}]52;c;eA==\u{7}\r\n\u{9b}2J"),
        "\u{241b}]52;c;eA==\u{2407}\u{240d}\n\u{fffd}2J"
    );
}

#[test]
fn json_keeps_its_meaning_without_what_a_terminal_acts_on() {
    let value = serde_json::json!({"a": "\u{9b}2J \u{7f} \u{202e} \u{e0041} \u{e9} \u{1b}[2J"});
    let text = format!("{value:#}\n");
    let escaped = escaped_json(&text);
    assert!(escaped.contains("\\u009b2J \\u007f \\u202e \\udb40\\udc41 \u{e9} \\u001b[2J"), "{escaped}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
}
