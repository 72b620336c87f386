//! The material shown to the model, and which of its replies are accepted.

use super::*;

fn said(text: &str) -> Message {
    Message::user(text.to_owned())
}

#[test]
fn the_newest_is_shown_and_the_oldest_counted() {
    let messages = [said("one"), said("two"), said("three")];
    assert_eq!(material(&messages, 1000), "user: one\n\nuser: two\n\nuser: three");
    assert_eq!(material(&messages, 22), "[1 earlier messages]\n\nuser: two\n\nuser: three");
    let long = "é".repeat(MESSAGE_BYTES);
    assert_eq!(one(&said(&long)).len(), "user: […]".len() + MESSAGE_BYTES);
}

#[test]
fn only_words_that_came_to_their_end_are_a_summary() {
    let reply = |text: &str, stop| Reply { text: text.to_owned(), stop, ..Reply::default() };
    assert_eq!(usable(reply("- a fact", StopReason::End)), Ok("- a fact".to_owned()));
    for (text, stop) in [("", StopReason::End), ("half", StopReason::Length), ("no", StopReason::Refusal)] {
        usable(reply(text, stop)).unwrap_err();
    }
}

#[test]
fn its_lines_are_those_that_a_later_compaction_reads() {
    let summary = summary_in_words("# Facts\n\n* read a.txt\n- it holds `x`\n", 1000).unwrap();
    assert!(summary.ends_with("\n- Facts\n- read a.txt\n- it holds `x`"), "{summary}");
    let short = summary_in_words(&"word ".repeat(500), 600).unwrap();
    assert!(short.len() < 900, "{}", short.len());
    assert_eq!(summary_in_words(" \n- \n", 1000), None);
}
