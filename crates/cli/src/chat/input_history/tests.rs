//! Tests of browsing the input history.

use super::*;

#[test]
fn messages_are_there_again_and_what_was_typed_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut past = InputHistory::open(Some(folder.path()));
    past.add("one");
    past.add("two\nlines");
    past.add("two\nlines");
    let mut past = InputHistory::open(Some(folder.path()));
    assert_eq!(past.older("half"), Some("two\nlines"));
    assert_eq!(past.older(""), Some("one"));
    assert_eq!(past.older(""), Some("one"));
    assert_eq!(past.newer().as_deref(), Some("two\nlines"));
    assert_eq!(past.newer().as_deref(), Some("half"));
    assert_eq!(past.newer(), None);
    assert_eq!(InputHistory::default().older("x"), None);
}
