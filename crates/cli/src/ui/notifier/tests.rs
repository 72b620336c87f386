//! Sequences for terminals.

use super::*;

fn notice(title: &str) -> Notice<'_> {
    Notice { event: "needs_you", run: "r", title, text: "shell needs approval".to_owned() }
}

#[test]
fn sequences_carry_no_control_characters_of_the_request() {
    let hostile = notice("a;b\u{7}\u{1b}]0;c");
    assert_eq!(sequence(TerminalNotice::Bell, &hostile), "\u{7}");
    for kind in [TerminalNotice::Osc9, TerminalNotice::Osc777] {
        let text = sequence(kind, &hostile);
        assert_eq!(text.matches('\u{7}').count(), 1, "{text:?}");
        assert_eq!(text.matches('\u{1b}').count(), 1, "{text:?}");
    }
    let plain = notice("Fix it");
    assert_eq!(sequence(TerminalNotice::Osc9, &plain), "\u{1b}]9;shell needs approval: Fix it\u{7}");
    assert_eq!(
        sequence(TerminalNotice::Osc777, &plain),
        "\u{1b}]777;notify;shell needs approval: Fix it;fusee\u{7}"
    );
}
