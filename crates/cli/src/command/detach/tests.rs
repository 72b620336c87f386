//! The command line of the second process, and what is relayed of it.

use super::*;

fn line(words: &[&str]) -> Vec<OsString> {
    command_line(words.iter().map(OsString::from))
}

#[test]
fn only_the_flag_is_replaced_not_a_request_of_that_name() {
    assert_eq!(
        line(&["fusee", "run", "--detach", "--", "--detach"]),
        ["run", "--detached", "--", "--detach"]
    );
    assert_eq!(line(&["fusee", "task", "x", "--detach"]), ["task", "x", "--detached"]);
}

#[test]
fn lines_are_relayed_up_to_the_start() {
    let said = "warning: one\n\u{1e}started r-1\nlater\n";
    let mut copied = Vec::new();
    assert_eq!(relay(Some(said.as_bytes()), &mut copied).as_deref(), Some("r-1"));
    assert_eq!(copied, b"warning: one\n");
    assert_eq!(relay(Some(&b"error: no\nhelp"[..]), io::sink()), None);
}
